"""Distances, where PyTorch has them."""

from chainrule.nn import CosineSimilarity, PairwiseDistance

__all__ = [
    "CosineSimilarity",
    "PairwiseDistance",
]
