"""One self-contained page about a fitted network: the verdict, the data, how it learned, errs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chainrule.inspect.core.pages import page
from chainrule.inspect.health.findings import Finding
from chainrule.printing import text_table
from chainrule.train.fitted import FittedNetwork
from chainrule.train.reporting.cases import worst_cases
from chainrule.train.reporting.code import code, python_code
from chainrule.train.reporting.curves import SCRIPT, learning
from chainrule.train.reporting.data import columns
from chainrule.train.reporting.dependence import dependence
from chainrule.train.reporting.health import health
from chainrule.train.reporting.html import STYLE, note, number, section, table
from chainrule.train.reporting.importance import IMPORTANCES, importance
from chainrule.train.reporting.intervals import intervals
from chainrule.train.reporting.network import architecture
from chainrule.train.reporting.predictions import calibration, predictions
from chainrule.train.reporting.scores import answer, scores
from chainrule.train.reporting.thresholds import SCRIPT as SLIDER
from chainrule.train.reporting.thresholds import thresholds
from chainrule.train.reporting.verdict import measure, verdict

__all__ = ["html_report", "python_code", "text_report"]


def text_report(network: FittedNetwork) -> str:
    """A few lines for the terminal: the verdict, warnings, and the scores beside baselines."""
    about = network.about
    split, found = about["split"], verdict(network)
    kind = f"{about['task']} of {about['target']!r}"
    what = "images" if about.get("images") else "rows"
    if about["classes"]:
        named = "labels" if about["task"] == "multilabel" else "classes"
        kind += f" ({len(about['classes'])} {named})"
    lines = [found.sentence]
    lines += [f"warning: {text}" for text in about.get("warnings", [])]
    lines += [f"note: {text}" for text in about.get("notes", [])]
    lines += [f"try: {text}" for text in found.advice]
    lines += [
        f"{about['source']}: {about['rows']:,} {what}, {_inputs(about)}, {kind}",
        f"network: {about['parameters']:,} parameters; best epoch {about['best_epoch']} of "
        f"{len(network.history)} ({about['stopped']})",
        f"held-out scores on {split['test']:,} {what} ({_learned_from(about)}):",
        *_score_lines(about),
    ]
    lines += _left_out_lines(about) + _role_lines(about)
    return "\n".join(lines + doctors_lines(about))


def _inputs(about: dict[str, Any]) -> str:
    if about.get("images"):
        return str(about["features"][0])
    return f"{len(about['features']):,} feature{'s' * (len(about['features']) > 1)}"


def _left_out_lines(about: dict[str, Any]) -> list[str]:
    """The columns that were left out without anybody saying so."""
    roles = about.get("roles", {})
    found = [
        f"left out column {name!r}: {why}"
        for name, why in about["left_out"].items()
        if not roles.get(name, {}).get("given")
    ]
    more = [f"and {len(found) - 5} more are left out"] if len(found) > 5 else []
    return found[:5] + more


def _role_lines(about: dict[str, Any]) -> list[str]:
    """The guesses that one may want to know of, and how to change them."""
    guessed = [
        f"column {name!r} is taken for {role['kind']}: {role['why']}"
        for name, role in about.get("roles", {}).items()
        if role["kind"] in ("date", "ordinal", "text") and not role["given"]
    ]
    more = [f"and {len(guessed) - 5} more such columns"] if len(guessed) > 5 else []
    return guessed[:5] + more


def _score_lines(about: dict[str, Any]) -> list[str]:
    names = list(about["scores"])
    rows = [
        [f"  {label}", *[measure(n).plain(scores[n]) if n in scores else "" for n in names]]
        for label, scores in {"network": about["scores"], **about["baselines"]}.items()
    ]
    ends = about.get("intervals", {})
    for i, label in enumerate(("    from (95 %)", "    to")) if ends else ():
        bounds = [measure(n).plain(ends[n][i]) if n in ends else "" for n in names]
        rows.insert(1 + i, [label, *bounds])
    return text_table(["", *names], rows, left=1).split("\n")


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


def _learned_from(about: dict[str, Any]) -> str:
    """Which rows were learned from, in words."""
    split, members = about["split"], about.get("trained", {}).get("members")
    train, validation = split["train"], split["validation"]
    if members:
        return (
            f"trained on {train + validation:,}, each of {members} members without {validation:,}"
        )
    return f"trained on {train:,}, chosen on {validation:,}"


def html_report(network: FittedNetwork, command: str = "", place: str = "model") -> str:
    """The page as text: no other file, nothing from the network; without a script pictures stay.

    ``command`` is the one that made the network, ``place`` the folder in which it is saved.
    """
    about = network.about
    title = f"{about['source']}: {about['task']} of {about['target']}"
    held: dict[str, Callable[[FittedNetwork], str]] = {
        "Predictions": predictions,
        "Intervals": intervals,
        "Thresholds": thresholds,
        "Calibration": calibration,
        "Importance": importance,
        "Effects": dependence,
        "Worst cases": worst_cases,
    }
    parts: dict[str, Callable[[FittedNetwork], str]] = {
        "Answer": answer,
        "Scores": scores,
        **(held if network.held_out else {}),
        "Learning": learning,
        "Health": lambda network: health(network.about),
        "Data": columns,
        "Network": architecture,
        "Settings": _settings,
        "Code": lambda network: code(network, command, place),
    }
    network.held_out.pop(IMPORTANCES, None)  # of the network as it was
    made = [section(name, partial(make, network)) for name, make in parts.items()]
    shown = [(name, text) for name, text in made if text]
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name, _ in shown[1:])
    split = about["split"]
    what = "images" if about.get("images") else "rows"
    top = note(
        f"{about['rows']:,} {what}; {_learned_from(about)}, scored on {split['test']:,} held out."
    )
    rest = [f'<section id="{_anchor(n)}"><h2>{n}</h2>{text}</section>' for n, text in shown[1:]]
    body = [
        shown[0][1],
        top,
        f'<nav class="links" aria-label="Sections">{links}</nav>',
        *rest,
        f"<script>{SCRIPT}{SLIDER}</script>",
    ]
    return page(title, "".join(body), STYLE)


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _settings(network: FittedNetwork) -> str:
    """What was said, where None is chosen, and what was chosen."""
    rows = [(k, str(v)) for k, v in network.about["settings"].items()]
    listed = table(["setting", "value"], rows, False)
    shown = f"<details><summary>{len(rows)} settings</summary>{listed}</details>"
    trained = network.about.get("trained", {})
    chosen = [(k, _told(v)) for k, v in trained.items() if k != "used"]
    for i, one in enumerate(trained.get("used", [])):
        what = ", ".join(f"{k} {_told(v)}" for k, v in one.items() if k != "weight")
        chosen.append((f"network {i + 1}, weight {one['weight']:.0%}", what))
    if not chosen:
        return shown
    listed = table(["chosen", "value"], chosen, False)
    return f"{shown}<details><summary>What was chosen</summary>{listed}</details>"


def _told(value: Any) -> str:
    return " x ".join(map(str, value)) if isinstance(value, list) else number(value)
