"""Many networks of one architecture as one: every tensor with one more dimension in front."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from operator import add
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.autograd.nested import flatten, map_tree
from chainrule.func import vmap
from chainrule.nn.parameter import is_lazy
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.reduce.order import max as max_of
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.creation.sampling import batch_draw
from chainrule.ops.shape.stacking import stack
from chainrule.random import Streams
from chainrule.tensor import Tensor
from chainrule.train.batched.program import Program

__all__ = ["Stack", "architecture", "is_steady"]

_NO_SETTINGS = (
    "_parameters",
    "_buffers",
    "_modules",
    "_init_args",
    "_load_pre_hooks",
    "_load_post_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
)
# Two lists: losses that are added up and differentiated, and other results.
Lists = tuple[list[Tensor], list[Tensor]]
Answer = tuple[Lists, list[Tensor]]  # the results, and the buffers as they are left
Function = Callable[..., Lists]  # of the template and the arguments of one network
Place = tuple[dict[str, Any], str]  # the dictionary that holds a tensor, and its key there


class Stack:
    """Networks of one architecture as one network, computed by :func:`chainrule.func.vmap`.

    ``tensors`` holds parameters and buffers by name, stacked along dimension 0; those that are
    ``learned`` are leaves that require gradients. The first network is the template: its forward
    runs, with the tensors of all. ``steady`` says that what is called does the same each time, so
    that its operations may be repeated without it.
    """

    def __init__(self, models: Sequence[nn.Module], steady: bool = False):
        self.template = models[0]
        self.size = len(models)
        self.steady = steady
        self.plans: dict[Any, _Plan] = {}
        named = [dict(_tensors(m)) for m in models]
        self.tensors = {k: stack([tensors[k].detach() for tensors in named]) for k in named[0]}
        self.learned = [k for k, t in named[0].items() if t.requires_grad]
        self.buffers = [k for k, _ in self.template.named_buffers()]
        self.places = {k: _places(self.template, t) for k, t in named[0].items()}
        self._require_gradients()

    def _require_gradients(self) -> None:
        for name in self.learned:
            self.tensors[name].requires_grad_()

    @property
    def parameters(self) -> list[Tensor]:
        """The stacked parameters that are learned."""
        return [self.tensors[name] for name in self.learned]

    def evaluate(self, function: Function, args: Sequence[Any], shared: Sequence[bool]) -> Lists:
        """``function(template, *args)`` of every network, its results stacked.

        Args:
            function: returns two lists of tensors.
            args: tensors with one entry for each network; or one for all, where ``shared``.
            shared: for each of ``args``; None is always shared.
        """
        with no_grad():
            return self._answer(_Call(self, function, args, shared, None))[0]

    def differentiate(
        self, function: Function, args: Sequence[Any], shared: Sequence[bool], streams: Streams
    ) -> Lists:
        """The same; the parameters get the gradient of the sum of the first list.

        Each network draws its random numbers from its own stream, and the buffers that the function
        changes are kept.
        """
        result, buffers = self._answer(_Call(self, function, args, shared, streams))
        for name, value in zip(self.buffers, buffers, strict=True):
            self.tensors[name] = value
        return result

    def _answer(self, call: _Call) -> Answer:
        """The first call of a kind is recorded, the second compared, and later ones repeated."""
        if not self.steady:
            return call()
        plan = self.plans.get(call.key)
        if plan is None:
            self.plans[call.key] = plan = _Plan()
        return plan(call)

    @property
    def draws(self) -> bool:
        """Whether a call may draw random numbers; False only if that is certain."""
        plans = list(self.plans.values())
        return any([p.draws for p in plans]) or not any([p.checked for p in plans])

    @contextlib.contextmanager
    def _replaced(self, values: Sequence[Tensor]) -> Iterator[None]:
        """The template with these tensors in place of its own."""
        before = [(holder, key, holder[key]) for ps in self.places.values() for holder, key in ps]
        try:
            for places, value in zip(self.places.values(), values, strict=True):
                for holder, key in places:
                    holder[key] = value
            yield
        finally:
            for holder, key, value in before:
                holder[key] = value

    @no_grad()
    def write(self, i: int, model: nn.Module, tensors: dict[str, Tensor] | None = None) -> None:
        """Gives a network the values of the i-th one (by default the present ones)."""
        values = self.tensors if tensors is None else tensors
        for name, own in _tensors(model):
            own.copy_(values[name].detach()[i])

    def keep(self, numbers: Sequence[int]) -> None:
        """Goes on with some of the networks only; gradients are kept, too."""
        self.plans = {}
        chosen = as_tensor(list(numbers))
        grads = {name: self.tensors[name].grad for name in self.learned}
        self.tensors = {k: clone(t.detach()[chosen]) for k, t in self.tensors.items()}
        self.size = len(numbers)
        self._require_gradients()
        for name, g in grads.items():
            self.tensors[name].grad = None if g is None else g[chosen]


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _places(model: nn.Module, tensor: Tensor) -> list[Place]:
    """Wherever a module holds a tensor: shared ones in several places."""
    return [
        (holder, key)
        for m in model.modules()
        for holder in (m._parameters, m._buffers)
        for key, held in holder.items()
        if held is tensor
    ]


def _held(places: list[Place]) -> Tensor:
    holder, key = places[0]
    return holder[key]


# --- a call of all networks -----------------------------------------------------------------------


class _Call:
    """One call of a function of all networks; with streams, it is differentiated."""

    def __init__(
        self,
        of: Stack,
        function: Function,
        args: Sequence[Any],
        shared: Sequence[bool],
        streams: Streams | None,
    ):
        self.stack, self.function, self.args, self.streams = of, function, args, streams
        self.shared = shared
        self.key = (
            function,
            of.template.training,
            streams is None,
            *shared,
            *[None if a is None else (a.array.shape, a.array.dtype) for a in args],
        )

    @property
    def inputs(self) -> list[Tensor]:
        """All tensors that the call reads."""
        return [*self.stack.tensors.values(), *[a for a in self.args if a is not None]]

    def __call__(self, program: Program | None = None) -> Answer:
        """The result of the function and the buffers as it leaves them, perhaps recorded."""
        of = self.stack

        def one(values: list[Tensor], *args: Any) -> Answer:
            with of._replaced(values):
                result = self.function(of.template, *args)
                return result, [_held(of.places[name]) for name in of.buffers]

        pairs = zip(self.args, self.shared, strict=True)
        dims = [None if s or a is None else 0 for a, s in pairs]
        mapped = vmap(one, in_dims=(0, *dims), randomness="different")
        batch_draw.append(self._draw(program))
        try:
            with nullcontext() if program is None else program.recording():
                found = mapped(list(of.tensors.values()), *self.args)
        finally:
            batch_draw.pop()
        if program is not None:
            program.finish(flatten(found)[0])
        if self.streams is not None:
            self._backward(found[0][0])
        return map_tree(Tensor.detach, found)

    def _draw(self, program: Program | None) -> Callable[..., Tensor]:
        streams = self.streams
        if program is None:
            return functools.partial(_drawn, streams)
        return lambda shape, sampler: program.noted_draw(
            functools.partial(_drawn, streams, shape, sampler)
        )

    def _backward(self, parts: Sequence[Tensor]) -> None:
        for p in self.stack.parameters:
            p.grad = None
        whole = functools.reduce(add, parts)
        if whole.requires_grad:
            whole.backward(ones_like(whole.detach()))

    @contextlib.contextmanager
    def rewound(self) -> Iterator[None]:
        """Draws what follows, and then draws it again."""
        generators = [] if self.streams is None else self.streams.generators
        states = [g.get_state() for g in generators]
        yield
        for g, state in zip(generators, states, strict=True):
            g.set_state(state)


def _drawn(
    streams: Streams | None, shape: tuple[int, ...], sampler: Callable[[tuple[int, ...]], Tensor]
) -> Tensor:
    """Random numbers for each network from its own stream."""
    if streams is None:
        return sampler(shape)
    parts = []
    for i in range(shape[0]):
        streams.select(i)
        parts.append(sampler(shape[1:]))
    return stack(parts)


class _Plan:
    """How calls of one kind are answered: by the function, or by repeating its operations."""

    def __init__(self) -> None:
        self.program: Program | None = None
        self.sizes = (0, 0)  # of the two lists that the function returns
        self.seeds: list[Tensor | None] = []  # the gradients of all that comes out
        self.checked = self.failed = False

    @property
    def draws(self) -> bool:
        return self.failed or self.program is None or self.program.draws > 0

    def __call__(self, call: _Call) -> Answer:
        if self.failed:
            return call()
        if self.program is None:
            self.program = program = Program(call.inputs)
            result = call(program)
            self._describe(*result)
            self.failed = not program.repeatable
            return result
        if self.checked:
            return self._repeat(call, self.program)
        with call.rewound():
            again = flatten(self._repeat(call, self.program))[0]
            grads = _grads(call)
        result = call()
        self.checked = _same([*again, *grads], [*flatten(result)[0], *_grads(call)])
        self.failed = not self.checked
        return result

    def _describe(self, result: Lists, buffers: list[Tensor]) -> None:
        parts, others = result
        self.sizes = (len(parts), len(others))
        self.seeds = [ones_like(p) for p in parts] + [None] * (len(others) + len(buffers))

    def _repeat(self, call: _Call, program: Program) -> Answer:
        """The result of a call by repeating the operations of the first."""
        out = program.forward(call.inputs)
        if call.streams is not None:
            grads = program.backward(self.seeds)
            for t, g in zip(call.stack.tensors.values(), grads, strict=False):
                t._grad = g
        n, m = self.sizes
        return (out[:n], out[n : n + m]), out[n + m :]


def _grads(call: _Call) -> list[Tensor | None]:
    return [p.grad for p in call.stack.parameters]


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether tensors are the same, up to rounding."""
    return all(
        [
            a is b is None or (a is not None and b is not None and _close(a, b))
            for a, b in zip(some, others, strict=True)
        ]
    )


def _close(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or not a.dtype.is_floating_point:
        return a.shape == b.shape and bool(all_of(a == b))
    if not a.numel():
        return True
    digits = {2: 1e-2, 4: 1e-5, 8: 1e-13}.get(b.dtype.itemsize, 1e-13)
    tolerance = digits * float(max_of(b.abs()))
    return bool(all_of(((a - b).abs() <= tolerance) | ((a != a) & (b != b))))


# --- which networks are alike ---------------------------------------------------------------------


def architecture(model: nn.Module) -> str:
    """What networks must have in common to be computed together: all but the values of tensors."""
    lazy = [name for name, p in model.named_parameters() if is_lazy(p)]
    if lazy:
        raise ValueError(
            f"fit_many: the parameters {lazy} have no shape yet; call each model once, or say the "
            "sizes of its layers"
        )
    modules = [(name, type(m), m.training, _settings(m)) for name, m in model.named_modules()]
    tensors = [(k, tuple(t.shape), t.dtype, t.requires_grad) for k, t in _tensors(model)]
    return repr((modules, tensors))


def is_steady(model: nn.Module, functions: Sequence[Any]) -> bool:
    """Whether a model and the functions called with it do the same each time.

    That is known of the library's own; what a user wrote may count its calls.
    """
    if any([m.has_hooks for m in model.modules()]):
        return False
    attributes = [v for m in model.modules() for v in vars(m).values()]
    functions = [*functions, *[v for v in attributes if isinstance(v, types.FunctionType)]]
    known = [*model.modules(), *functions]
    return all([_home(x).split(".")[0] == "chainrule" for x in known])


def _home(x: Any) -> str:
    """The name of the Python module that a function, or the class of an object, comes from."""
    return getattr(x, "__module__", None) or type(x).__module__


def _settings(module: nn.Module) -> list[Any]:
    """The attributes of a module that are no tensors or modules."""
    return [(k, _token(v)) for k, v in sorted(vars(module).items()) if k not in _NO_SETTINGS]


def _token(value: Any) -> Any:
    """Equal for values that mean the same; what is not known to be equal is different."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if isinstance(value, dict):
        return type(value), [(_token(k), _token(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [_token(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(repr(_token(v)) for v in value)
    if isinstance(value, types.FunctionType):  # made anew for each network, perhaps
        cells = [c.cell_contents for c in value.__closure__ or ()]
        return id(value.__code__), _token([value.__defaults__, value.__kwdefaults__, cells])
    return type(value), id(value)
