"""Operations and layers on a device, against the same ones on the CPU, by their records."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers import Case, assert_close, call, case, is_variable, map_arrays, outputs, to_array
from layer_helpers import LayerCase, each as each_layer
from layers import ALL as LAYERS
from layers.record import Layer
from samples import ALL
from samples.record import Sample

import chainrule
from chainrule.func import functional_call
from chainrule.tensor import Tensor

pytest.importorskip("jax")
from chainrule.backend.xla_kernels import table

PLACE = "xla"
# What a device has not; it says so.
REFUSED = {f"ops.linalg.sparse.{name}" for name in table.ABSENT}


def first_of_each(records: list[Any]) -> list[Any]:
    """One record of each operation or layer."""
    return list({r.name: r for r in reversed(records)}.values())[::-1]


class Placed(Case):
    """A sample all of whose tensors are on the device."""

    def __call__(self, *variables: Any) -> Any:
        given = iter(variables)
        args = map_arrays(lambda a: next(given) if is_variable(a) else moved(a), self.args)
        return call(self.sample, args)

    def variables(self, dtype: Any = np.float64, requires_grad: bool = True) -> list[Any]:
        return [moved(np.array(v, dtype)).requires_grad_(requires_grad) for v in self.values]

    def gradients(self, variables: Any) -> list[Any]:
        with chainrule.device(PLACE):
            return super().gradients(variables)


def moved(a: np.ndarray) -> Tensor:
    """An array as a tensor on the device."""
    return chainrule.as_tensor(a.copy()).to(PLACE)


def tensors_of(out: Any) -> list[Any]:
    """All tensors in a result."""
    if isinstance(out, (list, tuple)):
        return [y for part in out for y in tensors_of(part)]
    return [out] if isinstance(out, Tensor) else []


@pytest.mark.parametrize("sample", first_of_each(ALL), ids=lambda s: s.label)
def test_operation(sample: Sample) -> None:
    """Value, place and gradients."""
    host, there = case(sample), Placed(sample, case(sample).args)
    grads = sample.differentiable
    if sample.name in REFUSED:
        with pytest.raises(RuntimeError, match=r"not available on xla:0: .*; use .cpu\(\) first"):
            there(*there.variables())
        return
    with warnings.catch_warnings(action="ignore"):
        x, y = host.variables(requires_grad=grads), there.variables(requires_grad=grads)
        chainrule.manual_seed(3)
        wanted = host(*x)
        chainrule.manual_seed(3)
        found = there(*y)
    places = {t.device.type for t in tensors_of(found)}
    assert places <= {PLACE} or not (y or all_moved(there)), places
    assert_close(plain(found), plain(wanted), rtol=1e-8, atol=1e-10)
    if grads and any(t.requires_grad for t in outputs(wanted)):
        assert_close(there.gradients(y), host.gradients(x), rtol=1e-7, atol=1e-9)


def all_moved(c: Case) -> list[Any]:
    """The arrays among the arguments."""
    found: list[Any] = []
    map_arrays(found.append, c.args)
    return found


def plain(out: Any) -> Any:
    """Tensors as arrays, all else as it is."""
    if isinstance(out, (list, tuple)):
        return [plain(part) for part in out]
    return to_array(out) if isinstance(out, Tensor) else out


class PlacedLayer(LayerCase):
    """A layer on the device."""

    def __init__(self, layer: Layer, training: bool):
        super().__init__(layer, training)
        self.module.to(PLACE)

    def __call__(self, *variables: Tensor) -> list[Tensor]:
        given = iter(variables[: self.inputs])
        args = map_arrays(lambda a: next(given) if is_variable(a) else moved(a), self.args)
        tensors = {name: b.clone() for name, b in self.held.named_buffers()}
        tensors.update(zip(self.names, variables[self.inputs :], strict=True))
        chainrule.manual_seed(1)
        return functional_call(self.held, tensors, tuple(args))

    def gradients(self, variables: Any) -> list[Tensor]:
        results = [y for y in self.floats(*variables) if y.requires_grad]
        total = sum([(y * y.sin()).sum() for y in results], start=moved(np.zeros(())))
        return list(chainrule.autograd.grad(total, variables, materialize_grads=True))


def gradients_on_host(c: LayerCase, variables: Any) -> list[Tensor]:
    """The same on the CPU."""
    results = [y for y in c.floats(*variables) if y.requires_grad]
    total = sum([(y * y.sin()).sum() for y in results], start=chainrule.zeros((), dtype=np.float64))
    return list(chainrule.autograd.grad(total, variables, materialize_grads=True))


@each_layer(first_of_each(LAYERS))
def test_layer(layer: Layer) -> None:
    """Outputs and gradients of a layer in training, random ones with the masks of the CPU."""
    host, there = LayerCase(layer, True), PlacedLayer(layer, True)
    grads = layer.differentiable
    with warnings.catch_warnings(action="ignore"):
        x = host.variables(requires_grad=grads)
        y = [t.detach().to(PLACE).requires_grad_(grads) for t in x]
        assert_close(plain(there(*y)), plain(host(*x)), rtol=1e-8, atol=1e-10)
        if grads:
            assert_close(there.gradients(y), gradients_on_host(host, x), rtol=1e-6, atol=1e-8)


def test_large_parameters_stay_where_they_were_made() -> None:
    """What fills a large tensor is drawn on the host, but does not become its memory."""
    with chainrule.device(PLACE):
        layer = chainrule.nn.Linear(784, 64)
        filled = chainrule.nn.init.orthogonal_(chainrule.empty(256, 256))
    for p in (layer.weight, filled):
        assert p.device.type == PLACE
        assert not isinstance(p.array, np.ndarray)
    assert layer(chainrule.ones(2, 784, device=PLACE)).device.type == PLACE
    chainrule.manual_seed(3)
    with chainrule.device(PLACE):
        drawn = chainrule.nn.Linear(784, 64).weight
    chainrule.manual_seed(3)
    assert_close(to_array(drawn), to_array(chainrule.nn.Linear(784, 64).weight), 0.0)
