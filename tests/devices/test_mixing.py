"""Tensors on several devices in one call: PyTorch's error, in every operation and layer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers import call, case, map_arrays
from layer_helpers import LayerCase
from layers import ALL as LAYERS
from layers.record import Layer
from samples import ALL
from samples.record import Sample

import chainrule

pytest.importorskip("jax")

PLACE = "xla"
WORDS = r"Expected all tensors to be on the same device, but found at least two devices, .*Move one"
# What only asks for the shape of the other tensor, and what PyTorch, too, takes indices on the CPU.
APART = {
    *("Tensor.expand_as", "Tensor.reshape_as", "Tensor.view_as", "broadcast_tensors"),
    "index_put",
}
# Their records call ``forward`` with other arguments, or its one parameter is a number.
SPECIAL = {"Bidirectional", "ConvRNN", "MultiheadAttention", "ParametricActivation"}


def first_of_each(records: list[Any]) -> list[Any]:
    """One record of each operation or layer."""
    return list({r.name: r for r in reversed(records)}.values())[::-1]


def arrays_of(sample: Sample) -> list[Any]:
    """The arrays among the arguments."""
    found: list[Any] = []
    map_arrays(lambda a: found.append(np.array(a)) or a, case(sample).args)
    return found


def tensors(sample: Sample, on_the_cpu: int) -> Any:
    """The arguments as tensors on the device, but for one."""
    count = iter(range(99))

    def moved(a: Any) -> Any:
        t = chainrule.as_tensor(np.array(a))
        return t if next(count) == on_the_cpu else t.to(PLACE)

    return map_arrays(moved, case(sample).args)


MIXABLE = [
    s
    for s in first_of_each(ALL)
    if s.name not in APART and sum(a.ndim > 0 for a in arrays_of(s)) > 1
]
WITH_PARAMETERS = [
    r
    for r in first_of_each(LAYERS)
    if r.name not in SPECIAL and list(LayerCase(r, True).module.parameters())
]


@pytest.mark.parametrize("sample", MIXABLE, ids=lambda s: s.label)
def test_operation(sample: Sample) -> None:
    """Each tensor in turn stays on the CPU."""
    for i, a in enumerate(arrays_of(sample)):
        if a.ndim:
            with warnings.catch_warnings(action="ignore"), pytest.raises(RuntimeError, match=WORDS):
                call(sample, tensors(sample, i))


@pytest.mark.parametrize("there", ["module", "input"])
@pytest.mark.parametrize("layer", WITH_PARAMETERS, ids=lambda r: r.name)
def test_layer(layer: Layer, there: str) -> None:
    """A module on the device with an input on the CPU, and the other way around."""
    c = LayerCase(layer, True)
    if there == "module":
        c.module.to(PLACE)
    place = PLACE if there == "input" else "cpu"
    args = map_arrays(lambda a: chainrule.as_tensor(np.array(a)).to(place), c.args)
    with warnings.catch_warnings(action="ignore"), pytest.raises(RuntimeError, match=WORDS):
        c.module(*args)
