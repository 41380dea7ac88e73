"""The reference kernels: every raw array function in plain NumPy (and SciPy where NumPy stops).

One file per family, each with its list in ``__all__``. They are right and readable first; compiled
kernels are tested against them.
"""
