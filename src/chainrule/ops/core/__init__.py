"""What every operation is made of: kinds of primitives, how one is applied and recorded, types."""
