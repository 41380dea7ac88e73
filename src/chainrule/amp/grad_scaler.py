"""Scaling of losses, so that small gradients do not vanish in 16 bits."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeVar

from chainrule.absent import warn_once
from chainrule.autograd.modes import no_grad
from chainrule.backend import K, devices
from chainrule.backend.dtypes import float32
from chainrule.backend.recorded import cannot_repeat, is_passing
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.elementwise.logic import isfinite, logical_and, where
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.optim import Optimizer
from chainrule.tensor import OtherLayout, Tensor

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
    ``growth_factor``. The factor and the count are tensors where the losses are: of a step one
    truth is read, whether all gradients are finite. A step that is compiled for a device repeats
    with it: one that is to be skipped then runs as it is, and draws random numbers of its own. On
    the CPU such a step is not repeated.

    For a device that is not there, such as ``device="cuda"``, PyTorch's default, without a GPU, it
    is disabled with a warning: ``step`` is the optimizer's, the other methods change nothing.

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
        there = device == "cpu" or (device in devices.KINDS and enabled)
        there = there and (device == "cpu" or devices.available(device))
        if enabled and not there:
            warn_once(
                f"GradScaler: {device!r} is not available, so nothing is scaled; "
                "GradScaler('cpu') scales, enabled=False says the same without a warning",
            )
        self._enabled = enabled and there
        if growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: growth_factor must be > 1.0, got {growth_factor}")
        if backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: backoff_factor must be < 1.0, got {backoff_factor}")
        self._init_scale = float(init_scale)
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None  # made with the first loss, where that is
        self._growth_tracker: Tensor | None = None  # steps in a row that were not skipped
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._stages: dict[int, _Stage] = {}
        self._finite: dict[int, bool] = {}

    def scale(self, outputs: T) -> T:
        """A tensor, or tensors in a list or tuple, times the factor."""
        if not self._enabled:
            return outputs
        return self._scaled(outputs)

    def _scaled(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            scale = self._scale
            if scale is None:
                scale = self._scale = tensor(self._init_scale, dtype=float32, device=outputs.device)
                self._growth_tracker = tensor(self._init_growth_tracker, device=outputs.device)
            return outputs * _beside(scale, outputs)
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
        scale, _ = self._held("unscale_")
        stage = self._stages.get(id(optimizer), _Stage.READY)
        if stage is _Stage.UNSCALED:
            raise RuntimeError(
                "GradScaler: unscale_() has already been called on this optimizer since the last "
                "update()"
            )
        if stage is _Stage.STEPPED:
            raise RuntimeError("GradScaler: unscale_() is being called after step()")
        gradients = self._gradients(optimizer)
        self._finite[id(optimizer)] = _are_finite(gradients)
        with no_grad():
            inverse = 1.0 / scale
            for gradient in gradients:
                gradient.mul_(_beside(inverse, gradient))
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
        self._held("step")
        if self._stages.get(id(optimizer)) is _Stage.STEPPED:
            raise RuntimeError("GradScaler: step() has already been called since the last update()")
        checks = optimizer.check_finite
        if id(optimizer) not in self._stages:
            self.unscale_(optimizer)
            optimizer.check_finite = False  # it was looked at just now
        try:
            return optimizer.step(**kwargs) if self._finite[id(optimizer)] else None
        finally:
            optimizer.check_finite = checks
            self._stages[id(optimizer)] = _Stage.STEPPED

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Sets the factor for the next step: smaller if one was skipped, in the end larger."""
        if not self._enabled:
            return
        scale, tracker = self._held("update")
        with no_grad():
            if new_scale is not None:
                scale.copy_(_beside(as_tensor(new_scale, dtype=float32), scale))
            elif not self._finite:
                raise AssertionError(
                    "GradScaler.update: No inf checks were recorded prior to update; call step() "
                    "first"
                )
            elif not all(self._finite.values()):
                is_passing()
                scale.mul_(self._backoff_factor)
                tracker.zero_()
            else:
                self._grow(scale, tracker)
        self._stages, self._finite = {}, {}

    def _grow(self, scale: Tensor, tracker: Tensor) -> None:
        """Counts a step; the factor grows if that is the last of so many, and it stays finite."""
        count = tracker + 1
        due = count == self._growth_interval
        grown = scale * self._growth_factor
        scale.copy_(where(logical_and(due, isfinite(grown)), grown, scale))
        tracker.copy_(where(due, 0, count))

    def _held(self, name: str) -> tuple[Tensor, Tensor]:
        """The factor, and how many steps in a row were not skipped."""
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"GradScaler.{name}: no loss was scaled yet; write scaler.scale(loss).backward()"
            )
        return self._scale, self._growth_tracker

    def _renew(self) -> None:
        """Has compiled steps, which hold the numbers that it was made with, be recorded anew."""
        if self._scale is not None:
            self._scale.data = self._scale.clone()

    # --- what it holds ----------------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor, 1.0 if nothing is scaled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """What the factor is multiplied by after many steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after many steps."""
        self._growth_factor = new_factor
        self._renew()

    def get_backoff_factor(self) -> float:
        """What the factor is multiplied by after a step that was skipped."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the factor is multiplied by after a step that was skipped."""
        self._backoff_factor = new_factor
        self._renew()

    def get_growth_interval(self) -> int:
        """After how many steps in a row the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps in a row the factor grows."""
        self._growth_interval = new_interval
        self._renew()

    def state_dict(self) -> dict[str, Any]:
        """The factor and how it changes, under PyTorch's names; empty if nothing is scaled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._count(),
        }

    def _count(self) -> int:
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on with what :meth:`state_dict` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler: The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler"
            )
        self._init_scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = int(state_dict["_growth_tracker"])
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
        self._renew()


def _beside(t: Tensor, other: Tensor) -> Tensor:
    """The tensor on the device of another one."""
    return t if t.array.__class__ is other.array.__class__ else t.to(other.device)


def _are_finite(gradients: list[Tensor]) -> bool:
    """Whether all of their numbers are: one look for those of each device."""
    by_device: dict[str, list[Any]] = {}
    finite = True
    for g in gradients:
        if isinstance(g, OtherLayout):
            finite = finite and bool(all_of(isfinite(g)))
        else:
            by_device.setdefault(str(g.device), []).append(g.array)
    if "cpu" in by_device:
        cannot_repeat("GradScaler looks whether gradients on the CPU are finite")
    return all([K.all_finite(arrays) for arrays in by_device.values()]) and finite
