"""What all optimizers have in common: groups of parameters, state, one fused update, files.

An optimizer is its equation (:meth:`Optimizer.rule`, element by element), the names of its state
and the constants of a step. The rule is written in operations that take bare arrays and tensors
alike: a step runs it on arrays, many parameters at once, and with ``differentiable=True`` on
tensors, so that the step itself can be differentiated.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, SupportsFloat, TypeVar, overload

from chainrule.autograd.hooks import RemovableHandle
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import K
from chainrule.backend.recorded import cannot_repeat
from chainrule.graph import Box, Mode, mode
from chainrule.ops.elementwise.complex_numbers import complex, imag, real
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.inplace import assign, touch_all
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import expand
from chainrule.optim.param_groups import (
    NotFiniteError,
    check_names,
    check_order,
    check_params,
    check_rates,
    named_group,
    step_rows,
)
from chainrule.optim.settings import (
    IMPLEMENTATION,
    NOT_NEGATIVE,
    Interval,
    check_implementation,
    check_range,
)
from chainrule.optim.state_dict import StateDict
from chainrule.tensor import LayoutError, OtherLayout, Tensor
from chainrule.typing import Params, Rate, Value

__all__ = ["Loss", "NotFiniteError", "Optimizer", "check_range"]

# Called with an optimizer, a group, parameters and their states before their update: by what
# records a step.
watchers: list[Callable[..., None]] = []
Loss = TypeVar("Loss", bound=SupportsFloat)  # what a closure returns: a tensor or a number


def _rate_of(p: Tensor, rate: Rate) -> Tensor:
    """A learning rate as a tensor of the parameter's dtype, where the parameter is."""
    if not isinstance(rate, Tensor):
        return tensor(rate, dtype=p.dtype, device=p.device)
    if rate.array.__class__ is not p.array.__class__:
        rate = rate.to(p.device)
    return rate if rate.array.dtype is p.array.dtype else cast(rate, p.dtype)


class Optimizer(StateDict):
    """The base of all optimizers.

    A subclass says :meth:`rule`, :meth:`states` and :meth:`constants`; the base class does the
    rest: parameter groups with settings of their own, a call of the rule for all parameters of a
    group at once, closures, hooks, ``state_dict``.

    A parameter without gradient is left alone. A gradient with NaN or infinite values is an error
    before any parameter has been changed; ``check_finite = False`` on the optimizer turns the check
    off.

    With ``differentiable=True`` a step is recorded. It changes its parameters in place, so these
    are not leaves, and the loss is computed from copies: ``loss(w.clone())``.

    Args:
        params: tensors, pairs (name, tensor), or dictionaries with the key "params" and settings.
        defaults: the settings of groups that do not say otherwise.
        implementation: PyTorch's ``foreach``, ``fused``, ``capturable`` and ``differentiable``.

    >>> import chainrule
    >>> from chainrule import optim
    >>> class SignDescent(optim.Optimizer):
    ...     @staticmethod
    ...     def rule(p, g, lr):
    ...         return (p - lr * chainrule.sign(g),)
    >>> w = chainrule.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([w], {"lr": 0.5})
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.5000, -1.5000])
    """

    check_finite = True
    ranges: ClassVar[dict[str, Interval]] = {}  # where settings must lie; lr is checked anyway
    implementation_keys: ClassVar[tuple[str, ...]] = tuple(IMPLEMENTATION)  # those PyTorch has
    keeps_step = True  # whether the state counts steps; without, a step is the first or not

    def __init__(
        self,
        params: Params,
        defaults: dict[str, Any],
        implementation: Mapping[str, Any] | None = None,
    ):
        check_order(self._name, params)
        if isinstance(params, Tensor):
            raise TypeError(
                f"{self._name}: params must be an iterable of tensors or dicts, got a Tensor; "
                "write [tensor]"
            )
        chosen = check_implementation(self._name, self.implementation_keys, implementation or {})
        self.defaults = {**defaults, **chosen}
        self.check_settings(self.defaults)
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._hooks: dict[str, OrderedDict[int, Callable[..., Any]]] = defaultdict(OrderedDict)
        self._steps_taken = 0
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                f"{self._name}: got an empty parameter list; pass model.parameters() (a generator "
                "can be used only once), or check that the model has parameters"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # --- what a subclass says ---------------------------------------------------------------------

    @staticmethod
    def rule(
        p: Value, g: Value, lr: Value | float, *states: Any, **constants: Any
    ) -> Sequence[Value]:
        """The new parameter and states from the old ones, element by element."""
        raise NotImplementedError("Optimizer: a subclass defines rule(p, g, lr, *states)")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        """The keyword arguments of the rule at this step (the first is 1)."""
        return {}

    def advance(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, float]:
        """The scalar states after this step, from those before."""
        return scalars

    def new_scalar(self, name: str, group: dict[str, Any]) -> float:
        """What a scalar state starts from."""
        return self.scalar_states[name]

    def new_state(self, name: str, p: Tensor, group: dict[str, Any]) -> Tensor:
        """What a state starts from."""
        return zeros_like(p.detach())

    # --- groups -----------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with settings of their own: those of a layer just unfrozen, say."""
        group = named_group(self._name, param_group)
        unknown = set(group) - set(self.defaults) - {"params", "param_names", "initial_lr"}
        for key, default in self.defaults.items():
            group.setdefault(key, default)
        known = [p for other in self.param_groups for p in other["params"]]
        check_names(self._name, group, self.param_groups)
        check_params(self._name, group["params"], known, group.get("differentiable", False))
        self.check_settings(group)
        if "lr" in self.defaults:
            check_rates(self._name, group["lr"], group["params"])
        self.check_group(group, unknown)
        self.param_groups.append(group)

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Refuses settings outside their ranges; those of a group, and the default ones."""
        if "lr" in settings:
            NOT_NEGATIVE.check(self._name, "lr", settings["lr"])
        for key, interval in self.ranges.items():
            if key in settings:
                interval.check(self._name, key, settings[key])

    def check_group(self, group: dict[str, Any], unknown: set[str]) -> None:
        """Refuses a group with settings that this optimizer does not have or cannot use."""
        known = set(self.defaults) - set(IMPLEMENTATION)
        allowed = {k for k in unknown if k in ("name", "max_lr", "min_lr", "max_momentum")}
        allowed |= {k for k in unknown if k == "base_momentum"}
        if unknown - allowed:
            raise ValueError(
                f"{self._name}: unknown settings {sorted(unknown - allowed)} in a parameter group; "
                f"it takes {sorted(known)}"
            )

    # --- steps ------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters (or fills them with zeros)."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    p._grad = zeros_like(p.detach())

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...
    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Updates all parameters once; with a closure, after calling it for the loss."""
        if self._hooks:
            self._call_hooks("step_pre", closure)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        active = [[p for p in g["params"] if p._grad is not None] for g in self.param_groups]
        if self.check_finite:
            try:
                self._check_gradients(active)
            except LayoutError:
                active = step_rows(self, active)
        elif any(isinstance(p._grad, OtherLayout) for params in active for p in params):
            active = step_rows(self, active)
        self._steps_taken += 1
        for group, params in zip(self.param_groups, active, strict=True):
            if params:
                self.update(group, params)
        if self._hooks:
            self._call_hooks("step_post", closure)
        return loss

    def check_gradients(self) -> None:
        """Raises :class:`NotFiniteError` if a gradient has NaN or infinite values."""
        groups = [group["params"] for group in self.param_groups]
        self._check_gradients([[p for p in params if p._grad is not None] for params in groups])

    def _check_gradients(self, active: list[list[Tensor]]) -> None:
        grads = [p._grad.array for params in active for p in params]
        if mode.flags & Mode.BOXED:
            grads = [g for g in grads if not isinstance(g, Box)]
        if K.all_finite(grads):
            return
        for number, params in enumerate(active):
            for p in params:
                if not isinstance(p._grad.array, Box) and not K.all_finite([p._grad.array]):
                    place = self._place(self.param_groups[number], p)
                    n_nan = int(p._grad.isnan().sum())
                    n_inf = int(p._grad.isinf().sum())
                    raise NotFiniteError(
                        f"{self._name}.step: the gradient of {place} in group {number} has {n_nan} "
                        f"NaN and {n_inf} infinite values; no parameter was changed. Find the "
                        "operation with autograd.detect_anomaly(), lower the learning rate, or "
                        "clip with nn.utils.clip_grad_norm_"
                    )

    # --- sparse gradients -------------------------------------------------------------------------

    def takes_rows(self, group: dict[str, Any]) -> bool:
        """Whether a row whose gradient is zero stays as it is, so that a step needs the others
        alone."""
        return False

    def _place(self, group: dict[str, Any], p: Tensor) -> str:
        i = next(i for i, q in enumerate(group["params"]) if q is p)
        name = f" {group['param_names'][i]!r}" if "param_names" in group else ""
        return f"parameter {i}{name} of shape {tuple(p.shape)}"

    def update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Applies the rule to parameters of a group, to all that are at the same step at once."""
        names = self.states(group)
        held = [self.state[p] for p in params]
        try:
            arrays = [[state[name].array for state in held] for name in names]
            keys = self._count(held, [False] * len(held))
        except KeyError:  # a first step
            fresh = [self._make_state(group, p, names) for p in params]
            arrays = [[state[name].array for state in held] for name in names]
            keys = self._count(held, fresh)
        if keys.count(keys[0]) == len(keys):
            self._update_alike(group, params, held, names, arrays, keys[0])
            return
        for key in dict.fromkeys(keys):
            some = [i for i, other in enumerate(keys) if other == key]
            few, theirs = [params[i] for i in some], [held[i] for i in some]
            columns = [[column[i] for i in some] for column in arrays]
            self._update_alike(group, few, theirs, names, columns, key)

    def _count(self, held: list[Any], fresh: list[bool]) -> list[Any]:
        """The number of the step of each parameter; with its scalar states, if there are any."""
        if self.keeps_step:
            steps = [state["step"] + 1 for state in held]
            for state, step in zip(held, steps, strict=True):
                state["step"] = step
        else:
            steps = [1 if new else 2 for new in fresh]
        if not self.scalar_states:
            return steps
        scalars = [[state[name] for state in held] for name in self.scalar_states]
        return list(zip(steps, *scalars, strict=True))

    def _update_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        held: list[Any],
        names: tuple[str, ...],
        arrays: list[list[Any]],
        key: Any,
    ) -> None:
        """Applies the rule to parameters that are at the same step, with the same scalar states."""
        constants, rates = self.numbers(group, params, key)
        for watcher in watchers:
            watcher(self, group, params, held)
        if group.get("differentiable"):
            for i, p in enumerate(params):
                lr = rates if isinstance(rates, float) else rates[i]
                with enable_grad():
                    self._update_recorded(p, lr, names, constants)
        else:
            self._update_together(params, rates, arrays, constants)
        if self.scalar_states:
            self.advance_scalars(group, held, key)

    def numbers(self, group: dict[str, Any], params: list[Tensor], key: Any) -> tuple[Any, Any]:
        """The constants and the rates of a step, by its number (and its scalar states)."""
        if self.scalar_states:
            scalars = dict(zip(self.scalar_states, key[1:], strict=True))
            return self.constants(group, key[0], **scalars), self._rates(group, params)
        return self.constants(group, key), self._rates(group, params)

    def advance_scalars(self, group: dict[str, Any], held: list[Any], key: Any) -> None:
        """The scalar states go on to the next step."""
        scalars = dict(zip(self.scalar_states, key[1:], strict=True))
        new = self.advance(group, key[0], **scalars)
        for state in held:
            state.update(new)

    def _make_state(self, group: dict[str, Any], p: Tensor, names: tuple[str, ...]) -> bool:
        """Makes the state that a parameter does not have; whether its tensors are new."""
        state = self.state[p]
        fresh = [name for name in names if name not in state]
        for name in fresh:
            with enable_grad() if group.get("differentiable") else no_grad():
                state[name] = self.new_state(name, p, group)
        for name in self.scalar_states:
            if name not in state:
                state[name] = self.new_scalar(name, group)
        if self.keeps_step:
            state.setdefault("step", 0)
        return bool(fresh)

    def _update_together(
        self, params: list[Tensor], rates: Any, arrays: list[list[Any]], constants: dict[str, Any]
    ) -> None:
        """One call for all parameters."""
        if not isinstance(rates, float):
            rates = [
                r.array if r.array.shape == p.array.shape else expand(r, *p.shape).array
                for r, p in zip(rates, params, strict=True)
            ]
        values, grads = [p.array for p in params], [p._grad.array for p in params]
        K.write_updates(self.rule, values, grads, rates, arrays, constants)
        touch_all(params)

    def _update_recorded(self, p: Tensor, lr: Any, names: Sequence[str], constants: Any) -> None:
        """One parameter's update, which can itself be differentiated."""
        state = self.state[p]
        # A copy goes into the rule, whose history then does not need what p held before.
        values = [clone(p), p._grad, *[state[name] for name in names]]
        if p.dtype.is_complex:  # pairs of real numbers, as everywhere
            rate = real(lr) if isinstance(lr, Tensor) else lr
            parts = [
                self.rule(x[0], x[1], rate, *x[2:], **constants)
                for x in ([real(v) for v in values], [imag(v) for v in values])
            ]
            new: Sequence[Any] = [complex(a, b) for a, b in zip(*parts, strict=True)]
        else:
            new = self.rule(values[0], values[1], lr, *values[2:], **constants)
        state.update(zip(names, new[1:], strict=True))
        assign(p, new[0], f"{self._name}.step")

    def _rates(self, group: dict[str, Any], params: list[Tensor], each: bool = False) -> Any:
        """The learning rate of these parameters: a number, or a tensor for each."""
        lr = group.get("lr", 0.0)
        if lr.__class__ is float and not each:
            return lr
        if not each and not isinstance(lr, (list, tuple)):
            if not isinstance(lr, Tensor) or (lr.numel() == 1 and not group.get("differentiable")):
                return float(lr)
        if not isinstance(lr, (list, tuple)):
            chosen: Sequence[Any] = [lr] * len(params)
        elif len(lr) == len(params):  # all of the group, in its order
            chosen = lr
        else:
            of = {id(p): rate for p, rate in zip(group["params"], lr, strict=True)}
            chosen = [of[id(p)] for p in params]
        return [_rate_of(p, r) for p, r in zip(params, chosen, strict=True)]

    # --- hooks ------------------------------------------------------------------------------------

    def register_step_pre_hook(
        self, hook: Callable[[Self, tuple[Any, ...], dict[str, Any]], None]
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before every step."""
        return self._register("step_pre", hook)

    def register_step_post_hook(
        self, hook: Callable[[Self, tuple[Any, ...], dict[str, Any]], None]
    ) -> RemovableHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after every step."""
        return self._register("step_post", hook)

    def _call_hooks(self, kind: str, closure: Callable[[], object] | None) -> None:
        if self._hooks[kind]:
            cannot_repeat("a hook of an optimizer is called")
        for hook in tuple(self._hooks[kind].values()):
            if hook(self, (closure,), {}) is not None:
                raise RuntimeError(
                    f"{self._name}: a hook of a step returned a value; it must return None (to "
                    "change the closure, wrap it)"
                )

    def _register(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        hooks = self._hooks[kind]
        key = max(hooks, default=0) + 1
        hooks[key] = hook
        return RemovableHandle(hooks, key)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_hooks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hooks = defaultdict(OrderedDict)

    def __repr__(self) -> str:
        text = f"{self._name} ("
        for i, group in enumerate(self.param_groups):
            settings = [f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params"]
            text += f"\nParameter Group {i}\n" + "".join(settings)
        return text + ")"
