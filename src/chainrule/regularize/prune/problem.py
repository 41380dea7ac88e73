"""The loss as a function of the weights that are left, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.func import hvp, value_and_grad, vjp
from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.modes import no_grad
from chainrule.autograd.vmap import vmap
from chainrule.backend import dtypes
from chainrule.curvature import hessian_diagonal, hessian_matrix
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.nn.module.names import Where
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.index.reading import index_select, nonzero
from chainrule.ops.shape.joining import split
from chainrule.ops.core.promotion import cast
from chainrule.ops.index.scatter import scatter
from chainrule.ops.shape.views import expand, movedim, reshape, unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.random import Generator
from chainrule.regularize.prune.masks import Weight, weights_of
from chainrule.tensor import Tensor

__all__ = ["Problem"]

BYTES_AT_ONCE = 1 << 28  # of gradients of single samples


class Problem:
    """A model, a loss, data, and which weights are meant; all in evaluation mode.

    Args:
        op: who asks, for messages.
        model: any module.
        loss: ``loss(output, target)``, the mean over the samples.
        data: ``(inputs, target)``; inputs are a tensor, or a tuple of several.
        where: which weights.
    """

    def __init__(
        self,
        op: str,
        model: Module,
        loss: Callable[[Any, Any], Tensor],
        data: tuple[Any, Any],
        where: Where = None,
    ):
        self.op, self.model, self.criterion = op, model, loss
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise TypeError(
                f"{op}: data must be a pair (inputs, target), got {type(data).__name__}"
            )
        inputs, self.target = data
        self.inputs: tuple[Any, ...] = inputs if isinstance(inputs, tuple) else (inputs,)
        self.weights = weights_of(op, model, where)
        self.index = self._active()

    def _active(self) -> Tensor:
        flags = cat([reshape(w.mask, (-1,)) for w in self.weights])
        index = reshape(nonzero(flags), (-1,))
        if index.numel() == 0:
            raise ValueError(f"{self.op}: all of the {flags.numel()} weights are pruned already")
        return index

    @property
    def size(self) -> int:
        """How many weights there are, pruned ones included."""
        return sum(w.parameter.numel() for w in self.weights)

    @property
    def count(self) -> int:
        """How many weights are left."""
        return self.index.numel()

    # --- vectors ----------------------------------------------------------------------------------

    def vector(self) -> Tensor:
        """The weights that are left."""
        return index_select(cat([reshape(w.value, (-1,)) for w in self.weights]), 0, self.index)

    def spread(self, vector: Tensor) -> list[Tensor]:
        """A vector with an entry for each weight that is left, as tensors like the weights."""
        full = scatter(
            zeros(self.size, dtype=vector.dtype, device=vector.device), 0, self.index, vector
        )
        parts = split(full, [w.parameter.numel() for w in self.weights])
        pairs = zip(parts, self.weights, strict=True)
        return [cast(reshape(x, tuple(w.parameter.shape)), w.parameter.dtype) for x, w in pairs]

    def write(self, vector: Tensor) -> None:
        """Makes these the weights that are left."""
        for weight, value in zip(self.weights, self.spread(vector), strict=True):
            weight.parameter.data = value.detach()

    # --- the loss and its derivatives -------------------------------------------------------------

    def output(self, vector: Tensor, inputs: tuple[Any, ...]) -> Any:
        """What the model makes of inputs with other weights."""
        keys = [w.key for w in self.weights]
        tensors = dict(zip(keys, self.spread(vector), strict=True))
        return functional_call(self.model, tensors, inputs)

    def at(self, vector: Tensor) -> Tensor:
        """The loss with other weights."""
        return self.criterion(self.output(vector, self.inputs), self.target)

    def value(self) -> float:
        """The loss."""
        with evaluating(self.model), no_grad():
            return float(self.criterion(self.model(*self.inputs), self.target))

    def gradient(self) -> Tensor:
        """The gradient by the weights that are left."""
        with evaluating(self.model):
            return value_and_grad(self.at)(self.vector())[1].detach()

    def product(self, v: Tensor) -> Tensor:
        """The Hessian times a vector."""
        with evaluating(self.model):
            return hvp(self.at, (self.vector(),), (v,)).detach()

    def hessian(self, weight: Weight | None = None, chunk_size: int | None = 64) -> Tensor:
        """The Hessian by the weights that are left, or its block of one weight tensor."""
        full = self.vector()
        with evaluating(self.model):
            if weight is None:
                return hessian_matrix(self.at, full, chunk_size=_at_most(chunk_size, self.count))
            own = self.positions(weight)

            def at(part: Tensor) -> Tensor:
                return self.at(scatter(full, 0, own, part))

            start = index_select(full, 0, own)
            size = _at_most(chunk_size, own.numel())
            return hessian_matrix(at, start, chunk_size=size)

    def positions(self, weight: Weight) -> Tensor:
        """Where the entries of one weight tensor stand among the weights that are left."""
        start = 0
        for w in self.weights:
            stop = start + w.parameter.numel()
            if w is weight:
                return reshape(nonzero((self.index >= start) * (self.index < stop)), (-1,))
            start = stop
        raise KeyError(weight.name)

    # --- diagonals --------------------------------------------------------------------------------

    def diagonal(self, method: str, samples: int = 100, seed: int | None = None) -> Tensor:
        """The diagonal of the Hessian by the weights that are left; see :func:`obd_saliency`."""
        if method == "gauss-newton":
            return self.gauss_newton_diagonal()
        generator = None if seed is None else Generator().manual_seed(seed)
        number = samples if method == "hutchinson" else None
        size = _at_most(64, self.count if number is None else number)
        with evaluating(self.model):
            return hessian_diagonal(
                self.at, self.vector(), samples=number, generator=generator, chunk_size=size
            ).detach()

    def gauss_newton_diagonal(self) -> Tensor:
        """The diagonal of J^T H_L J: sum over samples n and k of (J_n^T u_nk)^2.

        u_nk are the columns of a root of the block of H_L, the Hessian of the loss by the outputs,
        that belongs to sample n.
        """
        vector = self.vector()
        with evaluating(self.model):
            roots = self._roots()
            n = int(roots.shape[0])
            step = max(1, BYTES_AT_ONCE // (self.count * 8))
            total = zeros(self.count, dtype=vector.dtype, device=vector.device)
            for start in range(0, n, step):
                rows = [x[start : start + step] for x in self.inputs]
                for k in range(int(roots.shape[-1])):
                    g = self._per_sample(vector, rows, roots[start : start + step, :, k])
                    total = total + (g * g).sum(0)
        return total.detach()

    def _per_sample(self, vector: Tensor, rows: list[Any], cotangents: Tensor) -> Tensor:
        """J_n^T u_n for each sample n, (N, W)."""

        def one(u: Tensor, *sample: Any) -> Tensor:
            def f(v: Tensor) -> Tensor:
                out = self.output(v, tuple([unsqueeze(x, 0) for x in sample]))
                return reshape(out, (-1,))

            return vjp(f, vector)[1](u)[0]

        return vmap(one)(cotangents, *rows).detach()

    def sample_gradients(self) -> Tensor:
        """The gradients of the losses of single samples, (N, W)."""
        vector = self.vector()

        def one(target: Any, *sample: Any) -> Tensor:
            def f(v: Tensor) -> Tensor:
                out = self.output(v, tuple([unsqueeze(x, 0) for x in sample]))
                return self.criterion(out, unsqueeze(target, 0))

            return value_and_grad(f)(vector)[1]

        step = max(1, BYTES_AT_ONCE // (self.count * 8))
        n = int(self.inputs[0].shape[0])
        parts = []
        with evaluating(self.model):
            for start in range(0, n, step):
                stop = start + step
                rows = [x[start:stop] for x in self.inputs]
                parts.append(vmap(one)(self.target[start:stop], *rows).detach())
        return cat(parts)

    def _roots(self) -> Tensor:
        """Roots of the blocks of H_L: (N, K, R) with block_n = root_n root_n^T."""
        with no_grad():
            out = self.model(*self.inputs)
        if not isinstance(out, Tensor) or out.ndim < 1:
            raise TypeError(
                f"{self.op}: the Gauss-Newton diagonal needs a model with one output (N, ...), got "
                f"{type(out).__name__}; use diagonal='hutchinson'"
            )
        n = int(out.shape[0])
        flat = reshape(out, (n, -1))
        k = int(flat.shape[1])

        def loss(y: Tensor) -> Tensor:
            return self.criterion(reshape(y, tuple(out.shape)), self.target)

        # A loss that is a sum over samples has a block for each: one product gives the same column
        # of all of them.
        columns = [
            hvp(loss, (flat,), (expand(_unit(j, k, flat), n, k),)).detach() for j in range(k)
        ]
        blocks = movedim(stack(columns), 0, 2)
        values, vectors = eigh(cast(blocks, dtypes.float64))
        roots = vectors * unsqueeze(sqrt(values.clamp(min=0.0)), 1)
        needed = (values.amax(0) > 1e-12 * max(float(values.amax()), 1e-300)).tolist()
        kept = [j for j in range(k) if needed[j]]
        return cast(stack([roots[:, :, j] for j in kept], 2) if kept else roots, flat.dtype)


def _unit(j: int, size: int, like: Tensor) -> Tensor:
    one = ones(1, dtype=like.dtype, device=like.device)
    return cat(
        [
            zeros(j, dtype=like.dtype, device=like.device),
            one,
            zeros(size - j - 1, dtype=like.dtype, device=like.device),
        ]
    )


def _at_most(chunk: int | None, size: int) -> int | None:
    return None if chunk is None else max(1, min(chunk, size))
