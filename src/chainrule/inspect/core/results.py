"""What instruments return: numbers that can be printed, drawn and taken away."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from chainrule import charts
from chainrule.nn.module.base import Module
from chainrule.tensor import Tensor

__all__ = ["Diagram", "Result", "plain"]


def plain(value: Any) -> Any:
    """A value as Python's own numbers, strings, lists and dicts, ready for JSON.

    >>> from chainrule import ones
    >>> plain({"norms": ones(2), "shape": (2, 3)})
    {'norms': [1.0, 1.0], 'shape': [2, 3]}
    """
    if isinstance(value, Result):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in _shown(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if isinstance(value, Tensor):
        return value.detach().tolist()
    if isinstance(value, Module):
        return type(value).__name__
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _shown(value: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(value) if not f.name.startswith("_")]


class Result:
    """What an instrument found: its numbers are its fields.

    A result is a dataclass that says in :meth:`__str__` what it found, as a table and, where there
    is one, a verdict with a remedy; and draws itself in :meth:`plot`.
    """

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as lists and dicts of Python's own types."""
        return {f.name: plain(getattr(self, f.name)) for f in _shown(self)}

    def __str__(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not say what it found")

    def __repr__(self) -> str:
        return str(self)

    def plot(self, *axes: Any, **style: Any) -> Any:
        """Draws the result into axes (``ax=``, or ``axes=`` for several panels), or into a figure
        of its own, and returns them."""
        raise TypeError(f"{type(self).__name__} has no picture; print it, or take its numbers")

    def _picture(self) -> str:
        """The result as SVG text; empty where there is no picture or nothing to draw it with, a
        sentence where it has to be told what to draw."""
        if type(self).plot is Result.plot or not charts.available():
            return ""
        try:
            return charts.svg_of(self.plot)
        except ValueError as error:
            return f"<p>no picture: {escape(str(error))}</p>"

    def _repr_html_(self) -> str:
        return f"<div>{self._picture()}<pre>{escape(str(self))}</pre></div>"


class Diagram(Result):
    """A result whose picture is SVG text, drawn without any library."""

    svg: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the picture to a file that every browser shows."""
        target = Path(path)
        if target.suffix != ".svg":
            raise ValueError(
                f"save: a diagram is SVG text; name the file *.svg, got {target.name!r}"
            )
        target.write_text(self.svg, "utf-8")
        return target

    def _picture(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg
