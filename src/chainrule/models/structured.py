"""Networks whose structure says something about the function: sums, dictionaries, shared trunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.models.mlp import MLP, Activation
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.shape.stacking import stack
from chainrule.optim.linear import FitReport, least_squares, untold
from chainrule.optim.sparse import lasso, lasso_limit
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

    An L1 penalty on theta makes it sparse: in one call by :meth:`fit`, or in a loop by
    :meth:`penalty`.

    Shape: (*), the same out, if the functions are elementwise.

    Args:
        functions: what is weighted.

    >>> from chainrule import models, ones
    >>> models.DictionaryModel([lambda x: x, lambda x: x.sin()])(ones(5)).shape
    chainrule.Size([5])
    >>> from chainrule import linspace
    >>> model = models.DictionaryModel([lambda x, k=k: (k * x).sin() for k in range(1, 9)])
    >>> x = linspace(0, 6, 50)
    >>> report = model.fit(x, 2 * (3 * x).sin() - (7 * x).sin(), terms=2)
    >>> model.used, [round(model.theta[n].item(), 3) for n in model.used]
    ([2, 6], [2.0, -1.0])
    """

    theta: Parameter
    report: FitReport | None = None

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

    @property
    def used(self) -> list[int]:
        """The functions whose theta is not 0."""
        return (self.theta.detach() != 0).nonzero().reshape(-1).tolist()

    def fit(
        self,
        input: Tensor,
        target: Tensor,
        l1: float = 0.0,
        *,
        terms: int | None = None,
        **options: Any,
    ) -> FitReport:
        """Writes theta for targets of the shape of the outputs; returns the report.

        The loss is sum (y - target)^2 / (2 N) + l1 sum |theta_n|: see :func:`optim.lasso`, which
        has ``options``.

        Args:
            input: what the functions are of.
            target: the values wanted.
            l1: the weight of the penalty; 0 is least squares.
            terms: in place of ``l1``: how many functions to use at most. Those are used that come
                first as l1 falls, and their theta are those of least squares.
        """
        features = self.features(input).detach()
        x, y = features.reshape(-1, len(self.functions)), target.reshape(-1)
        if tuple(features.shape[:-1]) != tuple(target.shape):
            raise ValueError(
                f"DictionaryModel.fit: expected targets of shape {tuple(features.shape[:-1])}, "
                f"got {tuple(target.shape)}"
            )
        if terms is None:
            fit = lasso(x, y, l1, bias=False, **options)
            theta, self.report = fit.weight, fit.report
        else:
            if l1 or terms < 1:
                raise ValueError(
                    "DictionaryModel.fit: terms must be positive and without l1, got "
                    f"terms={terms}, l1={l1}"
                )
            theta, self.report = _first_terms(x, y, terms, options)
        with no_grad():
            self.theta.copy_(theta)
        return self.report


def _first_terms(
    x: Tensor, y: Tensor, terms: int, options: dict[str, Any]
) -> tuple[Tensor, FitReport]:
    """Least squares on the columns that come first as the penalty falls, by steps of a tenth."""
    theta = zeros(int(x.shape[1]), dtype=x.dtype)
    l1 = lasso_limit(x, y, bias=False)
    if l1 == 0:
        loss = float((y * y).double().mean())
        return theta, FitReport(0, True, "no function fits the targets better than 0", loss)
    chosen: list[int] = []
    for _ in range(200):  # down to a billionth of the largest
        l1 *= 0.9
        with untold():
            sizes = lasso(x, y, l1, bias=False, **options).weight.abs().tolist()
        found = sorted([n for n, size in enumerate(sizes) if size], key=lambda n: -sizes[n])
        chosen = sorted(found[:terms])
        if len(found) >= terms:
            break
    fit = least_squares(x[:, chosen], y, bias=False)
    theta[chosen] = fit.weight
    return theta, fit.report


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
