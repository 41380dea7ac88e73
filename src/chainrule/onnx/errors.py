"""What exporting raises."""

from __future__ import annotations

__all__ = ["OnnxExporterError"]


class OnnxExporterError(RuntimeError):
    """A model that cannot be written as ONNX; the message names the layer, and the reason."""
