"""Products, equations, factorizations."""
