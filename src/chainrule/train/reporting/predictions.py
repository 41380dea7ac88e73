"""What the network says about held-out rows: which are confused, by how much, how surely."""

from __future__ import annotations

from chainrule import metrics
from chainrule.inspect.core.svg import confusion_chart, scatter_chart
from chainrule.ops.layers.softmax import softmax
from chainrule.train.fitted import FittedNetwork

__all__ = ["calibration", "predictions"]

POINTS = 2000  # in a scatter plot
BINS = 10


def predictions(network: FittedNetwork) -> str:
    """The confusion matrix of classes; of numbers the predicted and what is left of the true."""
    output, target = network.held_out["output"], network.held_out["target"]
    if network.task == "classification":
        classes = network.about["classes"]
        matrix = metrics.confusion_matrix(output, target, len(classes))
        chart = confusion_chart(matrix.tolist(), classes, "Confusion matrix")
        return f'<figure class="own">{chart}</figure>'
    spread, mean = network.target.spread, network.target.mean
    true, predicted = (
        [v * spread + mean for v in t.reshape(-1).tolist()[:POINTS]] for t in (target, output)
    )
    left = [t - p for t, p in zip(true, predicted, strict=True)]
    return _framed(
        scatter_chart(true, predicted, "Predicted against true", "true", "predicted"),
        scatter_chart(predicted, left, "Residuals", "predicted", "true - predicted", "zero"),
    )


def calibration(network: FittedNetwork) -> str:
    """Whether the network is right as often as it says."""
    if network.task != "classification":
        return ""
    p = softmax(network.held_out["output"].double(), 1)
    target = network.held_out["target"]
    error = metrics.calibration_error(p, target, BINS, scores="probabilities")
    surest, said = p.max(1)
    hits = (said == target).tolist()
    bins: dict[int, list[tuple[float, bool]]] = {}
    for sure, hit in zip(surest.tolist(), hits, strict=True):
        bins.setdefault(min(BINS - 1, int(sure * BINS)), []).append((sure, hit))
    kept = [some for _, some in sorted(bins.items())]
    confidence = [sum(sure for sure, _ in some) / len(some) for some in kept]
    right = [sum(hit for _, hit in some) / len(some) for some in kept]
    chart = scatter_chart(
        confidence,
        right,
        "Calibration",
        "confidence in the predicted class",
        "share that is right",
        sizes=[len(some) for some in kept],
    )
    mean, share = sum(surest.tolist()) / len(hits), sum(hits) / len(hits)
    return (
        f"<p>Mean confidence {mean:.1%}, right {share:.1%}; expected calibration error "
        f"{error:.3f}. Points below the line: the network is surer than it should be; the larger a "
        f"point, the more of the {len(hits)} rows are in it.</p>{_framed(chart)}"
    )


def _framed(*charts: str) -> str:
    return f'<div class="charts">{"".join(f"<figure>{c}</figure>" for c in charts)}</div>'
