"""What a threshold on the probability of a class buys, and which one to choose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from chainrule.inspect.core import svg
from chainrule.inspect.core.svg import curve_chart
from chainrule.inspect.results.predictions import Predictions
from chainrule.inspect.results.thresholds import PrecisionRecall, Roc
from chainrule.tensor import Tensor
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.html import framed, table
from chainrule.train.reporting.seen import CLASSES, LABELS, seen_of

__all__ = ["SCRIPT", "thresholds"]

CURVES = 6  # classes whose curves are drawn
LISTED = 60
POINTS = 150  # of a curve
# A slider that moves the points on both curves and says what becomes of the rows.
SCRIPT = """
document.querySelectorAll('.threshold').forEach(box=>{
const data=JSON.parse(box.querySelector('script').textContent),out=box.querySelector('output'),
[W,H,L,R,T,B]=data.frame,dots=box.querySelectorAll('circle.at'),label=document.createElement('label'),
slider=document.createElement('input');slider.type='range';slider.min=1;slider.max=99;
slider.value=50;slider.setAttribute('aria-label','Threshold for '+data.name);
label.append('Threshold ',slider);box.prepend(label);
const x=v=>L+(v+.04)/1.08*(W-L-R),y=v=>H-B-(v+.04)/1.08*(H-B-T),
share=(a,b)=>b?(100*a/b).toFixed(1)+'%':'none';
function show(){const t=+slider.value,[tp,fp]=data.counts[t-1],said=tp+fp,
places=[[fp/data.others,tp/data.own],[tp/data.own,said?tp/said:1]];
dots.forEach((dot,i)=>{dot.setAttribute('cx',x(places[i][0]).toFixed(1));
dot.setAttribute('cy',y(places[i][1]).toFixed(1))});
out.textContent='At '+t+'%: '+said+' rows are called '+data.name+', '+tp+
' of them rightly (precision '+share(tp,said)+'); '+tp+' of '+data.own+' are found (recall '+
share(tp,data.own)+'), '+fp+' of '+data.others+' others are false alarms ('+
share(fp,data.others)+').'}
slider.oninput=show;show()});
"""


def thresholds(network: FittedNetwork) -> str:
    """The curves of each class against the rest; of two classes with a threshold to choose."""
    seen = seen_of(network)
    if seen.kind not in (CLASSES, LABELS):
        return ""
    task = "classification" if seen.kind == CLASSES else "labels"
    found = Predictions(task, seen.said, seen.true, seen.names)
    try:
        roc, precise = Roc._of(found), PrecisionRecall._of(found)
    except ValueError as error:  # of one class among the held-out rows
        return f"<p>{escape(str(error))}</p>"
    names = list(roc.curves)
    listed = _listed(roc, precise, names[:LISTED], seen.kind)
    if len(names) > CURVES:
        return listed
    one = names[0] if len(names) == 1 else None
    charts = _charts(roc, precise, names)
    if one is None:
        what = (
            "label against the rows without it"
            if seen.kind == LABELS
            else "class against all others"
        )
        return f"<p>Each {what}.</p>{framed(*charts)}{listed}"
    k = seen.names.index(one)
    told = _chosen(seen.said[:, k], seen.true == k, one)
    return f'<div class="threshold">{told}{framed(*charts)}</div>{listed}'


def _charts(roc: Roc, precise: PrecisionRecall, names: Sequence[str]) -> tuple[str, str]:
    one = len(names) == 1
    rates = {
        n: _thinned(roc.curves[n].false_positive_rate, roc.curves[n].true_positive_rate)
        for n in names
    }
    shares = {n: _thinned(precise.curves[n].recall, precise.curves[n].precision) for n in names}
    guess = {f"chance ({precise.share[n]:.0%})": _level(precise.share[n]) for n in names if one}
    return (
        curve_chart(
            {**rates, "chance": [(0.0, 0.0), (1.0, 1.0)]},
            "ROC: true against false alarms",
            "false positive rate",
            "true positive rate (recall)",
            faint=("chance",),
            dots=roc.at if one else None,
            span=(0.0, 1.0),
        ),
        curve_chart(
            {**shares, **guess},
            "Precision and recall",
            "recall",
            "precision",
            faint=tuple(guess),
            dots=precise.at if one else None,
            span=(0.0, 1.0),
        ),
    )


def _level(height: float) -> list[tuple[float, float]]:
    return [(0.0, height), (1.0, height)]


def _thinned(x: Tensor, y: Tensor) -> list[tuple[float, float]]:
    """Points of a curve: not more than are seen, the ends among them."""
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    step = max(1, -(-len(pairs) // POINTS))
    return [*pairs[:-1:step], pairs[-1]]


def _listed(roc: Roc, precise: PrecisionRecall, names: Sequence[str], kind: str) -> str:
    what = "label" if kind == LABELS else "class"
    head = [what, "share", "ROC AUC", "average precision", "best F1 at", "best balance at"]
    rows = [
        [
            n,
            f"{precise.share[n]:.1%}",
            f"{roc.auc[n]:.3f}",
            f"{precise.average_precision[n]:.3f}",
            f"{precise.best[n]:.0%}",
            f"{min(1.0, roc.best[n]):.0%}",
        ]
        for n in names
    ]
    return table(head, rows)


def _chosen(scores: Tensor, own: Tensor, name: str) -> str:
    """What each threshold in percent does to the rows, for the slider, and that of 50% in words."""
    counts = []
    for t in range(1, 100):
        above = scores >= t / 100
        counts.append([int((above & own).sum()), int((above & ~own).sum())])
    data = {
        "name": name,
        "own": int(own.sum()),
        "others": int((~own).sum()),
        "counts": counts,
        "frame": [svg.WIDTH, svg.HEIGHT, svg.LEFT, svg.RIGHT, svg.TOP, svg.BOTTOM],
    }
    held = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    tp, fp = counts[49]
    words = (
        f"At 50%: {tp + fp} rows are called {name}, {tp} of them rightly; {tp} of {data['own']} "
        f"are found, {fp} of {data['others']} others are false alarms."
    )
    return f'<output>{escape(words)}</output><script type="application/json">{held}</script>'
