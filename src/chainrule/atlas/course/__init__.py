"""Programs after the examples and experiments of the courses; each prints a table when run."""
