"""The files of optimizers: settings and state as PyTorch writes them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from chainrule.backend.dtypes import float64
from chainrule.ops.core.arguments import placed_like
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
from chainrule.tensor import Tensor

__all__ = ["StateDict"]


class StateDict:
    """What an optimizer writes and reads: ``state_dict`` and ``load_state_dict``."""

    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, dict[str, Any]]
    scalar_states: ClassVar[dict[str, float]] = {}  # numbers kept for each parameter, as they start

    @property
    def _name(self) -> str:
        return type(self).__name__

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The names of the tensors that the rule keeps for each parameter, in its order."""
        return ()

    def state_dict(self) -> dict[str, Any]:
        """Settings and state with numbers for parameters, as PyTorch writes it."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers.setdefault(id(p), len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(p)]: {k: self._packed(k, v) for k, v in s.items()}
            for p, s in self.state.items()
            if id(p) in numbers and s
        }
        return {"state": state, "param_groups": groups}

    def _packed(self, name: str, value: Any) -> Any:
        """Counts and numbers as tensors without dimensions, as PyTorch has them."""
        if name == "step":
            return tensor(float(value))
        return tensor(value, dtype=float64) if name in self.scalar_states else value

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over settings and state, also those of PyTorch's optimizer of the same name."""
        given = state_dict["param_groups"]
        if len(given) != len(self.param_groups):
            raise ValueError(
                f"{self._name}.load_state_dict: the loaded state dict has {len(given)} parameter "
                f"groups, this optimizer has {len(self.param_groups)}"
            )
        for i, (new, group) in enumerate(zip(given, self.param_groups, strict=True)):
            if len(new["params"]) != len(group["params"]):
                raise ValueError(
                    f"{self._name}.load_state_dict: group {i} of the loaded state dict has "
                    f"{len(new['params'])} parameters, this optimizer's has {len(group['params'])}"
                )
        of = {
            number: p
            for new, group in zip(given, self.param_groups, strict=True)
            for number, p in zip(new["params"], group["params"], strict=True)
        }
        state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            key = int(number) if str(number).lstrip("-").isdigit() else number
            if key in of:
                state[of[key]] = self._unpacked(of[key], values)
        settings = [
            {k: _own(v) for k, v in new.items() if k not in ("params", "param_names")}
            for new in given
        ]
        # A schedule may have brought the rate to where no optimizer begins.
        rate = {k: v for k, v in self.defaults.items() if k == "lr"}
        for new, group in zip(settings, self.param_groups, strict=True):
            self.check_settings({**group, **new, **rate})
        self.state = state
        for new, group in zip(settings, self.param_groups, strict=True):
            group.update(new)

    def _unpacked(self, p: Tensor, values: dict[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = {}
        for name, v in values.items():
            if v is None:
                continue
            if name == "step":
                new[name] = _count_of_steps(self._name, v)
            elif name in self.scalar_states:
                new[name] = float(v)
            elif isinstance(v, Tensor) or hasattr(v, "__array__"):
                new[name] = self._fitted(p, name, v)
            else:
                new[name] = v
        return new

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Refuses settings outside their ranges."""

    def _fitted(self, p: Tensor, name: str, value: Any) -> Tensor:
        """A copy of a loaded state, in the parameter's dtype, where the parameter lies."""
        value = value if isinstance(value, Tensor) else tensor(value)
        if value.ndim and tuple(value.shape) != tuple(p.shape) and name in self._all_states():
            raise ValueError(
                f"{self._name}.load_state_dict: the state {name!r} has shape {tuple(value.shape)} "
                f"for a parameter of shape {tuple(p.shape)}"
            )
        same = not value.dtype.is_floating_point
        value = value.detach() if same else cast(value.detach(), p.dtype)
        if value.device == p.device:
            return clone(value)
        return placed_like(p, value.cpu())

    def _all_states(self) -> set[str]:
        return {name for group in self.param_groups for name in self.states(group)}


def _count_of_steps(name: str, value: Any) -> int:
    steps = int(value)
    if steps < 0:
        raise ValueError(f"{name}.load_state_dict: the state has taken {steps} steps")
    return steps


def _own(setting: Any) -> Any:
    """A loaded setting; of a tensor, also of PyTorch's, a copy."""
    if isinstance(setting, Tensor):
        return clone(setting.detach())
    return tensor(setting) if hasattr(setting, "numel") else setting
