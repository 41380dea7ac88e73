"""The programs and commands that repeat a run and use its network."""

from __future__ import annotations

import shlex
from html import escape
from typing import Any

from chainrule.train.automatic.settings import Settings
from chainrule.train.fitted import FittedNetwork

__all__ = ["code", "commands", "python_code", "use_code"]

WIDTH = 88  # columns of a program


def python_code(network: FittedNetwork) -> str:
    """The Python program that does the same."""
    about = network.about
    usual = vars(Settings())
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in about["settings"].items()
        if name == "seed" or value != usual.get(name)
    }
    if about.get("images"):
        first = [repr(about["source"]), "settings"]
        call = _call("train.fit_images", first, about.get("given", {}))
    else:
        targets = about.get("targets", [about["target"]])
        target = repr(targets[0] if len(targets) == 1 else targets)
        first = [_reading(about), target, repr(about["task"]), "settings"]
        call = _call(
            "train.fit_table", first, {**about.get("given", {}), "source": about["source"]}
        )
    return (
        "from chainrule import data, train\n\n"
        f"settings = {_call('train.Settings', [], settings)}\n"
        f"network = {call}\n"
        "print(train.text_report(network))\n"
        'network.save("model")'
    )


def _reading(about: dict[str, Any]) -> str:
    if about.get("embedded"):
        return f"data.embedded({about['source']!r}).table"
    return f"data.read_table({about['source']!r})"


def _call(name: str, first: list[str], given: dict[str, Any]) -> str:
    """A call in one line, or with an argument in each."""
    arguments = [*first, *[f"{k}={v!r}" for k, v in given.items()]]
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= WIDTH - 10:
        return line
    return f"{name}(\n" + "".join(f"    {a},\n" for a in arguments) + ")"


def use_code(network: FittedNetwork, place: str = "model") -> str:
    """The Python program that uses the network in the folder ``place``."""
    about = network.about
    if about.get("images"):
        rows = network.held_out.get("rows") or ["image.png"]
        named = f"[{str(rows[0])!r}]"
    else:
        named = _reading(about)
    more = "print(network.predict_proba(rows)[:5])\n" if network.target.classes else ""
    if _has_intervals(network):
        more = "print(network.predict_interval(rows, 0.9)[:5])\n"
    return (
        "from chainrule import data, train\n\n"
        f"network = train.FittedNetwork.load({place!r})\n"
        f"rows = {named}  # or others\n"
        f"print(network.predict(rows)[:5])\n{more}"
    ).rstrip()


def commands(network: FittedNetwork, place: str = "model") -> str:
    """The commands that use the network in the folder ``place``."""
    where = shlex.quote(place)
    new = "new_images/" if network.about.get("images") else "new.csv"
    sure = " --probabilities" if network.target.classes else ""
    if _has_intervals(network):
        sure = " --interval 0.9"
    return "\n".join(
        [
            f"chainrule predict {where} {new}{sure} --out predictions.csv",
            f"chainrule evaluate {where} {new}",
            f"chainrule serve {where}  # answers over HTTP, with a page to try it",
            f"chainrule inspect {where}",
        ]
    )


def _has_intervals(network: FittedNetwork) -> bool:
    return network.task == "regression" and "errors" in network.about.get("calibration", {})


def code(network: FittedNetwork, command: str, place: str) -> str:
    """All of them for the page."""
    parts = {
        "To use the network, on the command line": commands(network, place),
        "To use it from Python": use_code(network, place),
        "To repeat this run, on the command line": command,
        "To repeat it from Python": python_code(network),
    }
    return "".join(
        f'<h3>{title}</h3><pre tabindex="0">{escape(text)}</pre>'
        for title, text in parts.items()
        if text
    )
