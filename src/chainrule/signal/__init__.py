"""Signals, under PyTorch's names: ``chainrule.signal.windows.hann(16)``."""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

from chainrule.signal import windows

__all__ = ["windows"]


def __getattr__(name: str) -> NoReturn:
    raise import_module("chainrule.absent").of_pytorch(__name__, name)
