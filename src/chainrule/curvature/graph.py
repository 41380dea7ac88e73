"""A function with its graph at a point: all derivatives there cost one evaluation.

Products are made on the graph that is kept: H v by differentiating g . v, and J v by
differentiating J^T u, which is linear in u, by u. Nothing is evaluated again, so that all products
belong to one function even if it draws random numbers (dropout).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chainrule.autograd import engine
from chainrule.autograd.rows import for_units
from chainrule.curvature.memory import at_once, graph_bytes
from chainrule.ops.core.recording import edge_of
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import zeros, zeros_like
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import ArrayDType

__all__ = ["Derivatives"]


class Derivatives:
    """Products with the derivatives of first and second order by some parameters.

    Vectors have one entry for each parameter, in the order in which the parameters are given, row
    by row; results have no history.

    Args:
        params: leaves of the graph.
        loss: one number, with its graph; None if only the outputs are of interest.
        outputs: what the loss was computed from, with its graph; None if that is of no interest.
        loss_fn: the loss as a function of the outputs; None for 1/2 sum outputs^2.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        loss: Tensor | None = None,
        outputs: Tensor | None = None,
        loss_fn: Callable[[Tensor], Tensor] | None = None,
    ):
        self.params, self._loss, self._outputs, self.loss_fn = params, loss, outputs, loss_fn
        self._gradient: Tensor | None = None  # of the loss, as a vector with its graph
        self._pullback: tuple[Tensor, Tensor] | None = None  # u and J^T u, with its graph
        self._outer: tuple[Tensor, Tensor] | None = None  # outputs and dL/doutputs, with its graph
        self._at_once: dict[str, int] = {}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(p.numel() for p in self.params)

    @property
    def dtype(self) -> ArrayDType:
        """The type of the array of a vector: the widest of the parameters'."""
        return max((p.array.dtype for p in self.params), key=lambda d: d.itemsize)

    @property
    def loss(self) -> Tensor:
        """The loss, with its graph."""
        if self._loss is None:
            raise RuntimeError("Derivatives: there is no loss here, so it has no derivatives")
        return self._loss

    @property
    def outputs(self) -> Tensor:
        """What the loss was computed from, with its graph."""
        if self._outputs is None:
            raise RuntimeError("Derivatives: there are no outputs here, so there is no Jacobian")
        return self._outputs

    @property
    def has_outputs(self) -> bool:
        """Whether there are outputs, and so a Jacobian."""
        return self._outputs is not None

    def pull(self, y: Tensor, u: Tensor | None = None, create_graph: bool = False) -> Tensor:
        """(dy/dparams)^T u as one vector; the graph of y is kept."""
        found = engine.grad(
            y, self.params, u, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
        parts = [
            zeros(p.numel(), dtype=p.dtype, device=p.device)
            if g is None
            else reshape(g, (p.numel(),))
            for p, g in zip(self.params, found, strict=True)
        ]
        return cat(parts)

    # --- of the loss ------------------------------------------------------------------------------

    def gradient(self) -> Tensor:
        """The gradient of the loss."""
        if self._gradient is not None:
            return clone(self._gradient.detach())
        return clone(self.pull(self.loss).detach())

    def gradient_with_graph(self) -> Tensor:
        """The gradient of the loss as a vector that can be differentiated again."""
        if self._gradient is None:
            self._gradient = self.pull(self.loss, create_graph=True)
        return self._gradient

    def hessian_product(self, v: Tensor) -> Tensor:
        """The Hessian of the loss times a vector."""
        gradient = self.gradient_with_graph()
        if edge_of(gradient) is None:  # the loss is linear
            return zeros_like(v)
        return self.pull(gradient, v).detach()

    def hessian(self, chunk_size: int | None = None) -> Tensor:
        """The Hessian of the loss, (W, W)."""
        together = self.at_once("hessian", chunk_size)
        return for_units(self.hessian_product, (self.size,), self.dtype, together)

    # --- of the outputs ---------------------------------------------------------------------------

    def jacobian_product(self, v: Tensor) -> Tensor:
        """The derivative of the outputs in the direction v, J v, shaped like the outputs."""
        if self._pullback is None:
            u = zeros_like(self.outputs.detach()).requires_grad_()
            self._pullback = u, self.pull(self.outputs, u, create_graph=True)
        u, pulled = self._pullback
        return engine.grad(pulled, u, v, retain_graph=True)[0].detach()

    def pulled(self, u: Tensor) -> Tensor:
        """J^T u for a u shaped like the outputs, or a vector of its elements."""
        return self.pull(self.outputs, reshape(u, tuple(self.outputs.shape))).detach()

    def jacobian(self, chunk_size: int | None = None) -> Tensor:
        """The derivative of each output by each parameter, (M, W), in the mode that is cheaper."""
        count, dtype = self.outputs.numel(), self.outputs.array.dtype
        together = self.at_once("jacobian", chunk_size)
        if count <= self.size:
            return for_units(self.pulled, (count,), dtype, together)

        def column(v: Tensor) -> Tensor:
            return reshape(self.jacobian_product(v), (count,))

        return for_units(column, (self.size,), dtype, together).mT

    def outer_product(self, u: Tensor) -> Tensor:
        """H_L u, with the Hessian H_L of the loss by the outputs."""
        if self.loss_fn is None:  # the loss is 1/2 sum outputs^2
            return u
        if self._outer is None:
            leaf = self.outputs.detach().requires_grad_()
            loss = self.loss_fn(leaf)
            self._outer = leaf, engine.grad(loss, leaf, create_graph=True)[0]
        leaf, gradient = self._outer
        if edge_of(gradient) is None:  # the loss is linear in the outputs
            return zeros_like(u)
        return engine.grad(gradient, leaf, u, retain_graph=True)[0].detach()

    def gauss_newton_product(self, v: Tensor) -> Tensor:
        """J^T H_L J v: the curvature of the loss without that of the outputs themselves."""
        return self.pulled(self.outer_product(self.jacobian_product(v)))

    # --- memory -----------------------------------------------------------------------------------

    def at_once(self, what: str, chunk_size: int | None = None) -> int:
        """How many products with the "hessian" or "jacobian" to make together."""
        if chunk_size is None and what not in self._at_once:
            y = self.gradient_with_graph() if what == "hessian" else self.outputs
            size = self.size * self.dtype.itemsize
            self._at_once[what] = at_once(2 * size + graph_bytes(y))
        return chunk_size or self._at_once[what]
