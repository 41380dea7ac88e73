"""What an output depends on, and what a unit looks for."""
