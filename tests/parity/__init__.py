"""Comparisons with PyTorch; skipped where it is not installed."""
