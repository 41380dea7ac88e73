"""Smoothing: a penalty of the derivatives of the outputs by the inputs."""

from __future__ import annotations

from collections.abc import Callable

from chainrule.autograd.func import jvp, vjp
from chainrule.autograd.vmap import vmap
from chainrule.backend import dtypes
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.creation.patterns import eye
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.creation.sampling import randint
from chainrule.ops.shape.views import expand, reshape
from chainrule.regularize.penalty import check_strength
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = ["Tikhonov"]


class Tikhonov:
    """strength / N sum_n sum_k |d^m y_nk / dx_n^m|^2 for N samples x_n, outputs y and order m.

    Order 1 penalizes the slope of the outputs, order 2 their curvature, and so on. All derivatives
    are exact, and so is the gradient of the penalty by the weights. The network is taken as in
    evaluation: without dropout and noise, with running statistics. Training with noise of standard
    deviation s on the inputs of a squared error is, for small s, this penalty of order 1 and
    strength s^2 (Bishop, 1995).

    Order m costs about min(D, K) D^(m - 1) passes for D inputs and K outputs. For large D,
    ``probes`` random directions v of signs give an unbiased estimate, the mean of
    |d^m y / dx^m [v_1, ..., v_m]|^2.

    It needs the inputs: a ``Trainer`` gives it those of each batch; by hand, ``penalty(model, x)``.

    Args:
        strength: what the penalty is multiplied with.
        order: of the derivatives, at least 1.
        argnum: which of the model's inputs.
        probes: how many random directions; by default all derivatives are computed.
        generator: for the random directions.
        chunk_size: how many passes are made at once; by default all.
        name: the name of its column.

    >>> from chainrule import nn, ones, regularize
    >>> layer = nn.Linear(2, 1)
    >>> _ = nn.init.constant_(layer.weight, 3.0)
    >>> regularize.Tikhonov(0.1)(layer, ones(5, 2)).detach()  # 0.1 |w|^2
    tensor(1.8000)
    """

    needs_inputs = True

    def __init__(
        self,
        strength: float,
        order: int = 1,
        argnum: int = 0,
        probes: int | None = None,
        generator: Random = None,
        chunk_size: int | None = None,
        name: str | None = None,
    ):
        check_strength("Tikhonov", strength)
        if order < 1:
            raise ValueError(f"Tikhonov: order must be at least 1, got {order}")
        if probes is not None and probes < 1:
            raise ValueError(f"Tikhonov: probes must be None or at least 1, got {probes}")
        self.strength, self.order, self.argnum = strength, order, argnum
        self.probes, self.generator, self.chunk_size = probes, generator, chunk_size
        self.name = name or ("tikhonov" if order == 1 else f"tikhonov{order}")

    def __call__(self, model: Module, *inputs: object) -> Tensor:
        """The penalty at these inputs."""
        x = self._input(inputs)

        def f(value: Tensor) -> Tensor:
            y = model(*inputs[: self.argnum], value, *inputs[self.argnum + 1 :])
            return _check_output(y, value)

        with evaluating(model):
            parts = self._exact(f, x) if self.probes is None else self._estimated(f, x)
        count = x.shape[0] * (self.probes or 1)
        return (self.strength / count) * sum(parts * parts)

    def _input(self, inputs: tuple[object, ...]) -> Tensor:
        if not 0 <= self.argnum < len(inputs):
            raise ValueError(
                f"Tikhonov: argnum={self.argnum}, but the penalty was called with {len(inputs)} "
                "inputs; call it as penalty(model, x)"
            )
        x = inputs[self.argnum]
        if not isinstance(x, Tensor) or x.dtype.category < dtypes.FLOATING or x.ndim < 1:
            what = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x)
            raise TypeError(
                f"Tikhonov: derivatives are by a batch of floating-point inputs, got {what}; "
                "for other inputs select one with argnum"
            )
        return x

    def _exact(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """All derivatives of order m, in front the numbers of the directions."""
        derivative = self._first(f)
        for _ in range(self.order - 1):
            derivative = self._along_all(derivative)
        return derivative(x)

    def _first(self, f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """The first derivatives, by the mode that needs fewer passes."""

        def at(value: Tensor) -> Tensor:
            y, pull = vjp(f, value)
            if y.numel() > value.numel():
                return self._along_all(f)(value)
            rows = _units(tuple(y.shape[1:]), y)
            return vmap(lambda u: pull(expand(u, y.shape))[0], chunk_size=self.chunk_size)(rows)

        return at

    def _along_all(self, f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """The derivatives of a function along each input."""

        def at(value: Tensor) -> Tensor:
            directions = _units(tuple(value.shape[1:]), value)
            along = lambda v: jvp(f, (value,), (expand(v, value.shape),))[1]  # noqa: E731
            return vmap(along, chunk_size=self.chunk_size)(directions)

        return at

    def _estimated(self, f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        shape = (self.probes, self.order, *x.shape)
        signs = cast(2 * randint(0, 2, shape, generator=self.generator) - 1, x.dtype)

        def along(directions: Tensor) -> Tensor:
            g = f
            for m in range(self.order):
                g = _along(g, directions[m])
            return g(x)

        return vmap(along, chunk_size=self.chunk_size)(signs)

    def __repr__(self) -> str:
        probes = "" if self.probes is None else f", probes={self.probes}"
        return f"Tikhonov({self.strength}, order={self.order}{probes})"


def _along(f: Callable[[Tensor], Tensor], direction: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda value: jvp(f, (value,), (direction,))[1]


def _units(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The unit vectors of a space of tensors, along a new dimension 0, then one for the batch."""
    size = 1
    for n in shape:
        size *= n
    return reshape(eye(size, dtype=like.dtype, device=like.device), (size, 1, *shape))


def _check_output(y: object, x: Tensor) -> Tensor:
    if not isinstance(y, Tensor) or y.ndim < 1 or y.shape[0] != x.shape[0]:
        what = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise TypeError(
            "Tikhonov: the model must return one Tensor with the samples along dimension 0, as the "
            f"input of shape {tuple(x.shape)} has them; got {what}"
        )
    return y
