"""How units go through whole layers, and the run of a model that follows them.

Convolutions, normalizations of channels and recurrent layers are taken as a whole, because what
they compute is known: their ``forward`` is replaced for the run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from chainrule import nn
from chainrule.autograd.levels import new_level
from chainrule.autograd.modes import no_grad
from chainrule.autograd.nested import map_tree
from chainrule.backend import K
from chainrule.graph import Mode, mode
from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.functions import run_layer
from chainrule.nn.utils.parametrize import is_parametrized
from chainrule.ops.creation.like import new_zeros
from chainrule.ops.shape.views import movedim
from chainrule.ops.shape.stacking import cat
from chainrule.regularize.prune.flow import (
    INPUT,
    INTEGER,
    Flow,
    Link,
    Trace,
    front,
    unboxed,
)
from chainrule.regularize.prune.following import follow, link_rows
from chainrule.tensor import Tensor, of_array

__all__ = ["trace_model"]

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
SINGLE = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)  # also without a batch
CHANNEL_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, *SINGLE)
# Layers that keep sizes of their own and whose inside is not known here: all around them stays.
OPAQUE = (
    nn.Bilinear,
    nn.ConvLSTM,
    nn.ConvLSTMCell,
    nn.ConvRNN,
    nn.ConvRNNCell,
    nn.DeepRNN,
    nn.EmbeddingBag,
    nn.PeepholeLSTM,
    nn.RecurrentConv,
    nn.RNNCellBase,
)
Rule = Callable[[Trace, Any, Flow, Callable[..., Any]], Any]


def trace_model(model: Module, inputs: tuple[Any, ...]) -> tuple[Trace, list[Any], Any]:
    """Runs a model in evaluation mode and follows its units.

    Returns the trace, the traced inputs, and the output. Each element of an input is a unit of its
    own at first. The units of the output are pinned.
    """
    trace = Trace(follow)
    for path, module in model.named_modules():
        trace.kinds[path] = type(module).__name__
        for name, t in {**module._parameters, **module._buffers}.items():
            if t is not None:
                trace.names.setdefault(id(t), f"{path}.{name}" if path else name)
                trace.owners.setdefault(id(t), []).append((module, name))
    with no_grad(), new_level(lambda level, t: trace.plain(t)) as level, _replaced(trace, model):
        trace.level = level
        boxed = [_as_input(trace, x, i) for i, x in enumerate(inputs)]
        out = model(*boxed)
        for flow in _flows(out):
            trace.pin(flow, "the output of the model", named=False)
    return trace, boxed, out


def _as_input(trace: Trace, x: Any, number: int) -> Any:
    if not isinstance(x, Tensor):
        return x
    units = trace.new_units(x.numel(), f"{INPUT} {number}" if number else INPUT)
    labels = K.asarray(units, INTEGER).reshape(x.array.shape)
    return of_array(Flow(trace, x.detach(), labels, K.full(x.array.shape, False, bool)))


def _flows(out: Any) -> Iterator[Flow]:
    if isinstance(out, Tensor) and isinstance(out.array, Flow):
        yield out.array
    elif isinstance(out, (tuple, list)):
        for part in out:
            yield from _flows(part)
    elif isinstance(out, dict):
        yield from _flows(list(out.values()))


@contextlib.contextmanager
def _replaced(trace: Trace, model: Module) -> Iterator[None]:
    """The layers that are taken as a whole with another ``forward``, for a while."""
    changed: list[Module] = []
    handles = []
    for path, module in model.named_modules():
        handles.append(
            module.register_forward_pre_hook(
                lambda m, args, path=path: trace.places.append(path), prepend=True
            )
        )
        handles.append(module.register_forward_hook(_leave(trace), always_call=True))
        rule = _rule_for(module)
        if isinstance(module, OPAQUE):
            module.__dict__["forward"] = _unseen(trace, module)
            changed.append(module)
        elif rule is not None:
            module.__dict__["forward"] = _as_a_whole(trace, module, rule)
            changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.__dict__["forward"]
        for handle in handles:
            handle.remove()


def _leave(trace: Trace) -> Callable[..., None]:
    def hook(module: Any, args: Any, out: Any) -> None:
        trace.places.pop()

    return hook


def _rule_for(module: Module) -> Rule | None:
    if is_parametrized(module):  # computed weights cannot be cut
        return None
    if isinstance(module, (*CONVOLUTIONS, *TRANSPOSED)):
        return _convolved
    if isinstance(module, CHANNEL_NORMS):
        return _normalized
    if isinstance(module, (nn.RNN, nn.GRU, nn.LSTM)) and not module.proj_size:
        return _recurrent
    if isinstance(module, nn.Embedding):
        return _embedded
    return _prelu if isinstance(module, nn.PReLU) else None


def _as_a_whole(trace: Trace, module: Any, rule: Rule) -> Callable[..., Any]:
    forward = module.forward

    def outside(*args: Any, **kwargs: Any) -> Any:
        """The layer on plain values."""
        with _outside():
            return forward(*args, **kwargs)

    def traced(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not (isinstance(input, Tensor) and isinstance(input.array, Flow)):
            return forward(input, *args, **kwargs)
        if args or any(v is not None for v in kwargs.values()):
            return forward(input, *args, **kwargs)  # by its operations: more than an input
        return rule(trace, module, input.array, outside)

    return traced


def _unseen(trace: Trace, module: Any) -> Callable[..., Any]:
    """The forward of a layer whose inside is not followed."""
    forward = module.forward

    def opaque(*args: Any, **kwargs: Any) -> Any:
        for flow in _flows([*args, *kwargs.values()]):
            trace.pin(flow, f"the layer {trace.place}, which is not followed")
        with _outside():
            out = forward(*map_tree(unboxed, args), **map_tree(unboxed, kwargs))
        return map_tree(lambda t: of_array(trace.unknown(t)) if isinstance(t, Tensor) else t, out)

    return opaque


# --- layers ---------------------------------------------------------------------------------------


def _convolved(trace: Trace, module: Any, flow: Flow, outside: Callable[..., Any]) -> Tensor:
    out = outside(flow.value)
    dim = len(flow.shape) - module.nd - 1
    path = trace.places[-1]
    if module.groups > 1:
        trace.pin(flow, f"the groups of {trace.place}")
        count, still = module.out_channels, bool(flow.still.all())
        units = trace.new_units(count, path)
        found = trace.along(out, dim, units, [still] * count)
        trace.pin(found, f"the groups of {trace.place}")
        return of_array(found)
    units = trace.new_units(module.out_channels, path)
    constants = trace.constants(flow, dim)
    uniform = not module.transposed and (
        module.padding_mode != "zeros" or module.padding == "valid" or not _pads(module.padding)
    )
    if not uniform:  # at the border a constant meets zeros
        constants = [c if c == 0 else None for c in constants]
    row, column = (1, 0) if module.transposed else (0, 1)
    columns = trace.slots(flow, dim)
    link = Link(module.weight, row, column, units, columns, constants, (module, "bias"))
    still_rows = link_rows(trace, link, constants)
    return of_array(trace.along(out, dim, units, still_rows))


def _pads(padding: Any) -> bool:
    return padding == "same" or any(n != 0 for n in padding)


def _normalized(trace: Trace, module: Any, flow: Flow, outside: Callable[..., Any]) -> Tensor:
    """Each channel by itself; a factor of zero makes it still."""
    out = outside(flow.value)
    dim = 0 if isinstance(module, SINGLE) and len(flow.shape) == module.ndims[0] else 1
    units = trace.slots(flow, dim)
    for name in ("weight", "bias", "running_mean", "running_var"):
        t = getattr(module, name)
        if t is not None:
            trace.bind(t, 0, units)
    if module.weight is None and module.running_mean is None:
        trace.counts.append((module, "num_features", units))
    still = flow.still
    if module.weight is not None:
        shape = [1] * len(flow.shape)
        shape[dim] = -1
        still = still | (module.weight.detach().array == 0).reshape(shape)
    return of_array(Flow(trace, out, flow.labels, still))


def _prelu(trace: Trace, module: Any, flow: Flow, outside: Callable[..., Any]) -> Tensor:
    if module.weight.numel() > 1:
        trace.bind(module.weight, 0, trace.slots(flow, min(1, len(flow.shape) - 1)))
    return of_array(Flow(trace, outside(flow.value), flow.labels, flow.still))


def _embedded(trace: Trace, module: Any, flow: Flow, outside: Callable[..., Any]) -> Tensor:
    out = outside(flow.value)
    trace.pin(flow, f"the indices of {trace.place}", named=False)
    units = trace.new_units(module.embedding_dim, trace.places[-1])
    trace.bind(module.weight, 1, units)
    return of_array(trace.along(out, out.ndim - 1, units, [False] * len(units)))


# --- recurrent layers -----------------------------------------------------------------------------


def _recurrent(trace: Trace, module: Any, flow: Flow, outside: Callable[..., Any]) -> Any:
    """All layers and directions; the hidden units of each are units of the network."""
    output, states = outside(flow.value)
    batched = len(flow.shape) == 3
    level = _Level(trace, module, flow)
    hidden: list[list[int]] = []
    for layer in range(module.num_layers):
        hidden += level.run(layer)
    trace.equal.append(hidden)
    top = trace.along(output, output.ndim - 1, level.units, level.still)
    last = [_last_states(trace, s, hidden, batched) for s in _listed(states)]
    return of_array(top), last[0] if len(last) == 1 else tuple(last)


def _listed(states: Any) -> list[Tensor]:
    return list(states) if isinstance(states, tuple) else [states]


def _last_states(trace: Trace, state: Tensor, hidden: list[list[int]], batched: bool) -> Tensor:
    """(layers * directions, N, H), each with units of its own."""
    labels = K.asarray(hidden, INTEGER)
    labels = labels.reshape(labels.shape[0], 1, -1) if batched else labels
    shape = state.array.shape
    still = K.full(shape, False, bool)
    return of_array(Flow(trace, state, K.broadcast_to(labels, shape), still))


class _Level:
    """The input of a recurrent layer: its values, units, and which of them are still."""

    def __init__(self, trace: Trace, module: Any, flow: Flow):
        self.trace, self.module = trace, module
        x = flow.value
        if x.ndim == 3 and module.batch_first:
            x = movedim(x, 0, 1)
        self.x = x if x.ndim == 3 else x.unsqueeze(1)
        self.units = trace.slots(flow, -1)
        self.constants = trace.constants(flow, -1)
        self.still = [c is not None for c in self.constants]

    def run(self, layer: int) -> list[list[int]]:
        """Goes on to the next layer; the units of its directions."""
        found = [self._direction(layer, r) for r in range(2 if self.module.bidirectional else 1)]
        with _outside():
            self.x = cat([h for h, _, _ in found], -1)
        self.units = [u for _, units, _ in found for u in units]
        self.still = [s for _, _, still in found for s in still]
        values = front(self.x.array, -1)
        self.constants = [
            float(row[0]) if s and bool((row == row[0]).all()) else None
            for s, row in zip(self.still, values, strict=True)
        ]
        return [units for _, units, _ in found]

    def _direction(self, layer: int, reverse: int) -> tuple[Tensor, list[int], list[bool]]:
        module, trace = self.module, self.trace
        suffix = f"_l{layer}" + ("_reverse" if reverse else "")
        size, path = module.hidden_size, trace.places[-1]
        units = trace.new_units(size, path + suffix)
        w_ih, w_hh = getattr(module, "weight_ih" + suffix), getattr(module, "weight_hh" + suffix)
        b_ih = getattr(module, "bias_ih" + suffix, None)
        b_hh = getattr(module, "bias_hh" + suffix, None)
        with _outside():
            start = [new_zeros(self.x, (self.x.shape[1], size))] * 2
            kind = getattr(module, "nonlinearity", "")
            h = run_layer(
                module.kind,
                kind,
                self.x,
                start[: 2 if module.kind == "LSTM" else 1],
                (w_ih, w_hh, b_ih, b_hh, None),
                None,
                bool(reverse),
            )[0]
        rows = units * (w_ih.shape[0] // size)
        bias = (module, "bias_ih" + suffix) if b_ih is not None else None
        constants = self.constants if bias else [c if c == 0 else None for c in self.constants]
        zero, still = self._still_units(w_ih, w_hh, h)
        links = [
            Link(w_ih, 0, 1, rows, self.units, constants, bias, path),
            Link(w_hh, 0, 1, rows, units, [0.0 if z else None for z in zero], None, path),
        ]
        for link in links:
            trace.bind(link.weight, 0, rows)
            trace.bind(link.weight, 1, link.columns)
        trace.links.extend(links)
        for b in (b_ih, b_hh):
            if b is not None:
                trace.bind(b, 0, rows)
        return h, units, still

    def _still_units(self, w_ih: Any, w_hh: Any, h: Tensor) -> tuple[list[bool], list[bool]]:
        """Which hidden units are always zero, and which do not depend on the input.

        A unit of an LSTM or GRU that starts from zero stays there if its candidate state is zero;
        one of a simple network also rests at another number, if no moving unit leads to it.
        """
        size, kind = self.module.hidden_size, self.module.kind
        part = slice(0, size) if kind == "RNN" else slice(2 * size, 3 * size)
        ins, outs = w_ih.detach().array[part] != 0, w_hh.detach().array[part] != 0
        moving = ~K.asarray(self.still)
        from_input = (ins & moving).any(axis=1)
        zero = ~from_input & ~(front(h.array, -1) != 0).any(axis=1)
        while True:  # those that only units which are always zero lead to
            smaller = zero & ~(outs & ~zero).any(axis=1)
            if not (smaller != zero).any():
                break
            zero = smaller
        still = zero
        if kind == "RNN":
            still = zero | (~from_input & ~(outs & ~zero).any(axis=1))
        return zero.tolist(), still.tolist()


@contextlib.contextmanager
def _outside() -> Iterator[None]:
    flags = mode.flags
    mode.flags = flags & ~Mode.BOXED
    try:
        yield
    finally:
        mode.flags = flags
