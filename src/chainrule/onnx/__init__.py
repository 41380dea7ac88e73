"""PyTorch's ``torch.onnx``: models as files that other programs run.

``export`` runs a model and writes its operations as operators of ONNX; nothing has to be installed
for that. Fitted networks for tables have their preprocessing in the file, too: see
:meth:`chainrule.train.FittedNetwork.export`.
"""

from __future__ import annotations

from typing import Any

from chainrule.absent import Refused, absent
from chainrule.onnx.errors import OnnxExporterError
from chainrule.onnx.exporting import ONNXProgram, export, is_in_onnx_export

__all__ = ["ExportableModule", "ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]


class ExportableModule(Refused):
    """A module made to be exported."""

    reason = "any module can be exported: chainrule.onnx.export(model, args, path)"


_RULES = "the rules of chainrule.onnx.export are fixed: what it cannot write it names in its error"
ABSENT = {
    "InputObserver": "name the axes whose size is free: export(..., dynamic_axes={...})",
    "dynamo_export": "use chainrule.onnx.export",
    "ops": _RULES,
    "register_custom_op_symbolic": _RULES,
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
