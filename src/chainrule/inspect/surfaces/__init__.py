"""The loss over the weights, and the output over the inputs."""
