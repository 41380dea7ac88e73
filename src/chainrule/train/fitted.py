"""A trained network with all it needs to be used on raw data, and its scores there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import inference_mode
from chainrule.data import Column, Table, TargetEncoder
from chainrule.files import load, save_folder
from chainrule.ops.layers.softmax import softmax
from chainrule.tensor import Tensor
from chainrule.train import metrics
from chainrule.train.history import History

__all__ = ["FittedNetwork", "scores_of"]

KIND = "chainrule network"
Raw = Table | Sequence[str | os.PathLike[str]]  # rows, or the files of images


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

    def outputs(self, data: Raw) -> Tensor:
        """The network's outputs for raw data (a table, or what else the encoder takes)."""
        x = self.inputs(data, self.about.get("target"))
        self.model.eval()
        with inference_mode():
            return self.model(x)

    def predict(self, data: Raw) -> list[Any]:
        """A label or number for each row."""
        return self.target.decode(self.outputs(data))

    def predict_proba(self, data: Raw) -> Tensor:
        """The probability of each class."""
        if self.task != "classification":
            raise ValueError("predict_proba: this network predicts numbers, not classes")
        return softmax(self.outputs(data), 1)

    def evaluate(self, data: Raw, target: Column | None = None) -> dict[str, float]:
        """The scores on raw data that has the target, too."""
        if target is None:
            if not isinstance(data, Table):
                raise TypeError("evaluate: images do not hold their classes; pass them as target")
            target = data[self.about["target"]]
        return scores_of(self.target, self.outputs(data), self.target(target))

    def save(self, path: str | os.PathLike[str], report: str = "") -> None:
        """Saves everything as a folder; with a report, it holds report.html and history.csv, too.

        They are one version: killed at any moment, this leaves all of the former run or of the new.
        """
        kept = {
            "kind": KIND,
            "model": self.model,
            "inputs": self.inputs,
            "target": self.target,
            "about": self.about,
            "history": self.history.rows,
        }
        beside = {"history.csv": self.history.to_csv(), "report.html": report} if report else {}
        save_folder(kept, path, {name: text.encode() for name, text in beside.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedNetwork:
        """Loads what :meth:`save` saved."""
        kept = load(path)
        if not isinstance(kept, dict) or kept.get("kind") != KIND:
            raise ValueError(f"{path} does not hold a network fitted by `chainrule fit`")
        return cls(
            kept["model"], kept["inputs"], kept["target"], kept["about"], History(kept["history"])
        )


def scores_of(target: TargetEncoder, output: Tensor, truth: Tensor) -> dict[str, float]:
    """The scores of outputs: for classes accuracy, F1, likelihood; for numbers R2 and errors."""
    if target.task == "classification":
        scores = {
            "accuracy": metrics.accuracy(output, truth),
            "f1": float(metrics.f1(output, truth, "macro")),
            "nll": metrics.nll(output, truth, scores="logits"),
        }
        if len(target.classes) == 2 and len(set(truth.tolist())) == 2:
            scores["roc_auc"] = metrics.roc_auc(output, truth)
        return scores
    spread = target.spread
    return {
        "r2": metrics.r2(output, truth),
        "rmse": metrics.rmse(output, truth) * spread,
        "mae": metrics.mae(output, truth) * spread,
    }
