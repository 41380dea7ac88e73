"""Scaling of losses, so that small gradients do not vanish in 16 bits."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeVar

from chainrule.absent import warn_once
from chainrule.autograd.modes import no_grad
from chainrule.ops.elementwise.logic import isfinite
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.optim import Optimizer
from chainrule.tensor import Tensor

__all__ = ["GradScaler"]

T = TypeVar("T")


class _Stage(enum.Enum):
    """What was done for an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Multiplies the loss by a large factor, divides the gradients by it before the step.

    A step whose gradients are not finite is skipped and the factor multiplied by
    ``backoff_factor``; after ``growth_interval`` steps in a row it is multiplied by
    ``growth_factor``. For ``device="cuda"``, PyTorch's default, it is disabled with a warning, as
    in PyTorch without a GPU: ``step`` is the optimizer's, the other methods change nothing.

    >>> import chainrule as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    tensor([131072.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach()
    tensor([0.8000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device != "cpu":
            warn_once(
                f"GradScaler: {device!r} is not available, so nothing is scaled; "
                "GradScaler('cpu') scales, enabled=False says the same without a warning",
            )
        self._enabled = enabled and device == "cpu"
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor must be > 1.0, got {growth_factor}")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: backoff_factor must be < 1.0, got {backoff_factor}")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0  # steps in a row that were not skipped
        self._used = False
        self._stages: dict[int, _Stage] = {}
        self._finite: dict[int, bool] = {}

    def scale(self, outputs: T) -> T:
        """A tensor, or tensors in a list or tuple, times the factor."""
        if not self._enabled:
            return outputs
        self._used = True
        return self._scaled(outputs)

    def _scaled(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self._scaled(o) for o in outputs])
        if isinstance(outputs, Iterable):
            return map(self._scaled, outputs)
        raise ValueError(
            "GradScaler.scale: outputs must be a Tensor or an iterable of Tensors, got "
            f"{type(outputs).__name__}"
        )

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer's parameters by the factor: to clip them, say."""
        if not self._enabled:
            return
        self._check_used("unscale_")
        stage = self._stages.get(id(optimizer), _Stage.READY)
        if stage is _Stage.UNSCALED:
            raise RuntimeError(
                "GradScaler: unscale_() has already been called on this optimizer since the last "
                "update()"
            )
        if stage is _Stage.STEPPED:
            raise RuntimeError("GradScaler: unscale_() is being called after step()")
        finite = True
        with no_grad():
            for gradient in self._gradients(optimizer):
                finite = finite and bool(all_of(isfinite(gradient)))
                gradient.mul_(1.0 / self._scale)
        self._finite[id(optimizer)] = finite
        self._stages[id(optimizer)] = _Stage.UNSCALED

    @staticmethod
    def _gradients(optimizer: Optimizer) -> list[Tensor]:
        found = [p.grad for group in optimizer.param_groups for p in group["params"]]
        gradients = [g for g in found if g is not None]
        if any([g.dtype.name == "float16" for g in gradients]):
            raise ValueError(
                "GradScaler: Attempting to unscale FP16 gradients; keep the parameters in float32"
            )
        return gradients

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step on gradients divided by the factor; nothing if one is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise RuntimeError(
                "GradScaler: closure use is not supported if the scaler is enabled; make it with "
                "enabled=False"
            )
        self._check_used("step")
        if self._stages.get(id(optimizer)) is _Stage.STEPPED:
            raise RuntimeError("GradScaler: step() has already been called since the last update()")
        if id(optimizer) not in self._stages:
            self.unscale_(optimizer)
        result = optimizer.step(**kwargs) if self._finite[id(optimizer)] else None
        self._stages[id(optimizer)] = _Stage.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Sets the factor for the next step: smaller if one was skipped, in the end larger."""
        if not self._enabled:
            return
        self._check_used("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._finite:
            raise AssertionError(
                "GradScaler.update: No inf checks were recorded prior to update; call step() first"
            )
        elif not all(self._finite.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._stages, self._finite = {}, {}

    def _check_used(self, name: str) -> None:
        if not self._used:
            raise AssertionError(
                f"GradScaler.{name}: no loss was scaled yet; write scaler.scale(loss).backward()"
            )

    # --- what it holds ----------------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor, 1.0 if nothing is scaled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the factor is multiplied by after many steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after many steps."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor is multiplied by after a step that was skipped."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after a step that was skipped."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps in a row the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps in a row the factor grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The factor and how it changes, under PyTorch's names; empty if nothing is scaled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on with what :meth:`state_dict` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler: The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler"
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
