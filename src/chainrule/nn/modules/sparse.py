"""Embeddings, where PyTorch has them."""

from chainrule.nn import Embedding, EmbeddingBag

__all__ = [
    "Embedding",
    "EmbeddingBag",
]
