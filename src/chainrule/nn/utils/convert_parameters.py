"""PyTorch's place of the functions between parameters and one vector."""

from __future__ import annotations

from chainrule.nn.utils.vector import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]
