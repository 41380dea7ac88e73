"""Curves that are drawn again while a network learns, in a terminal or a notebook."""
