"""Losses: functions, modules, and which belongs to which output."""
