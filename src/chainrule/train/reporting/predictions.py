"""What the network says about held-out rows: which are confused, by how much, how surely."""

from __future__ import annotations

import math
from html import escape

from chainrule.inspect.core.svg import confusion_chart, histogram_chart, scatter_chart
from chainrule.inspect.results.calibration import Calibration
from chainrule.inspect.results.confusion import Confusion
from chainrule.inspect.results.residuals import Residuals
from chainrule.ops.shape.stacking import stack
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed, note, table_of
from chainrule.train.reporting.intervals import USUAL, half_widths
from chainrule.train.reporting.seen import CLASSES, LABELS, Seen, seen_of

__all__ = ["calibration", "predictions"]

POINTS = 1500  # in a scatter plot
BINS = 10
DRAWN, LISTED = 25, 60  # classes in a matrix, and in a table
MEANINGS = note(
    "Recall: how many rows of a class are found. Precision: how many are right when it is said."
)
NUMBERS = 4  # outputs whose residuals are drawn


def predictions(network: FittedNetwork) -> str:
    """Of classes and labels a row of scores for each, and what is confused; of numbers what is left
    of the true ones."""
    seen = seen_of(network)
    if seen.kind == CLASSES:
        return _classes(seen)
    if seen.kind == LABELS:
        return _labels(seen)
    reach = half_widths(network, USUAL) or [math.inf] * len(seen.names)
    texts = [_numbers(seen, k, reach[k]) for k in range(min(NUMBERS, len(seen.names)))]
    if len(seen.names) == 1:
        return _coverage(seen) + texts[0]
    return "".join(f"<h3>{escape(n)}</h3>{t}" for n, t in zip(seen.names, texts, strict=False))


# --- classes --------------------------------------------------------------------------------------


def _classes(seen: Seen) -> str:
    found = Confusion.from_predictions(seen.true, seen.said, classes=seen.names)
    counts = [[int(n) for n in row] for row in found.counts.tolist()]
    worst = {true: (said, n) for true, said, n in reversed(found.worst)}
    rows = []
    for k, name in enumerate(seen.names[:LISTED]):
        r, p = found.recall[k], found.precision[k]
        total = sum(counts[k])
        taken = f"{worst[name][0]} ({worst[name][1]})" if name in worst else "nothing else"
        f1 = 2 * p * r / (p + r) if p + r else 0.0
        said = any(row[k] for row in counts)
        cells = [f"{total:,}", f"{r:.1%}" if total else "", f"{p:.1%}" if said else "never said"]
        rows.append([name, *cells, f"{f1:.2f}" if total else "", taken if total else ""])
    head = ["class", "rows", "recall", "precision", "F1", "taken for"]
    listed = f"<div>{table_of(head, [[escape(c) for c in row] for row in rows])}{MEANINGS}</div>"
    mistakes = ", ".join(f"{true} taken for {said} ({n})" for true, said, n in found.worst[:3])
    lead = f"Confused most often: {mistakes}." if mistakes else "No row was taken for another."
    words = f"<p>{escape(lead)}</p>"
    if len(seen.names) > DRAWN:
        return words + listed
    chart = confusion_chart(counts, seen.names, "Confusion matrix (rows)")
    return f'{words}<div class="beside"><figure class="own">{chart}</figure>{listed}</div>'


def _labels(seen: Seen) -> str:
    rows = []
    for k, name in enumerate(seen.names[:LISTED]):
        own, said = seen.true[:, k] > 0.5, seen.said[:, k] > 0.5
        hits, total, all_said = (int(t.sum()) for t in (own & said, own, said))
        cells = [f"{total:,}", f"{all_said:,}"]
        cells += [f"{hits / n:.1%}" if n else "" for n in (total, all_said)]
        f1 = f"{2 * hits / (total + all_said):.2f}" if total + all_said else ""
        rows.append([name, *cells, f1])
    head = ["label", "rows", "said", "recall", "precision", "F1"]
    whole = float(((seen.said > 0.5) == (seen.true > 0.5)).double().min(1)[0].mean())
    return (
        f"<p>All labels of a row are right in {whole:.1%} of the {len(seen):,} held-out rows.</p>"
        + table_of(head, [[escape(c) for c in row] for row in rows])
        + MEANINGS.replace("a class", "a label")
    )


# --- numbers --------------------------------------------------------------------------------------


def _numbers(seen: Seen, k: int, reach: float = math.inf) -> str:
    """The errors of one number; ``reach`` is how far its interval goes to both sides."""
    said, true = seen.centers[:, k], seen.true[:, k]
    found = Residuals.from_predictions(true, said)
    sizes = sorted(found.residuals.abs().tolist())
    half, most = (sizes[min(len(sizes) - 1, int(share * len(sizes)))] for share in (0.5, 0.9))
    words = (
        f"Half of the predictions are off by less than {readable(half)}, nine of ten by less than "
        f"{readable(most)}; the largest error is {readable(sizes[-1])}."
    )
    told = "".join(f"<li>{escape(text)}</li>" for text in found.verdicts)
    some = _thinned(said, true)
    left = [t - s for s, t in zip(*some, strict=True)]
    name, band = seen.names[k], reach if math.isfinite(reach) else None
    words += f" Dotted among the residuals: the interval of {USUAL:.0%}." if band else ""
    return f"<p>{escape(words)}</p>{f'<ul>{told}</ul>' if told else ''}" + framed(
        scatter_chart(some[1], some[0], "Predicted against true", f"true {name}", "predicted"),
        scatter_chart(
            some[0], left, "Residuals", "predicted", "true - predicted", "zero", band=band
        ),
        _histogram(found.residuals),
    )


def _coverage(seen: Seen) -> str:
    """Of quantiles how many of the true numbers lie below each, and how many should."""
    if not seen.quantiles:
        return ""
    below = (seen.true <= seen.said).double().mean(0).tolist()
    rows = [
        [escape(name), f"{q:.1%}", f"{share:.1%}"]
        for name, q, share in zip(seen.answers, seen.quantiles, below, strict=True)
    ]
    listed = table_of(["prediction", "should lie below", "lie below"], rows)
    k = min(range(len(seen.quantiles)), key=lambda i: abs(seen.quantiles[i] - 0.5))
    words = ""
    if len(seen.quantiles) > 1:
        low, high = seen.said.min(1)[0], seen.said.max(1)[0]
        true = seen.true[:, 0]
        share = float(((true >= low) & (true <= high)).double().mean())
        should = seen.quantiles[-1] - seen.quantiles[0]
        words = f"{share:.1%} lie between the outer ones, {should:.1%} should. "
    return f"{listed}<p>{words}The pictures are those of {escape(seen.answers[k])}.</p>"


def _thinned(said: Tensor, true: Tensor) -> tuple[list[float], list[float]]:
    """At most so many points, evenly chosen."""
    step = max(1, -(-len(said) // POINTS))
    return said[::step].tolist(), true[::step].tolist()


def _histogram(left: Tensor) -> str:
    low, high = float(left.min()), float(left.max())
    if not low < high:
        return ""
    bins = min(40, max(8, round(len(left) ** 0.5)))
    places = ((left - low) * (bins / (high - low))).long().clamp(max=bins - 1)
    counts = [int(n) for n in places.bincount(minlength=bins).tolist()]
    return histogram_chart(counts, low, high, "How large errors are", "true - predicted", "rows")


# --- probabilities --------------------------------------------------------------------------------


def calibration(network: FittedNetwork) -> str:
    """Whether what is said with a probability is true as often as that."""
    seen = seen_of(network)
    if seen.kind not in (CLASSES, LABELS):
        return ""
    if seen.kind == LABELS:
        return _of_labels(seen) + _softened(network)
    found = Calibration.from_predictions(
        seen.true, seen.said, classes=seen.names, bins=BINS, of="predicted"
    )
    chart, mean, share = _shares(found, "confidence in the predicted class", "share that is right")
    charts = [chart]
    if len(seen.names) == 2:
        name = seen.names[1]
        one = Calibration.from_predictions(
            seen.true, seen.said, classes=seen.names, bins=BINS, of=name
        )
        charts.append(_shares(one, f"probability of {name}", f"share that is {name}")[0])
    return (
        f"<p>The network is {escape(found.verdict)}. Mean confidence {mean:.1%}, right "
        f"{share:.1%}; expected calibration error {found.error:.3f}.</p>"
        f"{framed(*charts)}<p class='soft'>Points below the line: the network is surer than it "
        f"should be. The larger a point, the more of the {len(seen):,} rows are in it.</p>"
    ) + _softened(network)


def _of_labels(seen: Seen) -> str:
    """The same of the probabilities of all labels, each against not having it."""
    flat = seen.said.reshape(-1)
    pairs = stack([1 - flat, flat], 1)
    found = Calibration.from_predictions(
        seen.true.reshape(-1).long(), pairs, classes=["no", "yes"], bins=BINS, of="yes"
    )
    chart, mean, share = _shares(found, "probability of a label", "share that has it")
    return (
        f"<p>Mean probability of a label {mean:.1%}, rows that have it {share:.1%}; expected "
        f"calibration error {found.error:.3f}.</p>{framed(chart)}"
        "<p class='soft'>Points below the line: the labels are rarer than the network says. The "
        f"larger a point, the more of the {len(flat):,} labels are in it.</p>"
    )


def _shares(found: Calibration, xlabel: str, ylabel: str) -> tuple[str, float, float]:
    """The chart of what is true at each probability, and the means of both."""
    filled = found.counts > 0
    said, hits, counts = (t[filled] for t in (found.confidences, found.hits, found.counts.double()))
    points = said.tolist(), hits.tolist()
    chart = scatter_chart(*points, "Calibration", xlabel, ylabel, sizes=counts.tolist())
    mean, share = (float((t * counts).sum()) / float(counts.sum()) for t in (said, hits))
    return chart, mean, share


def _softened(network: FittedNetwork) -> str:
    """What was done so that probabilities are right, where it was."""
    kept = network.about.get("calibration", {})
    temperature = kept.get("temperature", 1.0)
    if temperature == 1.0:
        return ""
    return note(
        f"The outputs are divided by {temperature:.2g}, which suited the {kept['rows']:,} "
        "validation rows best."
    )
