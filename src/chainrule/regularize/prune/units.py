"""Units, channels, recurrent units and inputs by what they do to the loss: skeletonization."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.func import hvp, value_and_grad
from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.nn.module.names import Where, check_where, describe, matches
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.logic import logical_and
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import index_select
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.index.scatter import scatter
from chainrule.ops.shape.views import reshape
from chainrule.backend import K, dtypes
from chainrule.regularize.prune.choosing import Step, check_scope, to_prune
from chainrule.regularize.prune.compact import example_for
from chainrule.regularize.prune.flow import INPUT, Flow, Trace, varying
from chainrule.regularize.prune.layers import trace_model
from chainrule.regularize.prune.masks import put_mask, remove, weights_of
from chainrule.regularize.prune.problem import Problem
from chainrule.tensor import Tensor
from chainrule.typing import Array, Inputs

__all__ = ["Unit", "remove_units", "skeletonize", "unit_relevance", "units"]

METHODS = ("gradient", "curvature", "ablation")


@dataclass
class Unit:
    """A unit, channel, recurrent unit or input: where it comes from and the tensors it has part in.

    ``parts`` are (parameter, dimension, place) of all its entries, ``outgoing`` those by which
    other units, or the output, see it. Units that a residual sum ties are one, named by the first
    of them; the others are ``tied``.
    """

    layer: str
    index: int
    parts: list[tuple[str, int, int]] = field(default_factory=list)
    outgoing: list[tuple[str, int, int]] = field(default_factory=list)
    tied: list[tuple[str, int]] = field(default_factory=list)

    @property
    def places(self) -> list[tuple[str, int]]:
        """All its layers, and where in each it is."""
        return [(self.layer, self.index), *self.tied]


def units(model: Module, example_input: Inputs | None = None, where: Where = None) -> list[Unit]:
    """The units of a network that can be removed, found by one run on an example.

    Args:
        model: any module.
        example_input: as for :func:`compact`.
        where: which layers, by pattern: that of a linear, convolutional or recurrent layer
            (``"lstm_l0"``: layer 0 of ``lstm``), or "input"; by default all but the input.

    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    >>> [(u.layer, u.index, u.outgoing) for u in prune.units(net)]
    [('0', 0, [('2.weight', 1, 0)]), ('0', 1, [('2.weight', 1, 1)])]
    """
    return _units("units", model, example_input, where)


def _units(op: str, model: Module, example_input: Inputs | None, where: Where) -> list[Unit]:
    check_where(op, where)
    plain = remove(copy.deepcopy(model))
    example = example_for(op, model, example_input)
    with evaluating(plain):
        trace, boxed, _ = trace_model(plain, example)
    found = _collect(trace)
    known = {trace.root(u): unit for u, unit in found.items()}
    _place_inputs(trace, boxed, known)
    every = sorted(known.values(), key=lambda u: (u.layer == INPUT, u.layer, u.index))
    layers = list(dict.fromkeys([u.layer for u in every]))
    if where is None:
        chosen = [u for u in every if u.layer != INPUT]
    else:
        chosen = [u for u in every if any(matches(layer, where) for layer, _ in u.places)]
    if not chosen:
        if where is not None:
            raise ValueError(
                f"{op}: {describe(where)} matches no layer whose units can be removed; these are "
                f"{layers}"
            )
        raise ValueError(f"{op}: there are no hidden units that can be removed, only {layers}")
    return chosen


def _collect(trace: Trace) -> dict[int, Unit]:
    """Units that are not pinned and that something reads, by root."""
    pinned = {trace.root(u) for u in trace.pinned}
    found: dict[int, Unit] = {}
    for u, (layer, index) in enumerate(trace.made_by):
        root = trace.root(u)
        if root in pinned:
            continue
        if root not in found:
            found[root] = Unit(layer, index)
        elif layer != found[root].layer:
            found[root].tied.append((layer, index))
    for binding in trace.bindings.values():
        name = trace.names[id(binding.tensor)]
        for place, u in enumerate(binding.units):
            if u >= 0 and trace.root(u) in found:
                found[trace.root(u)].parts.append((name, binding.dim, place))
    for link in trace.links:
        name = trace.names[id(link.weight)]
        for place, u in enumerate(link.columns):
            if u >= 0 and trace.root(u) in found:
                part = (name, link.column_dim, place)
                if part not in found[trace.root(u)].outgoing:
                    found[trace.root(u)].outgoing.append(part)
    return {root: unit for root, unit in found.items() if unit.outgoing}


def _place_inputs(trace: Trace, boxed: Sequence[Any], known: dict[int, Unit]) -> None:
    """Numbers the inputs by their place along the dimension in which they differ."""
    for x in boxed:
        flow = x.array if isinstance(x, Tensor) else None
        if not isinstance(flow, Flow):
            continue
        roots = K.asarray([trace.root(u) for u in flow.labels.flat]).reshape(flow.shape)
        dims = varying(roots)
        if len(dims) > 1:  # not places along one dimension
            for root in set(roots.flat):
                known.pop(int(root), None)
            continue
        first = roots.reshape(-1) if not dims else _line(roots, dims[0])
        for place, root in enumerate(first.tolist()):
            if root in known:
                known[root].index = place


def _line(array: Array, dim: int) -> Array:
    return array[tuple([slice(None) if d == dim else 0 for d in range(array.ndim)])]


# --- relevance ------------------------------------------------------------------------------------


def unit_relevance(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    *,
    method: str = "curvature",
    where: Where = None,
) -> dict[str, Tensor]:
    """How much the loss rises if a unit is removed, for each unit of each layer, by name.

    A gate a_u on what unit u sends out, 1 now and 0 when it is removed, multiplies its outgoing
    weights v_u. So dL/da_u = g.v_u, and removal changes the loss by -g.v_u + 1/2 v_u^T H v_u.

    Args:
        model: any module; it is looked at in evaluation mode.
        loss: ``loss(output, target)``.
        data: ``(inputs, target)``.
        method: "gradient": -dL/da_u (Mozer, Smolensky 1989; near a minimum of the loss it is near
            zero for all units, so take another loss there, such as the absolute error);
            "curvature": with the term of second order; "ablation": measured, by removing each.
        where: which layers, as in :func:`units`; ``"input"`` for the inputs.

    A unit that cannot be removed has relevance infinity, one that is removed already 0.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 1, bias=False)
    >>> net.weight.data = chainrule.tensor([[1.0, 2.0]])
    >>> x = chainrule.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> half_squares = lambda y, t: 0.5 * ((y - t) ** 2).sum()
    >>> prune.unit_relevance(net, half_squares, (x, net(x).detach()), where="input")
    {'input': tensor([4.5000, 2.0000])}
    """
    op = "unit_relevance"
    chosen = _units(op, model, _first_two(data), where)
    scores = _scores(op, model, loss, data, chosen, method)
    sizes: dict[str, int] = {}
    for u in chosen:
        sizes[u.layer] = max(sizes.get(u.layer, 0), u.index + 1)
    rows = {layer: [math.inf] * size for layer, size in sizes.items()}
    for u, score in zip(chosen, scores, strict=True):
        rows[u.layer][u.index] = score
    return {layer: tensor(row) for layer, row in rows.items()}


def _first_two(data: Any) -> tuple[Any, ...]:
    """Two samples of the inputs: enough to follow the units."""
    inputs = data[0] if isinstance(data, (tuple, list)) and len(data) == 2 else data
    parts = inputs if isinstance(inputs, tuple) else (inputs,)
    return tuple([x[:2] if isinstance(x, Tensor) else x for x in parts])


def _scores(
    op: str, model: Module, loss: Any, data: Any, chosen: Sequence[Unit], method: str
) -> list[float]:
    if method not in METHODS:
        raise ValueError(f"{op}: method must be one of {METHODS}, got {method!r}")
    names = {name for u in chosen for name, _, _ in u.outgoing}
    problem = Problem(op, model, loss, data, lambda name: name in names)
    place = _Places(problem)
    w = problem.vector()
    with evaluating(model):
        start, g = value_and_grad(problem.at)(w)
        scores = []
        for u in chosen:
            at = place.of(u.outgoing)
            if at.numel() == 0:
                scores.append(0.0)
                continue
            part = index_select(w, 0, at)
            v = scatter(zeros(w.shape, dtype=w.dtype, device=w.device), 0, at, part)
            if method == "ablation":
                with no_grad():
                    scores.append(float(problem.at(w - v)) - float(start))
                continue
            change = -float(matmul(g, v))
            if method == "curvature":
                change += 0.5 * float(matmul(v, hvp(problem.at, (w,), (v,))))
            scores.append(change)
    return scores


class _Places:
    """Where the entries of a slice stand among the weights that are left."""

    def __init__(self, problem: Problem):
        active = {int(i): k for k, i in enumerate(problem.index.tolist())}
        self.numbers: dict[str, Any] = {}
        start = 0
        for w in problem.weights:
            size = w.parameter.numel()
            numbers = K.asarray([active.get(i, -1) for i in range(start, start + size)])
            for name in w.names:
                self.numbers[name] = numbers.reshape(tuple(w.parameter.shape))
            start += size

    def of(self, parts: Iterable[tuple[str, int, int]]) -> Tensor:
        found: set[int] = set()
        for name, dim, place in parts:
            numbers = self.numbers[name]
            row = numbers[(slice(None),) * dim + (place,)]
            found.update(int(i) for i in row.flat if i >= 0)
        return tensor(sorted(found), dtype=dtypes.int64)


# --- removal --------------------------------------------------------------------------------------


def remove_units(
    model: Module, indices: Mapping[str, Sequence[int]], example_input: Inputs | None = None
) -> Step:
    """Prunes whole units by layer and place, with everything that belongs to them.

    Masked are the weights into a unit, its bias, its entries of a batch normalization, and the
    weights out of it: so it is gone from the function, and :func:`compact` can cut it out.

    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    >>> _ = prune.remove_units(net, {"0": [1, 2]})
    >>> prune.compact(net)[0]
    Linear(in_features=3, out_features=2, bias=True)
    """
    op = "remove_units"
    every = _units(op, model, example_input, "*")
    by_place = {place: u for u in every for place in u.places}
    chosen = []
    for layer, places in indices.items():
        for i in places:
            if (layer, int(i)) not in by_place:
                known = sorted({name for name, _ in by_place})
                own = sorted(i for name, i in by_place if name == layer)
                raise ValueError(
                    f"{op}: there is no unit {i} of layer {layer!r} that can be removed; "
                    + (f"it has {own}" if own else f"the layers are {known}")
                )
            chosen.append(by_place[(layer, int(i))])
    chosen = list({id(u): u for u in chosen}.values())
    _mask(op, model, chosen)
    return Step(op, len(chosen), len(_left(model, every)), len(every))


def skeletonize(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    sparsity: float | None = None,
    *,
    count: int | None = None,
    method: str = "curvature",
    scope: str = "global",
    where: Where = None,
) -> Step:
    """Removes the units (or, with ``where="input"``, inputs) of lowest relevance.

    The arguments are those of :func:`unit_relevance`; ``sparsity`` and ``count`` are those of
    :func:`magnitude`, in units. Each layer keeps one unit at least.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    >>> x, y = chainrule.randn(10, 3), chainrule.randn(10, 1)
    >>> step = prune.skeletonize(net, nn.functional.mse_loss, (x, y), count=2)
    >>> step.pruned, prune.compact(net)[0].out_features
    (2, 2)
    """
    op = "skeletonize"
    check_scope(op, scope)
    every = _units(op, model, _first_two(data), where)
    left = _left(model, every)
    layers = list(dict.fromkeys([u.layer for u in every])) if scope == "layer" else [None]
    before = Problem(op, model, loss, data, "*").value()
    scores = dict(zip(map(id, left), _scores(op, model, loss, data, left, method), strict=True))
    chosen: list[Unit] = []
    for layer in layers:
        own = [u for u in every if layer in (None, u.layer)]
        rest = [u for u in left if layer in (None, u.layer)]
        number = to_prune(op, sparsity, count, len(rest), len(own))
        chosen += _lowest(op, rest, scores, number)
    _mask(op, model, chosen)
    after = Problem(op, model, loss, data, "*").value()
    predicted = sum(scores[id(u)] for u in chosen)
    left_now = len(left) - len(chosen)
    return Step(op, len(chosen), left_now, len(every), predicted, before, after, method)


def _lowest(op: str, rest: Sequence[Unit], scores: Mapping[int, float], number: int) -> list[Unit]:
    """The units of lowest score, without the last one of any layer."""
    spare = {u.layer: -1 for u in rest}
    for u in rest:
        spare[u.layer] += 1
    if number > sum(spare.values()):
        raise ValueError(
            f"{op}: cannot remove {number} of {len(rest)} units; each of the layers "
            f"{list(spare)} keeps one at least, which leaves {sum(spare.values())} to remove"
        )
    chosen: list[Unit] = []
    for u in sorted(rest, key=lambda u: scores[id(u)]):
        if len(chosen) < number and spare[u.layer]:
            spare[u.layer] -= 1
            chosen.append(u)
    return chosen


def _left(model: Module, every: Sequence[Unit]) -> list[Unit]:
    """The units with an outgoing weight that is not zero."""
    values = {n: w.value.array for w in weights_of("units", model, "*") for n in w.names}

    def alive(u: Unit) -> bool:
        return any(
            bool((values[name][(slice(None),) * dim + (place,)] != 0).any())
            for name, dim, place in u.outgoing
        )

    return [u for u in every if alive(u)]


def _mask(op: str, model: Module, chosen: Sequence[Unit]) -> None:
    """Masks all entries of these units."""
    gone: dict[tuple[str, int], set[int]] = {}
    for u in chosen:
        for name, dim, place in u.parts:
            gone.setdefault((name, dim), set()).add(place)
    by_name = {n: w for w in weights_of(op, model, "*") for n in w.names}
    for (name, dim), places in gone.items():
        if name not in by_name:  # a buffer, such as a running mean
            continue
        weight = by_name[name]
        shape = [1] * weight.parameter.ndim
        shape[dim] = -1
        stays = tensor([i not in places for i in range(int(weight.parameter.shape[dim]))])
        put_mask(weight, logical_and(weight.mask, reshape(stays, shape)))
