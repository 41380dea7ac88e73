"""What happens while a network learns: gradients, activations, updates, curvature, time."""
