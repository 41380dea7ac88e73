"""What the columns of a table mean: the features of a network and its target, and back."""
