"""What the instruments of the cockpit show: names, sentences, pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.charts import COLORS, grid_of_axes, log_if_wide
from chainrule.inspect.training.readings import Reading

__all__ = ["draw", "explained", "value_of"]

OF_NOISE = (
    "signal_to_noise",
    "norm_test",
    "inner_product_test",
    "orthogonality_test",
    "early_stopping",
)
DIALS = (
    "loss",
    "alpha",
    "gradient_norm",
    "top_eigenvalue",
    "trace",
    "distance",
    "update_norm",
    "update_ratio",
    *OF_NOISE,
)


def value_of(reading: Reading, dial: str) -> float:
    """One number of a reading; NaN where it could not be read."""
    if dial not in DIALS:
        raise ValueError(f"values: there is no instrument {dial!r}; select from {DIALS}")
    if dial == "top_eigenvalue":
        return reading.eigenvalues[0]
    if dial in OF_NOISE:
        return math.nan if reading.noise is None else float(getattr(reading.noise, dial))
    return float(getattr(reading, dial))


# --- sentences ------------------------------------------------------------------------------------


def _of_alpha(r: Reading) -> str:
    if math.isnan(r.alpha):
        if math.isnan(r.update_norm):
            return "no step was looked at: give an optimizer"
        return "the parabola along the step has no minimum ahead: no slope down, or no curvature up"
    if r.alpha < -0.9:
        return "the step goes a small part of the way to the minimum: the rate could be larger"
    if r.alpha < -0.1:
        return "the step stops before the minimum of the parabola: safe progress"
    if r.alpha <= 0.1:
        return "the step ends at the minimum of the parabola"
    if r.alpha < 1:
        return "the step passes the minimum, but ends lower than it began"
    return "the step ends higher on the other side: lower the learning rate"


def _of_curvature(r: Reading) -> str:
    top = r.eigenvalues[0]
    if not math.isfinite(top):
        return BEYOND
    if top <= 0:
        return "no direction bends upwards: a maximum, or a plateau"
    return f"steps of gradient descent above 2 / {top:.3g} = {2 / top:.3g} would diverge"


def _of_trace(r: Reading) -> str:
    if not math.isfinite(r.trace):
        return BEYOND
    size = sum(b.size for b in r.layers)
    how = f", estimated to +-{r.trace_error:.2g}" if r.trace_error else ", exact"
    return f"mean curvature {r.trace / size:.3g} over {size} parameters{how}; less is flatter"


BEYOND = "beyond the numbers of this type: scale the inputs, or look at model.double()"


def _of_test(value: float, what: str) -> str:
    if not math.isfinite(value):
        return BEYOND
    if value <= 1:
        return f"{what} is smaller than the gradient itself: the batch is large enough"
    return f"{what} is larger than the gradient itself: a batch {math.ceil(value)} times larger"


def _of_stopping(value: float) -> str:
    if not math.isfinite(value):
        return BEYOND
    if value > 0:
        return "the gradient is as small as noise alone would make it: stop, or lower the rate"
    return "the gradient is more than noise: there is something left to learn"


def _of_signal(value: float) -> str:
    if value < 1e-2:
        return "single samples mostly disagree about the direction"
    return "single samples agree in part" if value < 1 else "single samples mostly agree"


def explained(r: Reading) -> list[tuple[str, str, str]]:
    """Each instrument with its value and a sentence of what it means."""
    largest = max(r.layer_gradient_norms, key=lambda n: r.layer_gradient_norms[n])
    tops = ", ".join(f"{v:.3g}" for v in r.eigenvalues)
    rows = [
        ("loss", f"{r.loss:.4g}", "of this batch"),
        ("alpha", _number(r.alpha), _of_alpha(r)),
        ("gradient norm", f"{r.gradient_norm:.3g}", f"most of it in {largest}"),
        ("top eigenvalues", tops, _of_curvature(r)),
        ("trace", f"{r.trace:.3g}", _of_trace(r)),
    ]
    if not math.isnan(r.update_norm):
        usual = (
            "about 0.001 is usual" if 1e-5 < r.update_ratio < 1e-1 else "unusual: about 0.001 is"
        )
        rows.append(("update ratio", f"{r.update_ratio:.3g}", f"{usual}, relative to the weights"))
    if not math.isnan(r.distance):
        rows.append(("distance", f"{r.distance:.3g}", "from where the training began"))
    if r.noise is None:
        return [*rows, ("noise", "", r.note)]
    n = r.noise
    about = (
        ("signal to noise", n.signal_to_noise, _of_signal(n.signal_to_noise)),
        ("norm test", n.norm_test, _of_test(n.norm_test, "the noise")),
        (
            "inner product test",
            n.inner_product_test,
            _of_test(n.inner_product_test, "the noise along the gradient"),
        ),
        (
            "orthogonality test",
            n.orthogonality_test,
            _of_test(n.orthogonality_test, "the noise across the gradient"),
        ),
        ("early stopping", n.early_stopping, _of_stopping(n.early_stopping)),
    )
    return [*rows, *[(name, _number(value), said) for name, value, said in about]]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


# --- pictures -------------------------------------------------------------------------------------


def draw(readings: Sequence[Reading], axes: Any, style: dict[str, Any]) -> list[Any]:
    """Panels of all instruments."""
    if not readings:
        raise ValueError("plot: no step has been looked at yet")
    if len(readings) == 1:
        return _draw_one(readings[0], axes, style)
    made = grid_of_axes(axes, len(PANELS), 3, (3.5, 2.5))
    for ax, panel in zip(made, PANELS, strict=True):
        panel(ax, readings, style)
        ax.set_xlabel("step", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    return made


def _lines(
    title: str, *dials: str, level: float | None = None, said: str = ""
) -> Callable[[Any, Sequence[Reading], dict[str, Any]], None]:
    def panel(ax: Any, readings: Sequence[Reading], style: dict[str, Any]) -> None:
        steps = [r.step for r in readings]
        values = [[value_of(r, d) for r in readings] for d in dials]
        for d, ys, color in zip(dials, values, COLORS, strict=False):
            ax.plot(steps, ys, marker=".", **{"color": color, "label": _words(d), **style})
        flat = [v for ys in values for v in ys]
        if not any(math.isfinite(v) for v in flat):
            ax.text(0.5, 0.5, "not read", ha="center", transform=ax.transAxes, color="0.5")
        log_if_wide(ax, [v for v in flat if math.isfinite(v)])
        if level is not None:
            ax.axhline(level, color="0.4", linestyle="--", linewidth=1, label=said or None)
        if len(dials) > 1 or said:
            ax.legend(fontsize=7, frameon=False)
        ax.set_title(title, fontsize=9)

    return panel


def _words(dial: str) -> str:
    return dial.replace("_", " ")


def _eigenvalues(ax: Any, readings: Sequence[Reading], style: dict[str, Any]) -> None:
    steps = [r.step for r in readings]
    for i, color in zip(range(len(readings[0].eigenvalues)), COLORS, strict=False):
        values = [r.eigenvalues[i] for r in readings]
        ax.plot(steps, values, marker=".", **{"color": color, "label": f"{i + 1}.", **style})
    log_if_wide(ax, [v for r in readings for v in r.eigenvalues])
    ax.legend(fontsize=7, frameon=False)
    ax.set_title("Largest eigenvalues of the Hessian", fontsize=9)


def _traces(ax: Any, readings: Sequence[Reading], style: dict[str, Any]) -> None:
    steps = [r.step for r in readings]
    for i, color in zip(range(min(len(readings[0].layers), len(COLORS) - 1)), COLORS, strict=False):
        name = readings[0].layers[i].name
        values = [r.layers[i].trace for r in readings]
        ax.plot(steps, values, marker=".", **{"color": color, "label": name, **style})
    ax.plot(steps, [r.trace for r in readings], color="black", linestyle=":", label="all")
    ax.legend(fontsize=7, frameon=False)
    ax.set_title("Trace of the Hessian by layer", fontsize=9)


PANELS = (
    _lines("Loss of the batch", "loss"),
    _lines("Step on the parabola (alpha)", "alpha", level=0.0, said="minimum"),
    _lines("Norm of the gradient", "gradient_norm"),
    _eigenvalues,
    _traces,
    _lines("Signal to noise of the gradient", "signal_to_noise"),
    _lines("Distance from the start", "distance"),
    _lines("Update relative to the weights", "update_ratio"),
    _lines(
        "Is the batch large enough? (below 1)",
        *OF_NOISE[1:4],
        level=1.0,
    ),
)


def _draw_one(r: Reading, axes: Any, style: dict[str, Any]) -> list[Any]:
    """The step on its parabola, and the curvature of the layers."""
    made = grid_of_axes(axes, 3, 3, (4.2, 3.3))
    left, middle, right = made
    if r.curve:
        place = r.curve["place"]
        left.plot(place, r.curve["loss"], **{"color": COLORS[0], "label": "loss", **style})
        left.plot(place, r.curve["parabola"], color=COLORS[1], linestyle="--", label="parabola")
        at = [place.index(0.0), place.index(1.0)]
        left.plot([0.0], [r.curve["loss"][at[0]]], "o", color="black", label="before the step")
        left.plot([1.0], [r.curve["loss"][at[1]]], "s", color="black", label="after the step")
        low, high = min(r.curve["loss"]), max(r.curve["loss"])
        pad = 0.15 * (high - low) or 1e-3
        left.set_ylim(low - pad, high + pad)
        left.legend(fontsize=8, frameon=False)
        alpha = "no minimum ahead" if math.isnan(r.alpha) else f"alpha = {r.alpha:.2g}"
        left.set(xlabel="along the step (1: its end)", ylabel="loss", title=alpha)
    else:
        left.text(0.5, 0.5, "no optimizer was given", ha="center", transform=left.transAxes)
        left.set(title="Step on the parabola", xticks=[], yticks=[])
    names = [b.name for b in r.layers]
    for ax, values, title, color in (
        (middle, [b.top for b in r.layers], "Top eigenvalue of each layer's block", COLORS[0]),
        (right, [b.trace for b in r.layers], "Trace of each layer's block", COLORS[2]),
    ):
        ax.barh(range(len(names)), values, color=color)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.invert_yaxis()
        ax.set(title=title, xlabel="curvature of the loss")
    return made
