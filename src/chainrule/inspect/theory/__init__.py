"""What can be said of a network before it is trained: symmetries, and derivatives by other ways."""
