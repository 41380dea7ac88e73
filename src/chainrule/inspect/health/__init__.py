"""What is wrong with a network or its training, and what to do."""
