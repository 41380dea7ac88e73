"""Numbers, distributions, curves, sounds and settings as messages for TensorBoard."""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.backend import K
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.reduce.scan import cumsum
from chainrule.ops.reduce.sort import bincount, searchsorted
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.utils.tensorboard import messages as m

__all__ = [
    "as_number",
    "audio",
    "curve",
    "curve_counts",
    "custom_scalars",
    "default_bins",
    "histogram",
    "histogram_message",
    "hyperparameters",
    "scalar",
]

Value = float | Tensor | Any  # an array or a number of another library, too


def as_number(op: str, value: Value) -> float:
    """A value with one element as a number."""
    if isinstance(value, (int, float)):
        return float(value)
    x = as_tensor(value)
    if x.numel() != 1:
        raise AssertionError(
            f"{op}: Tensor should contain one element (0 dimensions), was given shape "
            f"{tuple(x.shape)}"
        )
    return float(x.detach().reshape(()))


def scalar(
    tag: str, value: Value, new_style: bool = False, double_precision: bool = False
) -> bytes:
    """One number."""
    x = as_number("add_scalar", value)
    if not new_style:
        return m.summary(tag, m.fraction(2, x))
    content = m.integer(1, 2) + m.doubles(6, [x]) if double_precision else _one_float(x)
    return m.summary(tag, m.inside(8, content), m.plugin("scalars"))


def _one_float(x: float) -> bytes:
    return m.integer(1, 1) + m.floats(5, [x])


# --- distributions --------------------------------------------------------------------------------


def default_bins() -> list[float]:
    """TensorFlow's borders: 0, and from 1e-12 to 1e20 each 1.1 times the last, on both sides."""
    right, v = [], 1e-12
    while v < 1e20:
        right.append(v)
        v *= 1.1
    return [-v for v in reversed(right)] + [0.0] + right


def histogram(values: Value, bins: str | int | Sequence[float], max_bins: int | None) -> bytes:
    """How many values lie between the borders; NumPy's names for ``bins`` are known."""
    x = as_tensor(values).detach().double().reshape(-1)
    if not x.numel():
        raise ValueError("add_histogram: The input has no element.")
    if not bool(x.isfinite().all()):
        raise ValueError("add_histogram: values should be finite; one is NaN or infinite")
    edges = as_tensor(K.histogram_edges(x.array, bins))
    limits: list[float] = edges.tolist()
    places = searchsorted(edges, x, right=True) - 1
    places = where(x == limits[-1], len(limits) - 2, places)  # the last bin has both its borders
    inside = (places >= 0) & (places < len(limits) - 1)
    counts: list[float] = bincount(places[inside], minlength=len(limits) - 1).tolist()
    if max_bins is not None and len(counts) > max_bins:
        every = len(counts) // max_bins
        counts = [sum(counts[i : i + every]) for i in range(0, len(counts), every)]
        limits = [*limits[:-1:every], limits[-1]]
    first = next((i for i, c in enumerate(counts) if c), 0)
    last = next((i for i in reversed(range(len(counts))) if counts[i]), 0)
    # Only right borders are told; an empty bin before the first tells its left one.
    return histogram_message(
        float(x.min()),
        float(x.max()),
        x.numel(),
        float(x.sum()),
        float((x * x).sum()),
        limits[first : last + 2],
        [0.0, *counts[first : last + 1]],
    )


def histogram_message(
    least: float,
    most: float,
    count: float,
    total: float,
    squares: float,
    limits: Sequence[float],
    counts: Sequence[float],
) -> bytes:
    """A distribution by its moments, the right borders of its bins, and how many are in each."""
    moments = (least, most, count, total, squares)
    content = b"".join([m.number(i, float(v)) for i, v in enumerate(moments, 1)])
    borders = [float(v) for v in limits]
    return m.inside(5, content + m.doubles(6, borders) + m.doubles(7, [float(c) for c in counts]))


# --- precision and recall -------------------------------------------------------------------------


def curve_counts(labels: Value, predictions: Value, thresholds: int, weights: Value) -> Tensor:
    """True and false positives, true and false negatives, precision and recall by threshold."""
    p = as_tensor(predictions).detach().double().reshape(-1)
    y = as_tensor(labels).detach().double().reshape(-1)
    w = as_tensor(1.0 if weights is None else weights, dtype="float64")
    bins = (p * (thresholds - 1)).floor().long()
    right = bincount(bins, y * w, minlength=thresholds)
    wrong = bincount(bins, (1 - y) * w, minlength=thresholds)
    tp, fp = (flip(cumsum(flip(n, [0]), 0), [0]) for n in (right, wrong))
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7  # instead of 0 / 0
    return stack([tp, fp, tn, fn, tp / clamp(tp + fp, least), tp / clamp(tp + fn, least)])


def curve(tag: str, counts: Tensor, thresholds: int) -> bytes:
    """What :func:`curve_counts` returned."""
    content = m.inside(8, m.tensor(counts.float()))
    return m.summary(tag, content, m.plugin("pr_curves", m.integer(2, thresholds)))


# --- sounds ---------------------------------------------------------------------------------------


def audio(sound: Value, sample_rate: int) -> bytes:
    """A sound with values in [-1, 1] as a WAV file of 16 bits and one channel."""
    x = as_tensor(sound).detach().double().squeeze()
    if x.ndim != 1:
        raise AssertionError(
            f"add_audio: input tensor should be 1 dimensional, got shape {tuple(x.shape)}"
        )
    samples = (clamp(x, -1, 1) * 32767).to("int16")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes(samples.numpy().astype("<i2").tobytes())
    return m.inside(
        6,
        m.fraction(1, sample_rate)
        + m.integer(2, 1)
        + m.integer(3, samples.numel())
        + m.inside(4, file.getvalue())
        + m.text(5, "audio/wav"),
    )


# --- settings and layouts -------------------------------------------------------------------------

_STRING, _BOOL, _NUMBER = 1, 2, 3


def hyperparameters(
    settings: Mapping[str, Any],
    metrics: Mapping[str, Any],
    domains: Mapping[str, Sequence[Any]] | None,
) -> list[bytes]:
    """The experiment, the settings of a session, and its end."""
    domains = domains or {}
    for name, values in domains.items():
        kind = type(settings.get(name))
        if name not in settings or not all(isinstance(v, kind) for v in values):
            raise TypeError(
                f"add_hparams: hparam_domain_discrete[{name!r}] should be a list of same type as "
                f"hparam_dict[{name!r}]"
            )
    known = {k: _setting(k, v) for k, v in settings.items() if v is not None}
    infos = [
        m.inside(4, m.text(1, name) + m.integer(4, kind) + _domain(name, domains.get(name)))
        for name, (kind, _) in known.items()
    ]
    infos += [m.inside(5, m.inside(1, m.text(2, name))) for name in metrics]
    start = m.mapping(1, {name: value for name, (_, value) in known.items()})
    contents = {
        "_hparams_/experiment": m.inside(2, b"".join(infos)),
        "_hparams_/session_start_info": m.inside(3, start),
        "_hparams_/session_end_info": m.inside(4, m.integer(1, 1)),  # success
    }
    return [m.summary(tag, b"", m.plugin("hparams", c)) for tag, c in contents.items()]


def _setting(name: str, value: Any) -> tuple[int, bytes]:
    """The type of a setting, and its value."""
    if isinstance(value, str):
        return _STRING, m.text(3, value)
    if isinstance(value, bool):
        return _BOOL, m.integer(4, value)
    if isinstance(value, (int, float, Tensor)) or hasattr(value, "__float__"):
        return _NUMBER, m.number(2, as_number("add_hparams", value))
    raise ValueError(
        f"add_hparams: the value of {name!r} should be one of int, float, str, bool, or Tensor, "
        f"got {type(value).__name__}"
    )


def _domain(name: str, values: Sequence[Any] | None) -> bytes:
    if values is None:
        return b""
    return m.inside(5, b"".join([m.inside(1, _setting(name, v)[1]) for v in values]))


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> bytes:
    """Charts of several curves: ``{category: {title: ["Multiline" or "Margin", tags]}}``."""
    categories = b""
    for category, charts in layout.items():
        content = m.text(1, category)
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(
                        f"add_custom_scalars: a margin chart has 3 tags (value, lower, upper), got "
                        f"{len(tags)}"
                    )
                series = b"".join([m.text(i, tag) for i, tag in enumerate(tags, 1)])
                chart = m.inside(3, m.inside(1, series))
            else:
                chart = m.inside(2, b"".join([m.text(1, tag) for tag in tags]))
            content += m.inside(2, m.text(1, title) + chart)
        categories += m.inside(2, content)
    content = m.inside(8, m.strings([categories], []))
    return m.summary("custom_scalars__config__", content, m.plugin("custom_scalars"))
