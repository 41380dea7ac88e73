"""Parts of tensors: read, chosen, replaced."""
