"""One self-contained page about a fitted network: data, architecture, learning, held-out scores."""

from __future__ import annotations

from html import escape
from typing import Any

from chainrule.inspect.core.pages import page
from chainrule.inspect.health.findings import Finding
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.cases import worst_cases
from chainrule.train.reporting.curves import SCRIPT, learning
from chainrule.train.reporting.health import health
from chainrule.train.reporting.html import STYLE, note, number, section, table
from chainrule.train.reporting.importance import importance
from chainrule.train.reporting.network import architecture
from chainrule.train.reporting.predictions import calibration, predictions

__all__ = ["html_report", "python_code", "text_report"]

SHOWN = 60  # columns of the data in the page


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


def use_code(network: FittedNetwork) -> str:
    """The Python program that uses the network that :func:`python_code` saves."""
    about = network.about
    if about.get("images"):
        rows = network.held_out.get("rows") or ["image.png"]
        named = f"[{str(rows[0])!r}]"
    elif about.get("embedded"):
        named = f"data.embedded({about['source']!r}).table"
    else:
        named = f"data.read_table({about['source']!r})"
    return (
        "from chainrule import data, train\n\n"
        'network = train.FittedNetwork.load("model")\n'
        f"rows = {named}  # or others\n"
        "print(network.predict(rows)[:5])"
    )


def html_report(network: FittedNetwork, command: str = "") -> str:
    """The page as text: no other file, nothing from the network; without a script pictures stay."""
    about = network.about
    title = f"{about['source']}: {about['task']} of {about['target']}"
    seen = bool(network.held_out)
    sections = [
        ("Scores", _scores(about)),
        section("Learning", lambda: learning(network)),
        section("Predictions", lambda: predictions(network) if seen else ""),
        section("Calibration", lambda: calibration(network) if seen else ""),
        section("Importance", lambda: importance(network) if seen else ""),
        section("Worst cases", lambda: worst_cases(network) if seen else ""),
        section("Health", lambda: health(about)),
        section("Network", lambda: architecture(network)),
        ("Data", _data(about)),
        ("Settings", _settings(about)),
        ("Code", _code(network, command)),
    ]
    shown = [(name, text) for name, text in sections if text]
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name, _ in shown)
    split = about["split"]
    body = [
        note(
            f"{about['rows']} rows; trained on {split['train']}, chosen on {split['validation']}, "
            f"scored on {split['test']} held out."
        ),
        f'<nav class="links" aria-label="Sections">{links}</nav>',
        *[f'<section id="{_anchor(name)}"><h2>{name}</h2>{text}</section>' for name, text in shown],
        f"<script>{SCRIPT}</script>",
    ]
    return page(title, "".join(body), STYLE)


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _scores(about: dict[str, Any]) -> str:
    names = list(about["scores"])
    tiles = "".join(
        f'<div class="tile">{escape(n)}<b>{escape(number(about["scores"][n]))}</b></div>'
        for n in names
    )
    rows = {"this network": about["scores"], **about["baselines"]}
    compared = table(
        ["model", *names],
        [[label, *[scores.get(n, "") for n in names]] for label, scores in rows.items()],
    )
    return f'<div class="tiles">{tiles}</div>{compared}'


def _data(about: dict[str, Any]) -> str:
    columns = about.get("summary", [])
    if not columns:
        return f"<p>{escape(', '.join(map(str, about['columns'][:SHOWN])))}</p>"
    head = ["column", "kind", "missing", "values"]
    rows = table(head, [[c[h] for h in head] for c in columns[:SHOWN]], False)
    more = note(f"and {len(columns) - SHOWN} more") if len(columns) > SHOWN else ""
    left = "".join(note(f"left out: {name} ({why})") for name, why in about["left_out"].items())
    many = "" if len(columns) <= 12 else f"<summary>{len(columns)} columns</summary>"
    return (f"<details>{many}{rows}{more}</details>" if many else rows) + left


def _settings(about: dict[str, Any]) -> str:
    rows = [(k, str(v)) for k, v in about["settings"].items()]
    listed = table(["setting", "value"], rows, False)
    return f"<details><summary>{len(rows)} settings</summary>{listed}</details>"


def _code(network: FittedNetwork, command: str) -> str:
    given = f"<h3>On the command line</h3><pre>{escape(command)}</pre>" if command else ""
    return (
        f"{given}<h3>To repeat this</h3><pre>{escape(python_code(network))}</pre>"
        f"<h3>To use the network</h3><pre>{escape(use_code(network))}</pre>"
    )
