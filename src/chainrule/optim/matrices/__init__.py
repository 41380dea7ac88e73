"""Optimizers that know a parameter as a matrix."""

from __future__ import annotations

from chainrule.optim.matrices.adafactor import Adafactor
from chainrule.optim.matrices.muon import Muon

__all__ = ["Adafactor", "Muon"]
