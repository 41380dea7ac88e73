"""Smaller networks with the same outputs: units that do nothing are cut out of the tensors."""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import index_select
from chainrule.ops.creation.sampling import randn
from chainrule.random import Generator
from chainrule.regularize.prune.flow import Flow, Link, Trace
from chainrule.regularize.prune.layers import trace_model
from chainrule.regularize.prune.masks import remove
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Inputs

__all__ = ["SelectInputs", "compact", "example_for"]


class SelectInputs(Module):
    """The entries ``index`` along dimension ``dim`` of the input: those a compact network reads.

    >>> from chainrule import tensor
    >>> from chainrule.regularize import prune
    >>> prune.SelectInputs([0, 2])(tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 3.]])
    """

    index: Tensor

    def __init__(self, index: list[int], dim: int = -1):
        super().__init__()
        self.dim = dim
        self.register_buffer("index", tensor(index))

    def forward(self, input: Tensor) -> Tensor:
        return index_select(input, self.dim, self.index)

    def extra_repr(self) -> str:
        return f"{self.index.tolist()}, dim={self.dim}"


def compact(
    model: Module,
    example_input: Inputs | None = None,
    *,
    inputs: str = "select",
    strict: bool = True,
) -> Module:
    """A smaller network that computes the same, in evaluation mode and up to rounding.

    Cut out are units, channels, recurrent units and inputs all of whose outgoing weights are zero,
    and those whose output is one and the same number for every input, which goes into the biases
    of the next layers. A unit is followed through convolutions, batch normalization, activations,
    pooling, reshaping, residual sums, concatenation and the states of RNN, LSTM and GRU, in any
    ``forward``: the model is run once on ``example_input``. The model itself is left as it is;
    masks are gone in the result. It is compared with the model on the example before it is
    returned.

    What stays although nothing depends on it: at least one unit of each layer; channels that are a
    constant other than zero before a convolution that pads with zeros (at the border they matter);
    grouped channels; of an RNN of several layers or directions as many units of each as of the
    largest one. Recurrent layers are taken to start from zero states.

    Args:
        model: any module.
        example_input: an input, or a tuple of them, as for a call. May be left out where the first
            layer says what it takes: features or sequences, not images.
        inputs: "select" puts a :class:`SelectInputs` before a network that does not need all its
            inputs; "keep" leaves the first layer as wide as it is.
        strict: whether to raise an error where a unit that does nothing cannot be cut out, because
            it goes through an operation that mixes units or that is not known; if not, it stays.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> _ = prune.structured(net, count=5, where="0.weight")
    >>> prune.compact(net)
    Sequential(
      (0): Linear(in_features=3, out_features=3, bias=True)
      (1): Tanh()
      (2): Linear(in_features=3, out_features=2, bias=True)
    )
    """
    if inputs not in ("select", "keep"):
        raise ValueError(f"compact: inputs must be 'select' or 'keep', got {inputs!r}")
    example = example_for("compact", model, example_input)
    small = remove(copy.deepcopy(model))
    with evaluating(model), no_grad():
        wanted = model(*example)
    with evaluating(small):
        trace, boxed, _ = trace_model(small, example)
    if inputs == "keep" or len(example) > 1:
        for x in boxed:
            if isinstance(x, Tensor):
                trace.pin(x.array, "the input of the model", named=False)
    removed = _removable(trace)
    selection = _selection(trace, boxed[0], removed)
    if strict:
        _check_blocked(trace)
    _cut(trace, removed)
    result = _plain(small)
    if selection is not None:
        parts = list(result) if type(result) is nn.Sequential else [result]
        result = nn.Sequential(selection, *parts).train(small.training)
    _compare(model, result, example, wanted)
    return result


def example_for(op: str, model: Module, example: Inputs | None) -> tuple[Any, ...]:
    """The inputs of a call, random ones of the size that the first layer says if none are given."""
    if example is not None:
        return example if isinstance(example, tuple) else (example,)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            sizes: tuple[int, ...] = (2, module.in_features)
        elif isinstance(module, nn.RNNBase):
            sizes = (2, 3, module.input_size)
        elif next(iter(module._parameters.values()), None) is None:
            continue
        else:
            break
        dtype = next(iter(module.parameters())).dtype
        return (randn(sizes, dtype=dtype, generator=Generator().manual_seed(0)),)
    raise ValueError(
        f"{op}: the size of an input cannot be seen from the first layer of "
        f"{type(model).__name__}; pass example_input, a batch of one or two inputs"
    )


# --- what can go ----------------------------------------------------------------------------------


def _removable(trace: Trace) -> set[int]:
    """The units (roots) without which the outputs are the same."""
    roots = {trace.root(u) for u in range(len(trace.parent))}
    alive = _alive(trace, _agreed(trace))
    removed = roots - alive
    while True:  # a layer keeps a unit, the layers of an RNN as many each
        back = set()
        for binding in trace.bindings.values():
            own = [trace.root(u) for u in binding.units if u >= 0]
            if own and len(own) == len(binding.units) and all(u in removed for u in own):
                back.add(own[0])
        for group in trace.equal:
            back |= _balance(trace, group, removed)
        if not back:
            return removed
        removed -= back


def _balance(trace: Trace, group: list[list[int]], removed: set[int]) -> set[int]:
    """Units to keep so that all lists of a group keep as many."""
    kept = [[u for u in units if trace.root(u) not in removed] for units in group]
    most = max(len(k) for k in kept)
    back = set()
    for units, own in zip(group, kept, strict=True):
        spare = [trace.root(u) for u in units if trace.root(u) in removed]
        back |= set(spare[: most - len(own)])
    return back


def _agreed(trace: Trace) -> list[list[float | None]]:
    """The constants of each link, None where another call of the same weight has another one."""
    calls: dict[int, list[Link]] = {}
    for link in trace.links:
        calls.setdefault(id(link.weight), []).append(link)
    return [
        [
            c if all(o.constants[i] == c for o in calls[id(link.weight)]) else None
            for i, c in enumerate(link.constants)
        ]
        for link in trace.links
    ]


def _alive(trace: Trace, constants: list[list[float | None]]) -> set[int]:
    """The units that lead to an output: backwards along weights that are not zero."""
    alive = {trace.root(u) for u in trace.pinned}
    matrices = [link.matrix() for link in trace.links]
    before = -1
    while before != len(alive):
        before = len(alive)
        for link, matrix, known in zip(trace.links, matrices, constants, strict=True):
            rows = K.asarray([u < 0 or trace.root(u) in alive for u in link.rows])
            if not rows.any():
                continue
            used = matrix[rows].any(axis=0).tolist()
            alive |= {
                trace.root(u)
                for u, needed, c in zip(link.columns, used, known, strict=True)
                if needed and c is None and u >= 0
            }
    return alive


def _check_blocked(trace: Trace) -> None:
    for unit, why in trace.blocked:
        made_by, number = trace.made_by[unit]
        if trace.is_input(unit):
            continue
        raise RuntimeError(
            f"compact: unit {number} of {made_by!r} does nothing, but cannot be cut out because of "
            f"{why}; strict=False leaves such units where they are"
        )


def _selection(trace: Trace, x: Any, removed: set[int]) -> SelectInputs | None:
    """What picks the inputs that are left, if they are places along one dimension."""
    if not (isinstance(x, Tensor) and isinstance(x.array, Flow)):
        return None
    labels = x.array.labels
    gone = K.asarray([trace.root(u) in removed for u in labels.flat]).reshape(labels.shape)
    if not gone.any():
        return None
    for dim in range(labels.ndim):
        others = tuple([d for d in range(labels.ndim) if d != dim])
        all_gone, any_gone = gone.all(axis=others), gone.any(axis=others)
        if not (all_gone != any_gone).any():
            index = [i for i, yes in enumerate(all_gone.tolist()) if not yes]
            return SelectInputs(index, dim - labels.ndim)
    removed -= {trace.root(u) for u in labels.flat}
    return None


# --- cutting --------------------------------------------------------------------------------------


def _cut(trace: Trace, removed: set[int]) -> None:
    """Folds constants into biases, then takes the slices of all removed units away."""
    folded = set()
    for link, constants in zip(trace.links, _agreed(trace), strict=True):
        if id(link.weight) not in folded and link.bias is not None:
            folded.add(id(link.weight))
            _fold(trace, link, constants, removed)
    sizes: dict[int, tuple[Any, dict[int, list[int]]]] = {}
    for binding in trace.bindings.values():
        stays = [i for i, u in enumerate(binding.units) if u < 0 or trace.root(u) not in removed]
        if len(stays) < len(binding.units):
            sizes.setdefault(id(binding.tensor), (binding.tensor, {}))[1][binding.dim] = stays
    touched: dict[int, Module] = {}
    for t, cuts in sizes.values():
        value = t.detach()
        for dim, stays in cuts.items():
            value = index_select(value, dim, tensor(stays))
        t.data = value
        if t.grad is not None:
            t.grad = None
        for owner, _ in trace.owners[id(t)]:
            touched[id(owner)] = owner
    for module in touched.values():
        _resize(module, {})
    for module, setting, units in trace.counts:
        _resize(module, {setting: sum(u < 0 or trace.root(u) not in removed for u in units)})


def _fold(trace: Trace, link: Link, constants: list[float | None], removed: set[int]) -> None:
    values = [
        c if c is not None and u >= 0 and trace.root(u) in removed else 0.0
        for u, c in zip(link.columns, constants, strict=True)
    ]
    if link.bias is None or not any(values):
        return
    weights = link.summed()
    shift = weights @ K.asarray(values, weights.dtype)
    module, name = link.bias
    bias = getattr(module, name)
    if bias is None:
        frozen = not link.weight.requires_grad
        setattr(module, name, Parameter(of_array(shift), not frozen))
        trace.bind(getattr(module, name), 0, link.rows)
        trace.owners[id(getattr(module, name))] = [(module, name)]
    else:
        bias.data = of_array(bias.detach().array + shift)


SIZES: tuple[tuple[Any, dict[str, tuple[str, int]]], ...] = (
    (nn.Linear, {"out_features": ("weight", 0), "in_features": ("weight", 1)}),
    (
        (nn.Conv1d, nn.Conv2d, nn.Conv3d),
        {"out_channels": ("weight", 0), "in_channels": ("weight", 1)},
    ),
    (
        (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
        {"in_channels": ("weight", 0), "out_channels": ("weight", 1)},
    ),
    (
        (nn.RNN, nn.GRU, nn.LSTM),
        {"input_size": ("weight_ih_l0", 1), "hidden_size": ("weight_hh_l0", 1)},
    ),
    (nn.Embedding, {"embedding_dim": ("weight", 1)}),
    (nn.PReLU, {"num_parameters": ("weight", 0)}),
)


def _resize(module: Any, new: dict[str, Any]) -> None:
    """Makes the settings of a layer, and what a file says of it, agree with its tensors."""
    for kinds, settings in SIZES:
        if isinstance(module, kinds):
            new = {s: int(getattr(module, n).shape[d]) for s, (n, d) in settings.items()}
    if hasattr(module, "num_features") and not new:
        found = [module.weight, module.running_mean]
        new = {"num_features": next(int(t.shape[0]) for t in found if t is not None)}
    for setting, value in new.items():
        setattr(module, setting, value)
    if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        new["bias"] = module.bias is not None
    if not new:
        return
    args, kwargs = module._init_args
    given = inspect.signature(type(module).__init__).bind(module, *args, **kwargs).arguments
    told = {k: v for k, v in given.items() if k != "self"}
    object.__setattr__(module, "_init_args", ((), told | new))


def _plain(model: Module) -> Module:
    """Sequential networks of a class of their own as plain ones: their sizes are others now."""
    for module in model.modules():
        own = type(module)
        if isinstance(module, nn.Sequential) and own.forward is nn.Sequential.forward:
            module.__class__ = nn.Sequential
    return model


# --- the proof ------------------------------------------------------------------------------------


def _compare(model: Module, small: Module, example: tuple[Any, ...], wanted: Any) -> None:
    """Raises RuntimeError unless both networks give the same on the example."""
    name = type(model).__name__
    try:
        with evaluating(small), no_grad():
            found = small(*example)
    except (RuntimeError, ValueError, IndexError) as error:
        raise RuntimeError(
            f"compact: {name} does not run with fewer units ({error}); a forward of it uses a "
            "number of units that is written into it. Take it from a layer instead, such as "
            "layer.out_features or x.shape[1]"
        ) from error
    for a, b in zip(_tensors(wanted), _tensors(found), strict=True):
        room = 1e-9 if a.dtype.itemsize >= 8 else 1e-3
        size = max(float(abs(a).amax()), 1e-6) if a.numel() else 1.0
        worst = float(abs(a - b).amax()) if a.numel() and a.shape == b.shape else math.inf
        if a.shape != b.shape or not worst <= room * size:
            if a.dtype.is_floating_point:
                raise RuntimeError(
                    f"compact: the smaller {name} does not give the same output on the example "
                    f"(largest difference {worst:.3g}); a forward of it does something that could "
                    "not be followed"
                )


def _tensors(out: Any) -> list[Tensor]:
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, dict):
        return _tensors(list(out.values()))
    return [t for part in out for t in _tensors(part)] if isinstance(out, (tuple, list)) else []
