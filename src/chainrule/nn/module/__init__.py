"""What a module is: its tensors, its children, its hooks, its state."""
