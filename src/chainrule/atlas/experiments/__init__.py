"""Experiments of the courses, run again."""
