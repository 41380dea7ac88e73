"""New tensors: of a pattern, from data, of another type, at random."""
