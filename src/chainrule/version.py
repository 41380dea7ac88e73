"""Which version this is, and what it was built for."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

__version__ = "0.1.0"
debug = False
cuda: str | None = None  # no GPU of NVIDIA,
hip: str | None = None  # of AMD
rocm: str | None = None
xpu: str | None = None  # or of Intel
git_version = "unknown"
