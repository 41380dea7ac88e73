"""What the network says about held-out rows: which are confused, by how much, how surely."""

from __future__ import annotations

from html import escape

from chainrule.inspect.core.svg import confusion_chart, histogram_chart, scatter_chart
from chainrule.inspect.results.calibration import Calibration
from chainrule.inspect.results.confusion import Confusion
from chainrule.inspect.results.residuals import Residuals
from chainrule.printing import readable
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed, note, table_of
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
    texts = [_numbers(seen, k) for k in range(min(NUMBERS, len(seen.names)))]
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
        rows.append([name, *cells])
    head = ["label", "rows", "said", "recall", "precision"]
    whole = float(((seen.said > 0.5) == (seen.true > 0.5)).double().min(1)[0].mean())
    return (
        f"<p>All labels of a row are right in {whole:.1%} of the {len(seen):,} held-out rows.</p>"
        + table_of(head, [[escape(c) for c in row] for row in rows])
        + MEANINGS
    )


# --- numbers --------------------------------------------------------------------------------------


def _numbers(seen: Seen, k: int) -> str:
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
    name = seen.names[k]
    return f"<p>{escape(words)}</p>{f'<ul>{told}</ul>' if told else ''}" + framed(
        scatter_chart(some[1], some[0], "Predicted against true", f"true {name}", "predicted"),
        scatter_chart(some[0], left, "Residuals", "predicted", "true - predicted", "zero"),
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
    return f"{listed}<p>The pictures are those of {escape(seen.answers[k])}.</p>"


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
    """Whether the network is right as often as it says."""
    seen = seen_of(network)
    if seen.kind != CLASSES:
        return ""
    found = Calibration.from_predictions(
        seen.true, seen.said, classes=seen.names, bins=BINS, of="predicted"
    )
    filled = found.counts > 0
    confidences, hits, counts = (
        t[filled] for t in (found.confidences, found.hits, found.counts.double())
    )
    chart = scatter_chart(
        confidences.tolist(),
        hits.tolist(),
        "Calibration",
        "confidence in the predicted class",
        "share that is right",
        sizes=counts.tolist(),
    )
    rows = len(seen)
    mean, share = (float((t * counts).sum()) / rows for t in (confidences, hits))
    return (
        f"<p>The network is {escape(found.verdict)}. Mean confidence {mean:.1%}, right "
        f"{share:.1%}; expected calibration error {found.error:.3f}.</p>"
        f"{framed(chart)}<p class='soft'>Points below the line: the network is surer than it "
        f"should be. The larger a point, the more of the {rows:,} rows are in it.</p>"
    )
