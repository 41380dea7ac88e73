"""One self-contained page about a fitted network: data, architecture, learning, held-out scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from chainrule import metrics
from chainrule.inspect.core.svg import confusion_chart, line_chart, scatter_chart
from chainrule.inspect.health.findings import Finding
from chainrule.train.fitted import FittedNetwork

__all__ = ["html_report", "python_code", "text_report"]

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1120px; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: 0.5rem 0; }
td, th { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; border-bottom: 1px solid #e4e4e4; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f6f6f4; padding: 0.8rem; overflow-x: auto; font-size: 13px; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; } .note { color: #666; }
"""
SHOWN = 60  # columns of the data in the page
POINTS = 2000  # in a scatter plot


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], numbers: bool = True) -> str:
    def cell(tag: str, i: int, value: Any) -> str:
        mark = ' class="n"' if numbers and i else ""
        return f"<{tag}{mark}>{escape(_number(value))}</{tag}>"

    lines = ["<table><tr>" + "".join(cell("th", i, h) for i, h in enumerate(head)) + "</tr>"]
    lines += ["<tr>" + "".join(cell("td", i, v) for i, v in enumerate(r)) + "</tr>" for r in rows]
    return "".join(lines) + "</table>"


def text_report(network: FittedNetwork) -> str:
    """A few lines for the terminal: what was learned, and how well against baselines."""
    about = network.about
    split = about["split"]
    kind = f"{about['task']} of {about['target']!r}"
    if about["classes"]:
        kind += f" ({len(about['classes'])} classes)"
    lines = [
        f"{about['source']}: {about['rows']} rows, {len(about['features'])} features, {kind}",
        f"network: {about['parameters']} parameters; best epoch {about['best_epoch']} of "
        f"{len(network.history)} ({about['stopped']})",
        f"held-out scores on {split['test']} rows (trained on {split['train']}, chosen on "
        f"{split['validation']}):",
    ]
    names = list(about["scores"])
    rows = {"network": about["scores"], **about["baselines"]}
    width = max(map(len, rows))
    lines.append(" " * (width + 2) + "  ".join(f"{n:>10}" for n in names))
    for label, scores in rows.items():
        cells = [f"{scores[n]:>10.4f}" if n in scores else " " * 10 for n in names]
        lines.append(f"  {label:<{width}}" + "  ".join(cells))
    for name, why in list(about["left_out"].items())[:5]:
        lines.append(f"left out column {name!r}: {why}")
    return "\n".join(lines + doctors_lines(about))


def doctors_lines(about: dict[str, Any]) -> list[str]:
    """What the doctor found, where one was asked: nothing is a line, too."""
    if "findings" not in about:
        return []
    failed = [c for c in about["preflight"] if c["passed"] is False]
    passed = len(about["preflight"]) - len(failed)
    lines = [f"preflight: {passed} of {len(about['preflight'])} lines pass"]
    lines += [f"  {c['name']}: {c['reason']}; {c['remedy']}" for c in failed]
    found = [str(Finding(**f)) for f in about["findings"]]
    return lines + (found or ["doctor: nothing found"])


def python_code(network: FittedNetwork) -> str:
    """The Python program that does the same."""
    about = network.about
    settings = ", ".join(
        f"{k}={tuple(v) if k == 'hidden' else v!r}" for k, v in about["settings"].items()
    )
    read = (
        f"data.embedded({about['source']!r}).table"
        if about.get("embedded")
        else f"data.read_table({about['source']!r})"
    )
    if about.get("images"):
        more = f"size={about['size']!r}, channels={about['channels']!r}"
        call = f"train.fit_images({about['source']!r}, settings, {more})"
    else:
        call = f"train.fit_table({read}, {about['target']!r}, {about['task']!r}, settings)"
    return (
        "from chainrule import data, train\n\n"
        f"settings = train.Settings({settings})\n"
        f"network = {call}\n"
        "print(train.text_report(network))\n"
        'network.save("model")'
    )


def html_report(network: FittedNetwork, command: str = "") -> str:
    """The page as text: no script, no other file, nothing from the network."""
    about = network.about
    title = f"{about['source']}: {about['task']} of {about['target']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{about["rows"]} rows; trained on {about["split"]["train"]}, chosen on '
        f"{about['split']['validation']}, scored on {about['split']['test']} held out.</p>",
        "<h2>Held-out scores</h2>",
        _scores(about),
        "<h2>Learning</h2>",
        f"<p>{escape(about['stopped'])}; the weights are those of epoch {about['best_epoch']} "
        "(dashed line), where the validation loss was lowest.</p>",
        f'<div class="charts">{"".join(_curves(network))}</div>',
        "<h2>Held-out predictions</h2>",
        f'<div class="charts">{_predictions(network)}</div>',
        "<h2>Data</h2>",
        _data(about),
        "<h2>Architecture</h2>",
        f"<p>{about['parameters']} parameters.</p><pre>{escape(str(network.model))}</pre>",
        "<h2>Settings</h2>",
        _table(["setting", "value"], [(k, str(v)) for k, v in about["settings"].items()], False),
        "<h2>To repeat this</h2>",
        *([f"<pre>{escape(command)}</pre>"] if command else []),
        f"<pre>{escape(python_code(network))}</pre>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )


def _scores(about: dict[str, Any]) -> str:
    names = list(about["scores"])
    rows = {"this network": about["scores"], **about["baselines"]}
    return _table(
        ["model", *names],
        [[label, *[scores.get(n, "") for n in names]] for label, scores in rows.items()],
    )


def _curves(network: FittedNetwork) -> list[str]:
    history, best = network.history, float(network.about["best_epoch"])
    charts = [
        line_chart(
            {"training": history["loss"], "validation": history["val_loss"]},
            "Loss",
            ylabel="loss",
            mark=best,
            log=min([*history["loss"], *history["val_loss"]]) > 0,
        )
    ]
    metric = "accuracy" if "accuracy" in history else "r2"
    charts.append(
        line_chart(
            {"training": history[metric], "validation": history[f"val_{metric}"]},
            metric,
            ylabel=metric,
            mark=best,
        )
    )
    norms = {n: v for n, v in network.gradient_norms.items() if n.endswith("weight") and v}
    if norms and max(max(v) for v in norms.values()) > 0:
        charts.append(
            line_chart(norms, "Gradient norm of each layer", ylabel="mean norm", log=True)
        )
    return charts


def _predictions(network: FittedNetwork) -> str:
    output, target = network.held_out["output"], network.held_out["target"]
    if network.task == "classification":
        classes = network.about["classes"]
        matrix = metrics.confusion_matrix(output, target, len(classes))
        return confusion_chart(matrix.tolist(), classes, "Confusion matrix")
    spread, mean = network.target.spread, network.target.mean
    true, predicted = (
        [v * spread + mean for v in t.reshape(-1).tolist()[:POINTS]] for t in (target, output)
    )
    return scatter_chart(true, predicted, "Predicted against true", "true", "predicted")


def _data(about: dict[str, Any]) -> str:
    columns = about.get("summary", [])
    if not columns:
        return f"<p>{escape(', '.join(map(str, about['columns'][:SHOWN])))}</p>"
    shown = columns[:SHOWN]
    more = f'<p class="note">and {len(columns) - SHOWN} more</p>' if len(columns) > SHOWN else ""
    left = "".join(
        f'<p class="note">left out: {escape(name)} ({escape(why)})</p>'
        for name, why in about["left_out"].items()
    )
    head = ["column", "kind", "missing", "values"]
    return _table(head, [[c[h] for h in head] for c in shown], False) + more + left
