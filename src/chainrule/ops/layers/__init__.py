"""The operations of layers and losses that are primitives."""
