"""The doctor beside the trainer: before the first epoch, and after the last one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from chainrule.inspect.health.diagnosis import Diagnosis
from chainrule.inspect.health.doctor import doctor
from chainrule.inspect.health.findings import Finding, apply
from chainrule.inspect.health.observing import HealthWarning
from chainrule.inspect.health.preflight import preflight
from chainrule.inspect.health.recipe import Check
from chainrule.inspect.health.samples import first_batches
from chainrule.train.callbacks import Callback

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["Doctor"]


class Doctor(Callback):
    """Examines a run: the data and the network before the first epoch, both again after the last
    one, and the curve of the training loss. Each mistake is told once, as a warning.

    ``Trainer(doctor=True)`` has one; ``trainer.findings`` are its findings.

    Args:
        preflight: whether to run the recipe of :func:`chainrule.inspect.preflight`, too; ``checks``
            are its lines.
        warn: whether to warn of findings.
    """

    def __init__(self, preflight: bool = False, warn: bool = True) -> None:
        self.preflight, self.warn = preflight, warn
        self.findings: list[Finding] = []
        self.checks: list[Check] = []
        self.skipped: dict[str, str] = {}

    def on_fit_start(self, trainer: Trainer) -> None:
        if not trainer.epoch:
            self._examine(trainer, trained=False)
            if self.preflight and not self.skipped.keys() & {"the data", "the network"}:
                self.checks = preflight(trainer.model, trainer.loss, trainer.data[0]).checks

    def on_fit_end(self, trainer: Trainer) -> None:
        if len(trainer.history):
            self._examine(trainer, trained=True)
            self._tell(apply("curves", trainer.history["loss"]))

    def _examine(self, trainer: Trainer, trained: bool) -> None:
        train, validation = trainer.data
        if isinstance(train, Iterator):
            self.skipped["the data"] = "it is an iterator, from which every batch comes once"
            return
        if any(isinstance(batch[0], Mapping) for batch in first_batches(train, 1)):
            self.skipped["the network"] = "its input is a dict"
            return
        found: Diagnosis = doctor(
            trainer.model,
            trainer.loss,
            train,
            trainer.optimizer,
            validation=None if validation is train else validation,
            weighted=True if trainer.class_weight is not None else None,
            trained=trained,
        )
        self.skipped |= {k: v for k, v in found.skipped.items() if v != "not before a training"}
        self._tell(found.findings)

    def _tell(self, findings: list[Finding]) -> None:
        known = {f.rule for f in self.findings}
        for f in findings:
            if self.warn and f.rule not in known:
                warnings.warn(str(f), HealthWarning, stacklevel=5)
            known.add(f.rule)
        placed = {(f.rule, f.layer) for f in self.findings}
        self.findings += [f for f in findings if (f.rule, f.layer) not in placed]

    def state_dict(self) -> dict[str, Any]:
        return {
            "findings": [vars(f) for f in self.findings],
            "checks": [vars(c) for c in self.checks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.findings = [Finding(**f) for f in state["findings"]]
        self.checks = [Check(**c) for c in state["checks"]]
