"""The network itself: its drawing and the table of its layers."""

from __future__ import annotations

import re
from html import escape

from chainrule import inspect
from chainrule.train.fitted import FittedNetwork

__all__ = ["architecture"]

TALL = 900  # pixels of a drawing that is folded away


def architecture(network: FittedNetwork) -> str:
    """How the network is built."""
    if "inputs" not in network.held_out:
        return f"<pre>{escape(str(network.model))}</pre>"
    inputs = network.held_out["inputs"][:1]
    drawing, summary = inspect.draw(network.model, inputs), inspect.summary(network.model, inputs)
    frame = f'<div class="frame">{drawing.svg}</div>'
    tall = re.search(r'<svg[^>]* height="(\d+)', drawing.svg)
    if tall and int(tall[1]) > TALL:
        frame = f"<details><summary>Drawing of all operations</summary>{frame}</details>"
    what = "image" if network.about.get("images") else "row"
    return f"{frame}<h3>Summary, for one {what}</h3><pre>{escape(str(summary))}</pre>"
