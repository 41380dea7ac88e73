"""Many numbers to few: sums, extremes, running values, orders."""
