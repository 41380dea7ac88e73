"""One computation number by number: back-propagation, convolution."""
