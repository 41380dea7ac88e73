"""A fitted network as an ONNX file: the preprocessing, the network and the predictions in one.

The preprocessing is not written a second time: the file holds the operations that the features of
the table apply. Only the step from text to the number of a word, and back to the name of a class,
is an operator of ONNX that has no counterpart among operations on tensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data import Column, Table, TableEncoder, TargetEncoder
from chainrule.data.columns import MISSING, number_in, text_of_number
from chainrule.data.image_encoder import ImageEncoder
from chainrule.data.tabular.features import Boolean, Feature, Number, OneHot, Ordinal
from chainrule.data.tabular.goals import Goal
from chainrule.data.tabular.large import LargeCategory
from chainrule.onnx import ONNXProgram, OnnxExporterError
from chainrule.onnx.exporting import DEFAULT_OPSET, Wrapping, build, check_opset
from chainrule.onnx.graph import ML, Graph
from chainrule.onnx.messages import TEXT, Value
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["export_fitted"]

ROWS = "rows"  # the name of the free axis
UNKNOWN = "\0"  # stands for all words that were not in training


def export_fitted(
    model: nn.Module,
    inputs: nn.Module,
    target: TargetEncoder,
    path: str | os.PathLike[str] | None,
    opset_version: int | None,
) -> ONNXProgram:
    """The parts of a fitted network as one program; see ``FittedNetwork.export``."""
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    check_opset(opset)
    goal = target.goal
    if goal is None:
        raise RuntimeError("export: the network is not fitted")
    if isinstance(inputs, ImageEncoder):
        names, example = ["image"], [zeros(2, inputs.channels or 1, *(inputs.size or ()))]
        whole: nn.Module = _OfImages(model, inputs, goal)
        sources: list[_Source] = []
    elif isinstance(inputs, TableEncoder):
        sources = [_source(feature) for feature in inputs.features]
        names = [s.name for s in sources]
        example = [zeros(2, dtype=s.dtype) for s in sources]
        whole = _OfColumns(model, inputs, goal, sources)
    else:
        raise TypeError(f"export: a {type(inputs).__name__} cannot be written as ONNX")
    answers = ["answer", "probabilities"] if goal.classes else ["prediction"]
    answers = [_other(name, names) for name in answers]
    axes = {name: {0: ROWS} for name in names}
    wrapping = _Words(sources, goal)
    program = build(whole.eval(), example, {}, names, answers, axes, opset, wrapping)
    if path is not None:
        program.save(path)
    return program


def _other(name: str, taken: Sequence[str]) -> str:
    """A name that no column has."""
    return _other(f"{name}_", taken) if name in taken else name


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """A column of the file: numbers, or words that stand for numbers where ``text``."""

    name: str
    words: tuple[str, ...] = ()
    text: bool = False

    @property
    def dtype(self) -> dtypes.dtype:
        """What the operations on tensors are given: numbers, or the places of words."""
        return dtypes.int64 if self.text else dtypes.float64

    def column(self, x: Tensor) -> Column:
        """The column of some rows."""
        if not self.words:
            return Column.of_numbers(self.name, x)
        codes = x if self.text else self._places(x)
        return Column.of_codes(self.name, codes, [*self.words, UNKNOWN])

    def _places(self, x: Tensor) -> Tensor:
        """The place of each number among those that are categories."""
        numbers = tensor([float(word) for word in self.words], dtype=dtypes.float64)
        hits = reshape(x, (-1, 1)) == numbers
        known = where(any_of(hits, 1), argmax(cast(hits, dtypes.int64), 1), len(self.words))
        return where(isnan(x), -1, known)


def _source(feature: Feature) -> _Source:
    """What the file takes for a column; an error if ONNX cannot read it."""
    if isinstance(feature, Number) and not feature.mark:
        return _Source(feature.name)
    if isinstance(feature, Boolean):
        return _Source(feature.name, _in_all_cases([*feature.true, *feature.false]), True)
    if isinstance(feature, (OneHot, Ordinal, LargeCategory)):
        words = tuple(feature.order if isinstance(feature, Ordinal) else feature.words)
        return _Source(feature.name, words, not all(map(_is_number, words)))
    if isinstance(feature, Number):
        why = 'numbers with other signs, like "$1,234", are text that no operator reads'
    else:
        why = f"no operator reads {'text' if feature.kind == 'text' else 'dates and times'}"
    raise OnnxExporterError(
        f"export: column {feature.name!r} ({feature.kind}) cannot be written as ONNX: {why}; make "
        "a column of numbers or categories of it before fitting, or drop it"
    )


def _is_number(word: str) -> bool:
    """Whether a word is what a number of a table is called: those columns hold numbers."""
    number = number_in(word)
    return number is not None and number == number and text_of_number(number) == word


def _in_all_cases(words: Sequence[str]) -> tuple[str, ...]:
    """Words as they are written: in small letters, with a capital, and in capitals."""
    return tuple(dict.fromkeys([v for w in words for v in (w.lower(), w.capitalize(), w.upper())]))


class _Words(Wrapping):
    """Text before the operations on tensors, and behind them."""

    def __init__(self, sources: Sequence[_Source], goal: Goal):
        self.sources, self.goal = sources, goal
        self.notes = {
            "task": goal.task,
            "targets": json.dumps(goal.names),
            **({"classes": json.dumps(goal.classes)} if goal.classes else {}),
        }

    def inputs(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        taken = list(given)
        for i, source in enumerate(self.sources):
            if source.text:
                graph.inputs[i] = self._encoded(graph, source)
                taken[i] = Value(source.name, TEXT, [ROWS])
        return taken

    def _encoded(self, graph: Graph, source: _Source) -> str:
        """The places of words, -1 for what stands for a missing value."""
        known = set(source.words)
        missing = [w for w in _in_all_cases(sorted(MISSING)) if w not in known]
        return graph.add(
            "LabelEncoder",
            source.name,
            place=source.name,
            domain=ML,
            keys_strings=[*source.words, *missing],
            values_int64s=[*range(len(source.words)), *[-1] * len(missing)],
            default_int64=len(source.words),
        )

    def outputs(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        first, *others = given
        if not self.goal.classes:
            return list(given)
        taken = [s.name for s in self.sources]
        name = _other("labels" if self.goal.task == "multilabel" else "label", taken)
        if self.goal.task == "multilabel":
            graph.renamed(first.name, name)
            return [Value(name, first.type, first.sizes), *others]
        graph.renamed(graph.add("Gather", graph.words(self.goal.classes), first.name), name)
        return [Value(name, TEXT, first.sizes), *others]


# --- what is run ----------------------------------------------------------------------------------


class _Answering(nn.Module):
    """A network and what its outputs mean."""

    def __init__(self, model: nn.Module, goal: Goal):
        super().__init__()
        self.model, self.goal = model, goal

    def answer(self, features: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The prediction, and the probabilities where there are classes."""
        output = self.model(features)
        found = self.goal.predicted(reshape(output, (-1, self.goal.outputs)))
        if self.goal.classes:
            return found, self.goal.probabilities(output)
        return found[:, 0] if self.goal.outputs == 1 else found


class _OfColumns(_Answering):
    def __init__(
        self, model: nn.Module, inputs: TableEncoder, goal: Goal, sources: Sequence[_Source]
    ):
        super().__init__(model, goal)
        self.inputs, self.sources = inputs, list(sources)

    def forward(self, *columns: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        table = Table([s.column(x) for s, x in zip(self.sources, columns, strict=True)])
        kind = dtypes.get_default_dtype()
        return self.answer(cat([cast(block, kind) for block in self.inputs.blocks(table)], 1))


class _OfImages(_Answering):
    def __init__(self, model: nn.Module, inputs: ImageEncoder, goal: Goal):
        super().__init__(model, goal)
        self.mean, self.spread = inputs.mean, inputs.spread

    def forward(self, image: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return self.answer((image - self.mean) / self.spread)
