"""From operations to operators of ONNX: one table, in parts."""

from __future__ import annotations

from chainrule.onnx.rules import layers, pointwise, pooling, recurrent, reductions, shapes
from chainrule.onnx.site import Rule

__all__ = ["RULES"]

RULES: dict[str, Rule] = {
    **pointwise.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **pooling.RULES,
    **recurrent.RULES,
}
