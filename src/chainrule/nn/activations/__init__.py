"""Activations: functions, modules, and what is known of them."""
