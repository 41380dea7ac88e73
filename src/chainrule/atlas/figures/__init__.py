"""Figures of the courses, drawn from what is computed."""
