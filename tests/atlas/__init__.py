"""The entries of the atlas."""
