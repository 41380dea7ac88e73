"""Networks whose structure says something about the function: sums, dictionaries, shared trunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainrule import nn
from chainrule.models.mlp import MLP, Activation
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["AdditiveModel", "DictionaryModel", "MultiTaskNet", "capacity"]


class AdditiveModel(nn.Module):
    """A sum of functions of few inputs each: y = sum over n of f_n(x[groups[n]]).

    Shape: (*, D) -> (*, out_features).

    Args:
        groups: for each term, the indices of the inputs it sees.
        hidden: the widths of the hidden layers of each term, a :class:`MLP`.
        out_features: size of each output.
        activation: of the hidden layers, by name, as a module or as a function.

    >>> from chainrule import models, ones
    >>> models.AdditiveModel([[0], [1, 2]], hidden=[8])(ones(5, 3)).shape
    chainrule.Size([5, 1])
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        hidden: Sequence[int],
        out_features: int = 1,
        activation: Activation = "tanh",
    ):
        super().__init__()
        self.groups = [list(g) for g in groups]
        if not self.groups or not all(self.groups):
            raise ValueError("AdditiveModel: groups must be lists of at least one input index each")
        self.terms = nn.ModuleList(
            [MLP(len(g), hidden, out_features, activation) for g in self.groups]
        )

    def forward(self, input: Tensor) -> Tensor:
        total: Any = 0
        for group, term in zip(self.groups, self.terms, strict=True):
            total = total + term(input[..., group])
        return total


class DictionaryModel(nn.Module):
    """A linear model on a dictionary of functions: y = sum over n of theta[n] functions[n](x).

    An L1 penalty on theta (:meth:`penalty`) makes it sparse.

    Shape: (*), the same out, if the functions are elementwise.

    Args:
        functions: what is weighted.

    >>> from chainrule import models, ones
    >>> models.DictionaryModel([lambda x: x, lambda x: x.sin()])(ones(5)).shape
    chainrule.Size([5])
    """

    theta: Parameter

    def __init__(self, functions: Sequence[Callable[[Tensor], Tensor]]):
        super().__init__()
        if not functions:
            raise ValueError("DictionaryModel: the dictionary has no functions")
        self.functions = list(functions)
        self.theta = Parameter(zeros(len(self.functions)))

    def features(self, input: Tensor) -> Tensor:
        """The values of all functions, along the last dimension."""
        return stack([v(input) for v in self.functions], dim=-1)

    def forward(self, input: Tensor) -> Tensor:
        return self.features(input) @ self.theta

    def penalty(self) -> Tensor:
        """The sum of |theta_n|."""
        return self.theta.abs().sum()


class MultiTaskNet(nn.Module):
    """A shared trunk with a head for each task: y[t] = heads[t](trunk(x)).

    Shape: that of the trunk, then of each head; the result is a dictionary by task.

    Args:
        trunk: what all tasks share.
        heads: a module for each task, by name.

    >>> from chainrule import models, nn, ones
    >>> net = models.MultiTaskNet(nn.Linear(3, 4), {"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)})
    >>> {name: tuple(y.shape) for name, y in net(ones(5, 3)).items()}
    {'a': (5, 1), 'b': (5, 2)}
    """

    def __init__(self, trunk: nn.Module, heads: Mapping[str, nn.Module]):
        super().__init__()
        self.trunk = trunk
        self.heads = nn.ModuleDict(heads)

    def forward(self, input: Tensor) -> dict[str, Tensor]:
        shared = self.trunk(input)
        return {name: head(shared) for name, head in self.heads.items()}


def capacity(error: float, dimension: int, smoothness: float) -> float:
    """The order of neurons that one hidden layer needs: N ~ error ** ((1 - d) / k).

    A tenth of the error multiplies the neurons by 10 ** ((d - 1) / k).

    >>> round(capacity(0.01, 3, 2) / capacity(0.1, 3, 2))
    10
    """
    if not 0 < error < 1:
        raise ValueError(f"capacity: error must lie between 0 and 1, got {error}")
    if dimension < 1 or smoothness <= 0:
        raise ValueError(
            "capacity: dimension must be at least 1 and smoothness positive, got "
            f"{dimension} and {smoothness}"
        )
    return error ** ((1 - dimension) / smoothness)
