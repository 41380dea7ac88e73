"""What a network's outputs do not depend on: scales and shifts of weights and of data."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import no_grad
from chainrule.func import functional_call
from chainrule.nn.init.models import by_unit, from_units, symmetric_units
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.sampling import randn
from chainrule.ops.reduce.order import max
from chainrule.ops.reduce.reductions import mean
from chainrule.random import Generator, fork_rng, manual_seed
from chainrule.tensor import Tensor

__all__ = ["TRANSFORMATIONS", "Invariances", "invariance_table", "invariances", "symmetry"]

TRANSFORMATIONS = (
    "weight matrix re-scaling",
    "weight matrix re-centering",
    "weight vector re-scaling",
    "data set re-scaling",
    "data set re-centering",
    "single training case re-scaling",
)


@dataclass
class Invariances:
    """How far each transformation moved the outputs, relative to their size, and the verdicts."""

    deviations: dict[str, dict[str, float]]
    tolerance: float

    def __getitem__(self, name: str) -> dict[str, bool]:
        """Whether the outputs of a network are invariant, for each transformation."""
        return {k: d <= self.tolerance for k, d in self.deviations[name].items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.deviations)

    def __str__(self) -> str:
        width = _longest(list(TRANSFORMATIONS))
        names = list(self)
        widths = [_longest([n, "invariant"]) for n in names]
        lines = [" " * width + "".join(f"  {n:>{w}}" for n, w in zip(names, widths, strict=True))]
        for t in TRANSFORMATIONS:
            cells = ["invariant" if self[n][t] else "no" for n in names]
            line = "".join(f"  {c:>{w}}" for c, w in zip(cells, widths, strict=True))
            lines.append(f"{t:<{width}}{line}")
        return "\n".join(lines)


def _longest(texts: list[str]) -> int:
    return sorted(len(t) for t in texts)[-1]


def invariance_table(
    models: Mapping[str, nn.Module],
    x: Tensor,
    *,
    weight: str | None = None,
    scale: float = 3.0,
    tolerance: float = 1e-2,
) -> Invariances:
    """Which of six transformations leave the outputs of networks alone, tried out.

    The outputs for x are computed in training mode (normalization by the batch) before and after.
    With weights W (one row for each unit) and data X (one row for each case), a number c and a
    random vector v: W <- c W; W <- W + 1 v^T; one row w <- c w; X <- c X; X <- X + 1 v^T; one case
    x <- c x. A normalization divides by sqrt(var + eps), so it is invariant up to eps / var.

    Args:
        models: networks by name; they are left as they are.
        x: inputs (N, ...).
        weight: the name of the weights to change, by default the first of two or more dimensions
            (the direction v of weights g v / |v|).
        scale: the number c.
        tolerance: how much outputs may change, relative to their root mean square.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(4, 5, bias=False), nn.LayerNorm(5))
    >>> table = inspect.invariance_table({"layer norm": model}, chainrule.randn(8, 4))
    >>> table["layer norm"]["weight matrix re-scaling"]
    True
    """
    if not scale > 0 or scale == 1:
        raise ValueError(f"invariance_table: scale must be positive and not 1, got {scale}")
    found = {name: _deviations(model, x, weight, scale) for name, model in models.items()}
    return Invariances(found, tolerance)


def invariances(
    model: nn.Module,
    x: Tensor,
    *,
    weight: str | None = None,
    scale: float = 3.0,
    tolerance: float = 1e-2,
) -> dict[str, bool]:
    """The verdicts of :func:`invariance_table` for one network."""
    table = invariance_table({"": model}, x, weight=weight, scale=scale, tolerance=tolerance)
    return table[""]


@no_grad()
def _deviations(model: nn.Module, x: Tensor, weight: str | None, scale: float) -> dict[str, float]:
    name = _weight_name(model, weight)
    w = dict(model.named_parameters())[name].detach()
    layer = model.get_submodule(name.rpartition(".")[0])
    units = by_unit(layer, w)
    g = Generator().manual_seed(0)
    v, shift = (randn(*t.shape[1:], generator=g, dtype=t.dtype) for t in (units, x))
    row, case = clone(units), clone(x)
    row[0] = scale * units[0]
    case[0] = scale * x[0]
    moved, single = (from_units(layer, t, w.shape) for t in (units + v, row))
    changed = [
        (scale * w, x),
        (moved, x),
        (single, x),
        (w, scale * x),
        (w, x + shift),
        (w, case),
    ]
    before = _output(model, name, w, x)
    size = math.sqrt(float(mean(before * before))) or 1.0
    return {
        t: float(max((_output(model, name, *pair) - before).abs())) / size
        for t, pair in zip(TRANSFORMATIONS, changed, strict=True)
    }


def _weight_name(model: nn.Module, given: str | None) -> str:
    names = [name for name, p in model.named_parameters() if p.ndim >= 2]
    if given is not None:
        if given not in names:
            raise ValueError(
                f"invariance_table: there are no weights named {given!r}; there are {names}"
            )
        return given
    if not names:
        raise ValueError("invariance_table: the model has no weights of two or more dimensions")
    stem, _, last = names[0].rpartition(".")
    direction = f"{stem}.original1"
    return direction if last == "original0" and direction in names else names[0]


def _output(model: nn.Module, name: str, w: Tensor, x: Tensor) -> Tensor:
    """The output of a copy in training mode, always with the same random numbers."""
    with fork_rng():
        manual_seed(0)
        return functional_call(copy.deepcopy(model).train(), {name: w}, (x,))


# --- units that are alike -------------------------------------------------------------------------


def symmetry(
    model: nn.Module,
    input: Tensor,
    target: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
) -> dict[str, list[list[int]]]:
    """The units with equal weights that also get equal gradients, in groups, by layer.

    Training cannot tell them apart: they stay alike, and the layer is as good as a smaller one.
    Units that :func:`chainrule.nn.init.symmetric_units` finds and this does not are told apart by
    the weights of the next layer.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> for p in net.parameters():
    ...     _ = nn.init.constant_(p, 0.5)
    >>> inspect.symmetry(net, chainrule.ones(4, 2), chainrule.zeros(4, 1), nn.MSELoss())
    {'0': [[0, 1, 2]]}
    """
    copied = copy.deepcopy(model)
    copied.zero_grad()
    with fork_rng():
        loss(copied(input), target).backward()
    modules = dict(copied.named_modules())
    found = {}
    for name, groups in symmetric_units(copied).items():
        alike = [part for group in groups for part in _same_gradients(modules[name], group)]
        if alike:
            found[name] = alike
    return found


def _same_gradients(layer: Any, units: list[int]) -> list[list[int]]:
    grads = [p.grad for p in (layer.weight, layer._parameters.get("bias")) if p is not None]
    matrices = [g if g.ndim == 1 else by_unit(layer, g) for g in grads if g is not None]
    rows = [[g[u].flatten() for g in matrices] for u in units]
    groups: list[list[int]] = []
    for i in range(len(units)):
        for group in groups:
            if all(bool(a.isclose(b).all()) for a, b in zip(rows[group[0]], rows[i], strict=True)):
                group.append(i)
                break
        else:
            groups.append([i])
    return [[units[i] for i in group] for group in groups if len(group) > 1]
