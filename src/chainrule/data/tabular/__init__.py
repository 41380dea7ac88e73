"""What the columns of a table mean, and the features that a network is given of them."""
