"""What the courses print and what is right, both evaluated."""
