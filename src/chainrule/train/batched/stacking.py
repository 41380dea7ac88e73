"""Many networks of one architecture as one: every tensor with one more dimension in front."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.func import vmap
from chainrule.nn.parameter import is_lazy
from chainrule.ops.core.inplace import touch_all
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.sampling import batch_draw
from chainrule.ops.shape.stacking import stack
from chainrule.random import Streams
from chainrule.tensor import Tensor

__all__ = ["Lists", "Stack", "architecture", "is_steady"]

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
Function = Callable[..., Lists]  # of the template and the arguments of one network
Place = tuple[dict[str, Any], str]  # the dictionary that holds a tensor, and its key there


class Stack:
    """Networks of one architecture as one network, computed by :func:`chainrule.func.vmap`.

    ``tensors`` holds parameters and buffers by name, stacked along dimension 0; those that are
    ``learned`` are leaves that require gradients. The first network is the template: its forward
    runs, with the tensors of all. ``steady`` says that it does the same each time, so that it draws
    always or never.
    """

    def __init__(self, models: Sequence[nn.Module], steady: bool = False):
        self.template = models[0]
        self.size = len(models)
        self.draws = not steady  # whether calls with streams draw random numbers, or may
        named = [dict(_tensors(m)) for m in models]
        self.tensors = {k: stack([tensors[k].detach() for tensors in named]) for k in named[0]}
        self.learned = [k for k, t in named[0].items() if t.requires_grad]
        self.buffers = [k for k, _ in self.template.named_buffers()]
        self.places = {k: _places(self.template, t) for k, t in named[0].items()}
        self._modes = {mode: _modes(self.template.train(mode)) for mode in (False, True)}
        self._require_gradients()

    def _require_gradients(self) -> None:
        for name in self.learned:
            self.tensors[name].requires_grad_()

    def train(self, mode: bool = True) -> None:
        """Training mode (or evaluation) of the template."""
        if any([type(m).train is not nn.Module.train for m in self.template.modules()]):
            self.template.train(mode)
            return
        # Without notice: what is recorded in a mode is called in that mode alone.
        for settings, own in self._modes[mode]:
            settings["training"] = own

    @property
    def parameters(self) -> list[Tensor]:
        """The stacked parameters that are learned."""
        return [self.tensors[name] for name in self.learned]

    def call(
        self,
        function: Function,
        args: Sequence[Any],
        shared: Sequence[bool],
        streams: Streams | None = None,
    ) -> tuple[Lists, list[Tensor]]:
        """``function(template, *args)`` of every network, its results stacked; and the buffers as
        it leaves them.

        Args:
            function: returns two lists of tensors.
            args: tensors with one entry for each network; or one for all, where ``shared``.
            shared: for each of ``args``; None is always shared.
            streams: from which each network draws its random numbers.
        """

        def one(values: list[Tensor], *args: Any) -> tuple[Lists, list[Tensor]]:
            with self._replaced(values):
                result = function(self.template, *args)
                return result, [_held(self.places[name]) for name in self.buffers]

        dims = [None if s or a is None else 0 for a, s in zip(args, shared, strict=True)]
        mapped = vmap(one, in_dims=(0, *dims), randomness="different")

        def draw(shape: tuple[int, ...], sampler: Callable[..., Tensor]) -> Tensor:
            self.draws = self.draws or streams is not None
            return _drawn(streams, shape, sampler)

        batch_draw.append(draw)
        try:
            found: tuple[Lists, list[Tensor]] = mapped(list(self.tensors.values()), *args)
        finally:
            batch_draw.pop()
        return found

    def keep_buffers(self, values: Sequence[Tensor]) -> None:
        """Takes over buffers as a call left them."""
        held = [self.tensors[name] for name in self.buffers]
        for t, value in zip(held, values, strict=True):
            if value.array is not t.array:
                K.write(t.array, value.array)
        touch_all(held)

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
        """Goes on with some of the networks only, in new tensors."""
        chosen = as_tensor(list(numbers))
        self.tensors = {k: clone(t.detach()[chosen]) for k, t in self.tensors.items()}
        self.size = len(numbers)
        self._require_gradients()

    @no_grad()
    def repeat(self, i: int, j: int) -> None:
        """Has the i-th network be as the j-th is, with its gradient."""
        for t in self.tensors.values():
            for held in (t.detach(), t.grad):
                if held is not None:
                    held[i] = held[j]


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def _modes(model: nn.Module) -> list[tuple[dict[str, Any], bool]]:
    """The settings of each module, and its mode."""
    return [(vars(m), m.training) for m in model.modules()]


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
