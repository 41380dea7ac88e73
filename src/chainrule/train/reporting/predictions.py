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
    curve = metrics.reliability(p, target, BINS, scores="probabilities")
    filled = curve.counts > 0
    confidences, hits, counts = (
        t[filled] for t in (curve.confidences, curve.hits, curve.counts.double())
    )
    chart = scatter_chart(
        confidences.tolist(),
        hits.tolist(),
        "Calibration",
        "confidence in the predicted class",
        "share that is right",
        sizes=counts.tolist(),
    )
    rows = len(target)
    mean, share = (float((t * counts).sum()) / rows for t in (confidences, hits))
    return (
        f"<p>Mean confidence {mean:.1%}, right {share:.1%}; expected calibration error "
        f"{error:.3f}. Points below the line: the network is surer than it should be; the larger a "
        f"point, the more of the {rows} rows are in it.</p>{_framed(chart)}"
    )


def _framed(*charts: str) -> str:
    return f'<div class="charts">{"".join(f"<figure>{c}</figure>" for c in charts)}</div>'
