"""Functions of each element: a page of calculus, and what is composed of it."""
