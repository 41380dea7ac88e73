"""Learning without a loss: a weight changes by what the units at its two ends do."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.nn.layers.linear import Linear
from chainrule.ops.shape.diagonal import tril
from chainrule.ops.linalg.matmul import linear, matmul
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import reshape, transpose, unsqueeze
from chainrule.optim.optimizer import Optimizer
from chainrule.tensor import Tensor
from chainrule.typing import Rates

__all__ = ["Hebbian", "hebbian_change"]

NORMALIZATIONS = (None, "oja", "sanger")


def hebbian_change(
    weight: Tensor, input: Tensor, output: Tensor | None = None, normalization: str | None = None
) -> Tensor:
    """The Hebbian change of a weight matrix w, the mean over the samples of a batch x:

    - None: y x^T, Hebb's rule: what fires together is wired together. The weights grow for ever.
    - "oja": y x^T - diag(y^2) w. Each unit's weights turn to the first principal component of x,
      with norm 1. Oja, 1982.
    - "sanger": y x^T - tril(y y^T) w. The units' weights turn to the first principal components in
      their order. Sanger, 1989.

    Shape: weight (out, in), input (*, in), output (*, out); y = x w^T if it is not given.

    >>> import chainrule
    >>> from chainrule.optim import hebbian_change
    >>> hebbian_change(chainrule.tensor([[0.5, 0.0]]), chainrule.tensor([2.0, 1.0]))
    tensor([[2., 1.]])
    """
    _check_normalization("hebbian_change", normalization)
    if weight.ndim != 2 or not input.ndim or input.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            "hebbian_change: expected a weight of shape (out, in) and an input of shape (*, in), "
            f"got {tuple(weight.shape)} and {tuple(input.shape)}"
        )
    with no_grad():
        y = linear(input, weight) if output is None else output
        if tuple(y.shape) != (*input.shape[:-1], weight.shape[0]):
            raise RuntimeError(
                f"hebbian_change: expected an output of shape "
                f"{(*input.shape[:-1], weight.shape[0])}, got {tuple(y.shape)}"
            )
        x, y = reshape(input, (-1, weight.shape[1])), reshape(y, (-1, weight.shape[0]))
        if not x.shape[0]:
            raise RuntimeError("hebbian_change: the batch is empty")
        together = matmul(transpose(y, 0, 1), x) / x.shape[0]
        if normalization == "oja":
            return together - unsqueeze(mean(y * y, 0), -1) * weight.detach()
        if normalization == "sanger":
            return together - tril(matmul(transpose(y, 0, 1), y)) / x.shape[0] @ weight.detach()
        return together


class Hebbian(Optimizer):
    """The Hebbian rule for the weight of a linear layer: w <- w + lr change.

    The change is :func:`hebbian_change`, the mean over the batch that :meth:`step` is given. No
    loss and no gradient take part, and a bias stays as it is. Hebb, 1949; Oja, 1982; Sanger, 1989.

    Args:
        layer: an ``nn.Linear``.
        lr: the learning rate (default 1e-2).
        normalization: None for Hebb's own rule, "oja" or "sanger" for those that find principal
            components.

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> optimizer = optim.Hebbian(layer, lr=0.1, normalization="oja")
    >>> for _ in range(200):
    ...     optimizer.step(chainrule.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> layer.weight.detach().abs().round(decimals=3)
    tensor([[1., 0.]])
    """

    def __init__(self, layer: Linear, lr: Rates = 1e-2, normalization: str | None = None):
        if not isinstance(layer, Linear):
            raise TypeError(f"Hebbian: expected an nn.Linear, got {type(layer).__name__}")
        self.layer = layer
        super().__init__([layer.weight], {"lr": lr, "normalization": normalization})

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        _check_normalization("Hebbian", settings["normalization"])

    def step(  # type: ignore[override]  # there is no loss, so no closure
        self, input: Tensor | None = None, output: Tensor | None = None
    ) -> None:
        """Changes the weight once.

        Args:
            input: what the layer sees, (*, in_features).
            output: what its units do, (*, out_features): their values after an activation, or
                those they should have. Without it y = x w^T, plus the bias if there is one.
        """
        if not isinstance(input, Tensor):
            raise TypeError(
                "Hebbian.step: needs the input of the layer, not a closure: the rule has no loss; "
                f"got {type(input).__name__}"
            )
        (group,) = self.param_groups
        self._call_hooks("step_pre", None)
        weight = self.layer.weight
        with no_grad():
            if output is None and self.layer.bias is not None:
                output = linear(input, weight, self.layer.bias)
            change = hebbian_change(weight, input, output, group["normalization"])
            if not K.all_finite([change.array]):
                raise RuntimeError(
                    "Hebbian.step: the change of the weight has NaN or infinite values; the weight "
                    "was not changed. Hebb's rule without normalization grows without bound"
                )
            rates = self._rates(group, [weight])
            weight.copy_(weight + (rates if isinstance(rates, float) else rates[0]) * change)
        self._steps_taken += 1
        self._call_hooks("step_post", None)


def _check_normalization(name: str, normalization: object) -> None:
    if normalization not in NORMALIZATIONS:
        raise ValueError(
            f"{name}: normalization must be None, 'oja' or 'sanger', got {normalization!r}"
        )
