"""Fourier transforms, under PyTorch's names: ``chainrule.fft.fft``, ``chainrule.fft.rfft2``, ...

Every function is differentiable to any order, also with respect to complex numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

from chainrule.ops.linalg.fourier import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __getattr__(name: str) -> NoReturn:
    raise import_module("chainrule.absent").of_pytorch(__name__, name)
