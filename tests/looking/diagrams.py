"""What is asked of every diagram: nothing covers anything else, and all of it is in the picture."""

from __future__ import annotations

import itertools
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

from chainrule.inspect.structure.scene import Box, Drawing

__all__ = ["assert_laid_out_well", "tikz_lines"]

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


Point = tuple[float, float]


def _piece(p: Point, q: Point) -> Area:
    """The rectangle of two points."""
    return min(p[0], q[0]), min(p[1], q[1]), max(p[0], q[0]), max(p[1], q[1])


def _runs_into(p: Point, q: Point, area: Area, bent: bool, round: bool = False) -> bool:
    """Whether the piece of a link between two points enters a rectangle, or the circle in it."""
    if bent and p[0] != q[0]:
        return _meet(_piece(p, q), area)
    steps = max(2, int(math.dist(p, q)))
    middle = (area[0] + area[2]) / 2, (area[1] + area[3]) / 2
    for i in range(steps + 1):
        at = [p[k] + (q[k] - p[k]) * i / steps for k in (0, 1)]
        if round:
            inside = math.dist(at, middle) < (area[2] - area[0]) / 2 - SLACK
        else:
            inside = all(area[k] + SLACK < at[k] < area[k + 2] - SLACK for k in (0, 1))
        if inside:
            return True
    return False


def _check_boxes(boxes: list[Box]) -> None:
    for a, b in itertools.combinations(boxes, 2):
        one, other = _area(a), _area(b)
        nested = (a.frame and _inside(other, one)) or (b.frame and _inside(one, other))
        assert nested or not _meet(one, other), f"{a.name} covers {b.name}: {one}, {other}"


def _near(a: Area, b: Area) -> bool:
    return a[0] <= b[2] and a[2] >= b[0] and a[1] <= b[3] and a[3] >= b[1]


def _is_round(thing: object) -> bool:
    return getattr(thing, "round", False)


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
            near = [t for t in (*closed, *drawing.labels) if _near(piece, _area(t))]
            hit = [t for t in near if _runs_into(p, q, _area(t), edge.bent, _is_round(t))]
            assert not hit, f"{edge} runs through {hit}"


def tikz_lines(tikz: str) -> list[str]:
    """The lines of a drawing for LaTeX, after a look at whether it is a whole document."""
    assert tikz.startswith("\\documentclass[tikz, border=4pt]{standalone}\n")
    begun, ended = re.findall(r"\\begin\{(\w+)\}", tikz), re.findall(r"\\end\{(\w+)\}", tikz)
    assert begun == ended[::-1] == ["document", "tikzpicture"]
    body = tikz[tikz.index("\\begin{tikzpicture}") :].splitlines()[1:-2]
    assert all(re.fullmatch(r"  \\(draw|node|fill)\[.*;", line) for line in body)
    for line in body:
        plain = re.sub(r"\\[{}$%&#_]", "", line)
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        assert not re.search(r"[&%#~^]", plain)
        assert line.isascii()
    return body
