"""What is asked of every diagram: nothing covers anything else, and all of it is in the picture."""

from __future__ import annotations

import itertools
from itertools import pairwise
from xml.etree import ElementTree

from chainrule.inspect.structure.scene import Box, Drawing

__all__ = ["assert_laid_out_well"]

Area = tuple[float, float, float, float]  # left, top, right, bottom
SLACK = 0.15  # places are rounded to a tenth


def _area(thing: object) -> Area:
    x, y = thing.x, thing.y  # type: ignore[attr-defined]
    return x, y, x + thing.width, y + thing.height  # type: ignore[attr-defined]


def _meet(a: Area, b: Area) -> bool:
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    return across > SLACK and down > SLACK


def _inside(a: Area, b: Area) -> bool:
    return (
        a[0] >= b[0] - SLACK
        and a[1] >= b[1] - SLACK
        and a[2] <= b[2] + SLACK
        and a[3] <= b[3] + SLACK
    )


def _piece(p: tuple[float, float], q: tuple[float, float]) -> Area:
    """What a piece of a link fills at most: it runs, straight or bent, between its two points."""
    pad = SLACK if p[0] == q[0] else 0.0
    return min(p[0], q[0]) - pad, min(p[1], q[1]), max(p[0], q[0]) + pad, max(p[1], q[1])


def _check_boxes(boxes: list[Box]) -> None:
    for a, b in itertools.combinations(boxes, 2):
        one, other = _area(a), _area(b)
        nested = (a.frame and _inside(other, one)) or (b.frame and _inside(one, other))
        assert nested or not _meet(one, other), f"{a.name} covers {b.name}: {one}, {other}"


def assert_laid_out_well(drawing: Drawing) -> None:
    """No box or label covers another, no link runs through a box or a label, all is inside."""
    ElementTree.fromstring(drawing.svg)
    page = (drawing.x, drawing.y, drawing.x + drawing.width, drawing.y + drawing.height)
    assert drawing.boxes
    assert drawing.labels
    _check_boxes(drawing.boxes)
    closed = [box for box in drawing.boxes if not box.frame]
    for thing in (*drawing.boxes, *drawing.labels):
        assert _inside(_area(thing), page), f"{thing} lies outside the picture {page}"
    for a, b in itertools.combinations(drawing.labels, 2):
        assert not _meet(_area(a), _area(b)), f"{a} covers {b}"
    for label in drawing.labels:
        for box in closed:
            clear = not _meet(_area(label), _area(box)) or _inside(_area(label), _area(box))
            assert clear, f"{label} lies across the edge of {box}"
    for edge in drawing.edges:
        for p, q in pairwise(edge.points):
            piece = _piece(p, q)
            assert _inside(piece, page), f"{edge} leaves the picture"
            hit = [b.name for b in closed if _meet(piece, _area(b))]
            hit += [w.words for w in drawing.labels if _meet(piece, _area(w))]
            assert not hit, f"{edge} runs through {hit}"
