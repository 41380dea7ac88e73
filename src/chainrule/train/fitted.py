"""A trained network with all it needs to be used on raw data, and its scores there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chainrule import nn
from chainrule.autograd.modes import inference_mode
from chainrule.data import Column, Table, TableEncoder, TableError, TargetEncoder
from chainrule.data.image_encoder import ImageEncoder
from chainrule.data.preprocess import saved
from chainrule.files import load, save_folder
from chainrule.onnx import ONNXProgram
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.shape.stacking import cat
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor
from chainrule.train.exporting import export_fitted
from chainrule.train.intervals import check_errors, half_width
from chainrule.train.history import History
from chainrule.train.scoring import intervals_of, scores_of
from chainrule.train.weights import row_weights
from chainrule.typing import Frame, Labels

__all__ = ["Evaluation", "FittedNetwork", "scores_of"]

KIND = "chainrule network"
Paths = Sequence[str | os.PathLike[str] | bytes]  # the files of images, or what stands in them
Raw = Table | Frame | Mapping[str, Labels] | Paths
AT_ONCE = 2**22  # features that are held at a time
IMAGES = 64  # likewise, of images


@dataclass
class Evaluation:
    """Scores, the interval of each (see :func:`intervals_of`), and of how many rows."""

    scores: dict[str, float]
    intervals: dict[str, list[float]]
    rows: int
    left_out: int  # as they have no target

    @classmethod
    def of(
        cls,
        target: TargetEncoder,
        output: Tensor,
        truth: Tensor,
        weight: Tensor | None,
        left_out: int,
    ) -> Evaluation:
        """The scores of outputs."""
        given = (target, output, truth, weight)
        return cls(scores_of(*given), intervals_of(*given), len(truth), left_out)


@dataclass
class FittedNetwork:
    """A network with all it needs to be used on raw data: encoders, names, scores, settings.

    ``predict(table)`` gives labels or numbers; ``save`` and ``FittedNetwork.load`` keep it.
    """

    model: nn.Module
    inputs: nn.Module
    target: TargetEncoder
    about: dict[str, Any]
    history: History = field(default_factory=History)
    gradient_norms: dict[str, list[float]] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=dict)  # for the report; not saved

    @property
    def task(self) -> str:
        """ "classification" or "regression"."""
        return self.target.task

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a table that are read, each with its kind; of images there are none."""
        if not isinstance(self.inputs, TableEncoder):
            return {}
        return {name: self.inputs.roles[name].kind for name in self.inputs.columns}

    def unknown_columns(self, names: Sequence[str]) -> list[str]:
        """Those names of columns that the network does not know; an error if it lacks one."""
        read = self.columns
        missing = [name for name in read if name not in names]
        if missing:
            listed = ", ".join(map(repr, missing))
            raise TableError(f"columns that the model needs are missing: {listed}")
        known = {*read, *self.inputs.left_out, *self.target.names}
        return [name for name in names if name not in known]

    def _table(self, data: Raw) -> Table:
        """A table of the columns that are read, with a word on those that are not known."""
        table = _as_table(data)
        unknown = self.unknown_columns(table.names)
        if unknown:
            listed = ", ".join(map(repr, unknown))
            warnings.warn(
                f"FittedNetwork: ignored the columns that were not in training: {listed}",
                stacklevel=4,
            )
        return Table([table[name] for name in self.columns])

    def outputs(self, data: Raw) -> Tensor:
        """The network's outputs for raw data, computed some rows at a time.

        Args:
            data: a table, a data frame, columns by name, or images: paths, or the bytes of files.
                Columns that were not in training are ignored with a warning.
        """
        self.model.eval()
        if isinstance(self.inputs, ImageEncoder):
            files: list[Any] = list(data)  # type: ignore[arg-type]
            blocks = [files[i : i + IMAGES] for i in range(0, len(files), IMAGES)]
            return self._joined([self._output(block) for block in blocks])
        table = self._table(data)
        rows = max(1, AT_ONCE // max(1, len(self.inputs.feature_names)))
        if len(table) <= rows:
            return self._output(table)
        starts = range(0, len(table), rows)
        parts = [table.take(arange(i, min(i + rows, len(table)))) for i in starts]
        return self._joined([self._output(part) for part in parts])

    def _output(self, data: Raw) -> Tensor:
        with inference_mode():
            return self.model(self.inputs(data, self.about.get("target")))

    @staticmethod
    def _joined(parts: list[Tensor]) -> Tensor:
        with inference_mode():
            return parts[0] if len(parts) == 1 else cat(parts)

    def predict(self, data: Raw) -> list[Any]:
        """A label or number for each row."""
        return self.target.decode(self.outputs(data))

    def predict_proba(self, data: Raw) -> Tensor:
        """The probability of each class."""
        if not self.target.classes:
            raise ValueError("predict_proba: this network predicts numbers, not classes")
        return self.probabilities(self.outputs(data))

    def probabilities(self, output: Tensor) -> Tensor:
        """The probability of each class, label or rank that outputs of the network stand for."""
        return self.target.probabilities(output)

    def predict_interval(self, data: Raw, level: float = 0.9) -> Tensor:
        """Intervals (N, 2) that hold the truth with probability ``level``; (N, m, 2) for m targets.

        They reach as far to both sides of a prediction as predictions were off on rows that were
        not learned from (split conformal prediction): see :mod:`chainrule.train.intervals`.
        """
        if self.task != "regression":
            raise ValueError(f"predict_interval: this network is for {self.task}, not for numbers")
        if not 0 < level < 1:
            raise ValueError(f"predict_interval: level must be between 0 and 1, got {level}")
        kept = self.about.get("calibration", {})
        if "errors" not in kept:
            raise ValueError(
                "predict_interval: this network was saved without the errors on held-out rows that "
                "intervals follow from; fit it again"
            )
        half = [half_width(column, kept["rows"], level) for column in kept["errors"]]
        output, scale = self.outputs(data), tensor(self.target.spreads)
        center = output * scale + tensor(self.target.means)
        reach = tensor(half) * scale
        both = stack([center - reach, center + reach], -1)
        return both[:, 0] if both.shape[1] == 1 else both

    def evaluate(
        self, data: Raw, target: Column | Table | None = None, weights: str | None = None
    ) -> dict[str, float]:
        """The scores on raw data that has the target, too; see :meth:`evaluation`."""
        return self.evaluation(data, target, weights).scores

    def evaluation(
        self, data: Raw, target: Column | Table | None = None, weights: str | None = None
    ) -> Evaluation:
        """The scores on raw data, and where those of other rows would lie.

        Args:
            data: what :meth:`predict` takes; rows without a target are left out.
            target: its column, or a table with its columns; by default they are in ``data``.
            weights: the column that says how much each row counts.
        """
        if isinstance(self.inputs, ImageEncoder):
            if not isinstance(target, Column):
                raise TypeError("evaluate: images do not hold their classes; pass them as target")
            if weights is not None:
                raise ValueError("evaluate: weights are a column of a table; images have none")
            return Evaluation.of(self.target, self.outputs(data), self.target(target), None, 0)
        table = _as_table(data)
        if target is None:
            target = Table([table[name] for name in self.target.names])
        columns = [target] if isinstance(target, Column) else list(target)
        gaps = columns[0].gaps()
        for column in columns[1:]:
            gaps = gaps | column.gaps()
        left_out = int(gaps.sum())
        if left_out == len(table):
            raise TableError(f"the target {columns[0].name!r} is missing in all {left_out} rows")
        if left_out:
            table, columns = table.take(~gaps), [c.take(~gaps) for c in columns]
        truth = self.target(columns[0] if len(columns) == 1 else Table(columns))
        weight = None if weights is None else row_weights(table, weights)
        return Evaluation.of(self.target, self.outputs(table), truth, weight, left_out)

    def save(self, path: str | os.PathLike[str], report: str = "") -> None:
        """Saves everything as a folder; with a report, it holds report.html and history.csv, too.

        They are one version: killed at any moment, this leaves all of the former run or of the new.
        ``chainrule.save`` saves it, too, as one file or inside other values.
        """
        beside = {"history.csv": self.history.to_csv(), "report.html": report} if report else {}
        save_folder(self, path, {name: text.encode() for name, text in beside.items()})

    def export(
        self, path: str | os.PathLike[str] | None = None, *, opset_version: int | None = None
    ) -> ONNXProgram:
        """The network with its preprocessing as an ONNX file: raw columns in, predictions out.

        An input has the name of its column and one dimension, the rows: float64 numbers, NaN where
        they are missing, or text, empty where it is missing. Images are float32 in [0, 1] of the
        size (N, C, H, W) that the network takes. The outputs are ``label`` (text) and
        ``probabilities`` of a classifier, ``labels`` (0 and 1) and ``probabilities`` of several
        labels, else ``prediction``. Dates, free text and numbers like "$1,234", which ONNX has no
        operators to read, are an error that names the column.

        Args:
            path: of the file; by default none is written.
            opset_version: the version of ONNX's operators, see :func:`chainrule.onnx.export`.
        """
        parts = (self.model, self.inputs, self.target)
        return export_fitted(*parts, path, opset_version)

    file_kind: ClassVar[str] = "FittedNetwork"

    def file_parts(self) -> dict[str, Any]:
        """What a file holds of it."""
        return {
            "model": self.model,
            "inputs": self.inputs,
            "target": self.target,
            "about": self.about,
            "history": self.history.rows,
        }

    @classmethod
    def from_file_parts(cls, parts: dict[str, Any]) -> FittedNetwork:
        """A network of what a file holds, after it was checked."""
        return cls(*_checked(parts))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedNetwork:
        """Loads what :meth:`save` saved."""
        kept = load(path)
        if isinstance(kept, FittedNetwork):
            return kept
        if not isinstance(kept, dict) or kept.get("kind") != KIND:  # of an older version
            raise ValueError(f"{path} does not hold a network fitted by `chainrule fit`")
        try:
            return cls.from_file_parts(kept)
        except ValueError as error:
            raise ValueError(f"the network in {path} is damaged: {error}") from None


def _as_table(data: Raw) -> Table:
    """A table, a frame, or columns by name, as a table."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return Table.from_dict(data)
    frame: Any = data
    if not hasattr(frame, "columns"):
        raise TypeError(
            "FittedNetwork: expected a table, a data frame or columns by name, got "
            f"{type(data).__name__}"
        )
    return Table.from_frame(frame)


# What the description of a fitted network holds, and of which kind it is.
ABOUT = {
    "source": "text",
    "rows": "count",
    "columns": "texts",
    "features": "texts",
    "left_out": "dict",
    "target": "text",
    "task": "text",
    "classes": "texts",
    "split": "dict",
    "settings": "dict",
    "scores": "dict",
    "baselines": "dict",
    "stopped": "text",
    "best_epoch": "count",
    "parameters": "count",
}


# What it may hold, too.
ALSO = {
    "targets": "texts",
    "given": "dict",
    "notes": "texts",
    "warnings": "texts",
    "intervals": "dict",
}


def _checked(
    kept: dict[str, Any],
) -> tuple[nn.Module, nn.Module, TargetEncoder, dict[str, Any], History]:
    """The parts of a fitted network, if they are what they should be and belong together."""
    about, history = saved("FittedNetwork", kept, about="dict", history="dicts")
    saved("FittedNetwork", about, **ABOUT)
    saved("FittedNetwork", about["split"], train="count", validation="count", test="count")
    told = {name: kind for name, kind in ALSO.items() if name in about}
    saved("FittedNetwork", about, **told)
    for name, ends in about.get("intervals", {}).items():
        two = isinstance(ends, list) and len(ends) == 2
        if not two or not all(type(end) in (int, float) for end in ends):
            raise ValueError(f"the interval of its score {name!r:.60} is not two numbers")
    parts = (("model", nn.Module), ("inputs", nn.Module), ("target", TargetEncoder))
    for name, kind in parts:
        if not isinstance(kept.get(name), kind):
            got = type(kept.get(name)).__name__
            raise ValueError(f"its {name!r} should be a {kind.__name__}, got {got}")
    model, inputs, target = (kept[name] for name, _ in parts)
    images = saved("FittedNetwork", {"images": False, **about}, images="truth")[0]
    if not isinstance(inputs, ImageEncoder if images else TableEncoder):
        raise ValueError(f"a {type(inputs).__name__} cannot read its data")
    if (about["task"], about["classes"]) != (target.task, target.classes) or not target.is_fitted:
        raise ValueError("its description and its target differ in the task or in the classes")
    if not images and about.get("targets", target.names) != target.names:
        raise ValueError("its description and its target differ in the columns")
    if not images and about["features"] != inputs.feature_names:
        raise ValueError("its description and its inputs differ in the features")
    if not images and not set(inputs.columns) <= set(inputs.roles):
        raise ValueError("its inputs have features of columns without a role")
    check_errors(about.get("calibration"), target.outputs)
    _try(model, inputs, target.outputs)
    return model, inputs, target, about, History(history)


def _try(model: nn.Module, inputs: TableEncoder | ImageEncoder, outputs: int) -> None:
    """Sees whether a model takes what its encoder makes, and gives what its target expects."""
    if isinstance(inputs, ImageEncoder):
        shape = (1, inputs.channels, *(inputs.size or ()))
    else:
        shape = (1, len(inputs.feature_names))
    model.eval()
    try:
        with inference_mode():
            found = tuple(model(zeros(shape)).shape)
    except Exception as error:  # noqa: BLE001 - of a model that may be anything
        raise ValueError(f"its model cannot take its inputs: {error}") from None
    if found != (1, outputs):
        raise ValueError(f"its model gives {found}, but (1, {outputs}) is expected")
