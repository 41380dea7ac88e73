"""Distributions of numbers: on the line, on a half of it, between two limits."""
