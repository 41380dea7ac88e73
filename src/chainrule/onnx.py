"""PyTorch's ``torch.onnx``: models are not exported yet."""

from __future__ import annotations

from typing import Any

from chainrule.absent import Refused, absent, refused

__all__ = ["ExportableModule", "ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]

REASON = (
    "chainrule does not write ONNX yet. chainrule.save(model.state_dict(), path) writes weights "
    "that safetensors.torch.load_file reads into the same model in PyTorch, which can export it"
)


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


class OnnxExporterError(RuntimeError):
    """What exporting raises; nothing raises it here."""


class ONNXProgram(Refused):
    """A model that was exported."""

    reason = REASON


class ExportableModule(Refused):
    """A module made to be exported."""

    reason = REASON


export = refused("onnx.export", REASON)
ABSENT = dict.fromkeys(
    ("InputObserver", "dynamo_export", "errors", "ops", "register_custom_op_symbolic"), REASON
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
