"""Pictures of what was watched."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.charts import COLORS, SEQUENTIAL, axes_for, grid_of_axes
from chainrule.inspect.training.choosing import chosen

if TYPE_CHECKING:
    from chainrule.inspect.training.series import Series, Watched
    from chainrule.inspect.training.statistics import Statistics

__all__ = ["PLOTS", "colors", "draw", "legend_beside", "line_per_name", "normal_density", "stairs"]

MOST_PANELS, MOST_RIDGES, MOST_IN_LEGEND = 24, 30, 12
TITLES = {
    "grad": "gradients before clipping",
    "activation": "activations",
    "preactivation": "pre-activations",
    "weight": "weights",
    "update": "updates",
}


def draw(
    seen: Watched,
    kind: str | None,
    axes: Any,
    what: str | None,
    name: str | None,
    step: int | None,
    style: dict[str, Any],
) -> Any:
    """Draws one kind of picture of what was seen."""
    if not any(seen.series.values()):
        raise ValueError("plot: nothing was seen yet; train, or run the model, first")
    kind = kind or _fitting(seen)
    if kind not in PLOTS:
        raise ValueError(f"plot: kind must be one of {[*PLOTS]}, got {kind!r}")
    return PLOTS[kind](seen, axes, what, name, step, style)


def _fitting(seen: Watched) -> str:
    steps = max(len(s.steps) for by_name in seen.series.values() for s in by_name.values())
    return "norms" if steps > 1 or not _has_bins(seen) else "histograms"


def _has_bins(seen: Watched) -> bool:
    return any(s.last.counts for by_name in seen.series.values() for s in by_name.values())


def _chosen(seen: Watched, what: str | None, name: str | None) -> tuple[str, list[Series]]:
    kind = what or next(w for w, by_name in seen.series.items() if by_name)
    found = [s for s in seen[kind].values() if name is None or chosen(s.name, [name])]
    if not found:
        raise ValueError(f"plot: {name!r} matches none of {[*seen[kind]]}")
    return kind, found


# --- colors and legends ---------------------------------------------------------------------------


def colors(count: int) -> list[Any]:
    """One color for each of some lines: told apart if they are few, in order if they are many."""
    if count <= len(COLORS):
        return list(COLORS[:count])
    import matplotlib

    ordered = matplotlib.colormaps[SEQUENTIAL]
    return [ordered(0.92 * i / (count - 1)) for i in range(count)]


def legend_beside(ax: Any, most: int = MOST_IN_LEGEND) -> None:
    """A legend to the right of the axes; of many lines only some, evenly chosen, and it says so."""
    handles, labels = ax.get_legend_handles_labels()
    title = None
    if len(labels) > most:
        title = f"{most} of {len(labels)} lines"
        kept = sorted({round(i * (len(labels) - 1) / (most - 1)) for i in range(most)})
        handles, labels = [handles[i] for i in kept], [labels[i] for i in kept]
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    ax.legend(handles, labels, title=title, frameon=False, **place)


def line_per_name(
    ax: Any, xs: Sequence[Sequence[float]], ys: Sequence[Sequence[float]], names: Sequence[str]
) -> None:
    """Lines on a logarithmic axis, where zeros and what is not finite are gaps."""
    for x, y, name, color in zip(xs, ys, names, colors(len(names)), strict=True):
        shown = [v if v > 0 and math.isfinite(v) else math.nan for v in y]
        marker = "o" if len(shown) < 12 else None
        ax.plot(x, shown, color=color, label=name, linewidth=1.4, marker=marker, markersize=3.5)
    if any(v > 0 and math.isfinite(v) for y in ys for v in y):
        ax.set_yscale("log")
    ax.grid(True, which="major", alpha=0.3)


def stairs(ax: Any, found: Statistics, color: str, **style: Any) -> None:
    """The bins of a distribution, as densities."""
    ax.stairs(found.density, found.edges, fill=True, **{"color": color, "alpha": 0.75, **style})


def normal_density(xs: Sequence[float]) -> list[float]:
    """The density of the standard normal distribution."""
    return [math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) for x in xs]


# --- over time ------------------------------------------------------------------------------------


def _over_time(ax: Any, found: list[Series], statistic: str, against: str) -> None:
    """A line for each series, against the step or, as the mean of each, against the epoch."""
    if against not in ("step", "epoch"):
        raise ValueError(f"plot: against must be 'step' or 'epoch', got {against!r}")
    names, xs = [s.name for s in found], [s.steps for s in found]
    ys = [s.values(statistic) for s in found]
    if against == "epoch":
        xs, means = [], []
        for one, values in zip(found, ys, strict=True):
            epochs = sorted(set(one.epochs))
            parts = [[v for v, e in zip(values, one.epochs, strict=True) if e == n] for n in epochs]
            xs.append(epochs)
            means.append([sum(part) / len(part) for part in parts])
        ys = means
    line_per_name(ax, xs, ys, names)


def _norms(
    seen: Watched, ax: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> Any:
    kind, found = _chosen(seen, what, name)
    ax = axes_for(ax, (8.0, 4.2))
    against = style.pop("against", "step")
    _over_time(ax, found, "norm", against)
    ax.set(xlabel=against, ylabel="Frobenius norm", title=f"Norms of {TITLES[kind]}", **style)
    legend_beside(ax)
    return ax


def _updates(
    seen: Watched, ax: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> Any:
    _, found = _chosen(seen, what or "update", name)
    ax = axes_for(ax, (8.0, 4.2))
    against = style.pop("against", "step")
    _over_time(ax, found, "ratio", against)
    ax.axhline(1e-3, color="0.5", linestyle="--", linewidth=1, label="usual, about 0.001")
    ax.set(
        xlabel=against,
        ylabel="norm of the update / norm of the weight",
        title="Updates relative to the weights",
        **style,
    )
    legend_beside(ax)
    return ax


def _heat(
    seen: Watched, ax: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> Any:
    kind, found = _chosen(seen, what, name)
    steps = sorted({n for s in found for n in s.steps})
    place = {n: i for i, n in enumerate(steps)}
    rows = [[math.nan] * len(steps) for _ in found]
    for row, one in zip(rows, found, strict=True):
        for n, norm in zip(one.steps, one.values("norm"), strict=True):
            row[place[n]] = math.log10(norm) if norm > 0 and math.isfinite(norm) else math.nan
    ax = axes_for(ax, (7.2, max(2.4, 0.28 * len(found) + 1.2)))
    image = ax.imshow(rows, **{"aspect": "auto", "cmap": SEQUENTIAL, **style})
    ax.set_yticks(range(len(found)), [s.name for s in found])
    shown = sorted({round(i * (len(steps) - 1) / 6) for i in range(7)})
    ax.set_xticks(shown, [str(steps[i]) for i in shown])
    ax.set(xlabel="step", title=f"Norms of {TITLES[kind]}")
    ax.figure.colorbar(image, ax=ax, label="log10 of the norm")
    return ax


def _ridges(
    seen: Watched, ax: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> Any:
    kind, found = _chosen(seen, what, name)
    one = found[0]
    pairs = [(n, s) for n, s in zip(one.steps, one.statistics, strict=True) if s.counts]
    if not pairs:
        raise ValueError(f"plot: no distributions of {one.name!r} were kept; use detail='full'")
    if len(pairs) > MOST_RIDGES:
        kept = [round(i * (len(pairs) - 1) / (MOST_RIDGES - 1)) for i in range(MOST_RIDGES)]
        pairs = [pairs[i] for i in kept]
    ax = axes_for(ax, (6.4, 4.8))
    highest = max(max(_heights(s)) for _, s in pairs)
    shade = colors(max(len(pairs), len(COLORS) + 1))
    for i, (_, found_then) in enumerate(pairs):
        base = len(pairs) - 1 - i
        heights = [base + 2.2 * h / highest for h in _heights(found_then)]
        ax.stairs(
            heights,
            found_then.edges,
            baseline=base,
            fill=True,
            **{"color": shade[i], "alpha": 0.85, "edgecolor": "white", "linewidth": 0.5, **style},
            zorder=i,
        )
    every = max(1, len(pairs) // 10)
    marked = [i for i in range(len(pairs)) if i % every == 0]
    ax.set_yticks([len(pairs) - 1 - i for i in marked], [str(pairs[i][0]) for i in marked])
    low = min(s.quantiles[0] for _, s in pairs)
    high = max(s.quantiles[-1] for _, s in pairs)
    pad = 0.15 * (high - low) or abs(high) * 1e-3 or 1e-6
    ax.set_xlim(low - pad, high + pad)
    ax.set(xlabel="value", ylabel="step", title=f"{TITLES[kind].capitalize()} of {one.name}")
    return ax


def _heights(found: Statistics) -> list[float]:
    """Densities, of which a spike (many equal values) is cut at ten times the median."""
    density = found.density
    usual = sorted(d for d in density if d > 0)
    top = 10 * usual[len(usual) // 2] if usual else 1.0
    return [min(d, top) for d in density]


# --- distributions --------------------------------------------------------------------------------


def _panels(
    seen: Watched, what: str | None, name: str | None, step: int | None
) -> list[tuple[str, str, Statistics]]:
    """What is drawn: the sums above the activations, in the order of the layers."""
    kinds = [what] if what else [w for w in ("preactivation", "activation") if w in seen.series]
    kinds = kinds or [next(iter(seen.series))]
    found = []
    for kind in kinds:
        for one in _chosen(seen, kind, name)[1]:
            if step is not None and step not in one.steps:
                raise ValueError(f"plot: step {step} was not looked at; there are {one.steps}")
            at = one.statistics[-1 if step is None else one.steps.index(step)]
            if at.counts:
                found.append((kind, one.name, at))
    if not found:
        raise ValueError("plot: no distributions were kept; use detail='full'")
    if len(found) > MOST_PANELS:
        raise ValueError(
            f"plot: {len(found)} panels are too many to be read, at most {MOST_PANELS}; choose "
            "with what= and name= (a pattern)"
        )
    return found


def _columns(panels: list[tuple[str, str, Statistics]]) -> int:
    first = sum(kind == panels[0][0] for kind, _, _ in panels)
    both = first * 2 == len(panels)
    return first if both and first <= 6 else min(5, len(panels))


def _few_ticks(low: float, high: float) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    return [t for t in MaxNLocator(3).tick_values(low, high) if low <= t <= high]


def _histograms(
    seen: Watched, axes: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> list[Any]:
    panels = _panels(seen, what, name, step)
    columns = _columns(panels)
    made = grid_of_axes(axes, len(panels), columns, (2.9, 2.3))
    for ax, (kind, layer, found) in zip(made, panels, strict=True):
        color = COLORS[0] if kind == "preactivation" else COLORS[1]
        stairs(ax, found, color, **style)
        first, last = found.quantiles[0], found.quantiles[-1]
        pad = 0.1 * (last - first) or abs(last) * 1e-3 or 1e-3
        ax.set_xlim(first - pad, last + pad)
        ax.set_xticks(_few_ticks(first - pad, last + pad))
        ax.set_ylim(0, 1.08 * max(_heights(found)))
        ax.set_yticks([])
        ax.set_title(f"{layer}: {TITLES[kind]}", fontsize=9)
        zeros = f", zeros {found.zeros:.0%}" if found.zeros >= 0.005 else ""
        ax.set_xlabel(f"mean {found.mean:.2g}, std {found.std:.2g}{zeros}", fontsize=8)
    for ax in made[::columns]:
        ax.set_ylabel("density", fontsize=8)
    return made


def _densities(
    seen: Watched, axes: Any, what: str | None, name: str | None, step: int | None, style: Any
) -> list[Any]:
    """Each distribution, centered and scaled, beside the standard normal density."""
    kind = what or ("preactivation" if "preactivation" in seen.series else None)
    panels = [p for p in _panels(seen, kind, name, step) if p[2].std > 0]
    if not panels:
        raise ValueError("plot: all of these tensors are constant")
    made = grid_of_axes(axes, len(panels), min(5, len(panels)), (2.9, 2.4))
    grid = [-4 + 8 * i / 200 for i in range(201)]
    for ax, (_, layer, found) in zip(made, panels, strict=True):
        ax.plot(grid, normal_density(grid), color="0.35", linestyle="--", label="N(0, 1)")
        ax.plot(grid, smoothed(found, grid), **{"color": COLORS[1], "label": "seen", **style})
        ax.set(xlim=(-4, 4), yticks=[])
        ax.set_title(layer, fontsize=9)
        ax.set_xlabel(f"(s - {found.mean:.2g}) / {found.std:.2g}", fontsize=8)
    for ax in made[:: min(5, len(panels))]:
        ax.set_ylabel("density", fontsize=8)
    made[0].legend(fontsize=7, frameon=False, loc="upper left")
    return made


def smoothed(found: Statistics, grid: Sequence[float]) -> list[float]:
    """A kernel estimate of the standardized density, from the bins; Silverman's bandwidth."""
    width = max(0.9 * max(found.counted, 2) ** -0.2, 0.05)
    edges = [(e - found.mean) / found.std for e in found.edges]
    total = sum(found.counts)
    bins = zip(edges, edges[1:], found.counts, strict=False)
    parts = [(c, w * n / total) for a, b, n in bins if n for c, w in _spread(a, b, width)]
    scale = 1 / (width * math.sqrt(2 * math.pi))
    return [
        scale * sum(w * math.exp(-0.5 * ((x - c) / width) ** 2) for c, w in parts) for x in grid
    ]


def _spread(a: float, b: float, width: float) -> list[tuple[float, float]]:
    """Where the values of a bin lie: in its middle, but those of a tail mostly at its inner end."""
    if b - a < 2 * width:
        return [((a + b) / 2, 1.0)]
    pieces = min(math.ceil((b - a) / width), 40)
    weights = [0.6**i for i in range(pieces)]
    toward = 1 if a > 0 else -1
    start = a if toward > 0 else b
    step = toward * (b - a) / pieces
    return [(start + (i + 0.5) * step, w / sum(weights)) for i, w in enumerate(weights)]


PLOTS: dict[str, Callable[..., Any]] = {
    "norms": _norms,
    "updates": _updates,
    "histograms": _histograms,
    "densities": _densities,
    "ridges": _ridges,
    "heat": _heat,
}
