"""Optimizers that know a parameter as a whole: their steps are not element by element."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.ops.core.inplace import assign
from chainrule.optim.optimizer import Optimizer
from chainrule.tensor import Tensor

__all__ = ["WholeSteps"]


class WholeSteps(Optimizer):
    """An optimizer that makes the step of each parameter as a whole."""

    def update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Makes the steps of parameters of a group, one after the other."""
        for p in params:
            if p.dtype.is_complex:
                raise RuntimeError(f"{self._name} does not support complex parameters")
            state = self.state[p]
            with no_grad():
                if not state:
                    self._make_state(group, p, self.states(group))
                if not p.numel():
                    continue
                new = self.moved(group, p.detach(), p._grad.detach(), state)
                assign(p, new, f"{self._name}.step")

    def moved(self, group: dict[str, Any], p: Tensor, g: Tensor, state: dict[str, Any]) -> Tensor:
        """The parameter after a step; the state is changed."""
        raise NotImplementedError
