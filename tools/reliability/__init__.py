"""Faults on purpose: damaged files, killed processes, random calls of kernels, hours of mixed load.

``make faults`` runs all of it and writes docs/reliability.md; ``tests/faults`` runs a little of
each. A run is given by a seed: the same seed makes the same cases.
"""
