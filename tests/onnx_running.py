"""What a file of ONNX computes: by the reference of the package onnx, and by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn
from chainrule.autograd.nested import flatten
from chainrule.onnx import ONNXProgram

__all__ = ["assert_same", "engines", "kinds", "tensors"]


def tensors(tree: Any) -> list[chainrule.Tensor]:
    return [t for t in flatten(tree)[0] if isinstance(t, chainrule.Tensor)]


def engines(program: ONNXProgram, reference: bool = True) -> list[Any]:
    """The ways to run a program that are installed, each ``run(None, feed)``; it is checked, too.

    Without the reference, which lacks what few operators can do, onnxruntime has to be there.
    """
    onnx = pytest.importorskip("onnx.reference", reason="the package onnx is not installed")
    import onnx.checker  # noqa: F811

    onnx.checker.check_model(program.model_proto, full_check=True)
    found = [onnx.reference.ReferenceEvaluator(program.model_proto)] if reference else []
    try:
        import onnxruntime
    except ImportError:
        if not found:
            pytest.skip("the reference of onnx cannot run this; onnxruntime is not installed")
        return found
    onnxruntime.set_default_logger_severity(3)
    return [*found, onnxruntime.InferenceSession(program.content)]


def kinds(program: ONNXProgram) -> list[str]:
    """The operators of a program, in order."""
    pytest.importorskip("onnx.reference", reason="the package onnx is not installed")
    return [node.op_type for node in program.model_proto.graph.node]


def assert_same(
    program: ONNXProgram,
    model: nn.Module,
    calls: Sequence[Sequence[Any]],
    kwargs: Mapping[str, Any] | None = None,
    reference: bool = True,
    tolerance: float = 1e-5,
) -> None:
    """The program gives what the model gives, for each of the calls, to 1e-5 of 1 + its size."""
    runs = engines(program, reference)
    for args in calls:
        given = tensors((tuple(args), kwargs or {}))
        feed = {
            name: t.detach().numpy().copy() for name, t in zip(program.inputs, given, strict=True)
        }
        want = [t.detach().numpy() for t in tensors(model(*args, **(kwargs or {})))]
        for run in runs:
            got = run.run(None, feed)
            assert len(got) == len(want)
            for a, b in zip(got, want, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype), type(run).__name__
                np.testing.assert_allclose(
                    a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance
                )
