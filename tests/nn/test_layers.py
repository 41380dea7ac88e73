"""Every layer and loss, by its records: a public layer without a record fails here.

One record gives, in training and in evaluation: finite outputs, both modes of differentiation by
inputs and parameters, second order, vmap over parameters, float32, copies, pickles, states.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, map_arrays, resolve, weight
from layer_helpers import LayerCase, called, draw, each, inner, made
from layers import ALL
from layers.record import Layer
from samples import ALL as SAMPLES

import chainrule
from chainrule import nn
from chainrule.autograd import GradcheckError, gradcheck, gradgradcheck
from chainrule.func import jvp, vjp, vmap
from chainrule.tensor import Tensor, of_array

DIFFERENTIABLE = [layer for layer in ALL if layer.differentiable]
each_mode = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


def each_mode_of(layers: list[Layer]) -> pytest.MarkDecorator:
    """Runs a test for each of these layers, in training only where its gradient is exact there."""
    modes = [(layer, mode) for layer in layers for mode in (True, False) if layer.exact or not mode]
    names = [f"{layer.label}-{'train' if training else 'eval'}" for layer, training in modes]
    return pytest.mark.parametrize(("layer", "training"), modes, ids=names)


# --- values ---------------------------------------------------------------------------------------


@each_mode
@each(ALL)
def test_outputs_are_finite(layer: Layer, training: bool) -> None:
    c = LayerCase(layer, training)
    results = c(*c.variables())
    assert results
    for y in results:
        assert np.isfinite(y.numpy()).all()
    assert_close(c(*c.variables()), results, rtol=0, atol=0)


@each(ALL)
def test_inputs_are_left_alone(layer: Layer) -> None:
    c = LayerCase(layer, training=True)
    variables = c.variables()
    c(*variables)
    assert_close(variables[: c.inputs], c.values[: c.inputs], rtol=0, atol=0)


@each([layer for layer in ALL if layer.float32])
def test_float32_stays_float32(layer: Layer) -> None:
    c = LayerCase(layer, training=False)
    narrow, wide = (c.variables(t, layer.differentiable) for t in (np.float32, np.float64))
    c.module.float()
    results = c.floats(*narrow)
    assert {y.dtype for y in results} <= {chainrule.float32}
    gradients = c.gradients(narrow) if layer.differentiable else []
    assert {g.dtype for g in gradients} <= {chainrule.float32}
    c.module.double()
    assert_close(results, c.floats(*wide), rtol=1e-4, atol=1e-4)
    if layer.differentiable:
        assert_close(gradients, c.gradients(wide), rtol=1e-3, atol=1e-3)


# --- derivatives ----------------------------------------------------------------------------------


@each_mode_of(DIFFERENTIABLE)
def test_first_derivatives(layer: Layer, training: bool) -> None:
    """Both modes against differences, each input and each parameter moving in one direction."""
    c = LayerCase(layer, training)
    steps = [of_array(np.zeros(())).requires_grad_() for _ in c.values]
    gradcheck(c.along([[i] for i in range(len(steps))]), steps, atol=1e-6, rtol=1e-5)


@each_mode
@each(DIFFERENTIABLE)
def test_modes_are_adjoint(layer: Layer, training: bool) -> None:
    """<g, J t> = <J^T g, t>, to rounding."""
    c = LayerCase(layer, training)
    points = c.variables()
    t = [of_array(d) for d in c.directions()]
    results, tangents = jvp(lambda *xs: c.floats(*xs), tuple(points), tuple(t))
    g = [of_array(weight(tuple(y.shape))) for y in results]
    pulled = vjp(lambda *xs: c.floats(*xs), *points)[1](g)
    assert [p.shape for p in pulled] == [x.shape for x in points]
    size = float(inner([x.abs() for x in pulled], [x.abs() for x in t]))
    assert_close(inner(g, tangents), inner(pulled, t), rtol=1e-9, atol=1e-11 * size + 1e-12)


@each_mode_of([layer for layer in DIFFERENTIABLE if layer.second_order])
def test_second_derivatives(layer: Layer, training: bool) -> None:
    """Both modes of the backward pass against differences; inputs and parameters apart."""
    c = LayerCase(layer, training)
    groups = [g for g in (range(c.inputs), range(c.inputs, len(c.values))) if g]
    steps = [of_array(np.zeros(())).requires_grad_() for _ in groups]
    gradgradcheck(c.along(groups), steps, atol=1e-5, rtol=1e-4)


# --- vmap -----------------------------------------------------------------------------------------


@each([layer for layer in ALL if layer.vmap])
def test_vmap_over_parameters_and_inputs(layer: Layer) -> None:
    """A batch of networks at once gives what they give one after the other."""
    c = LayerCase(layer, training=False)
    sets = [[v + 0.05 * k * weight(v.shape) for v in c.values] for k in range(3)]
    stacked = [of_array(np.stack(column)) for column in zip(*sets, strict=True)]
    expected = [c(*map(of_array, values)) for values in sets]
    for axis, y in enumerate(vmap(lambda *xs: tuple(c(*xs)))(*stacked)):
        loop = np.stack([outs[axis].numpy() for outs in expected])
        assert_close(y, loop, rtol=1e-9, atol=1e-11)


# --- copies and states ----------------------------------------------------------------------------


def outputs(layer: Layer, module: Any, training: bool = False) -> list[Any]:
    """What the module gives, without a graph."""
    module.train(training)
    chainrule.manual_seed(2)
    with chainrule.no_grad():
        return called(layer, module, tensors(layer))


def tensors(layer: Layer) -> Any:
    return map_arrays(lambda a: of_array(a.copy()), layer.inputs(draw(layer)))


@each(ALL)
def test_copies_and_pickles(layer: Layer) -> None:
    """They give the same outputs and share no memory with the original."""
    module = made(layer)
    outputs(layer, module, training=True)
    expected = outputs(layer, module)
    own = {id(t) for t in [*module.parameters(), *module.buffers()]}
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert_close(outputs(layer, other), expected, rtol=0, atol=0)
        assert repr(other) == repr(module)
        held = [*other.parameters(), *other.buffers()]
        assert not own & {id(t) for t in held}
        assert [t.requires_grad for t in held] == [
            t.requires_grad for t in [*module.parameters(), *module.buffers()]
        ]
        for a in held:
            a.detach().fill_(1)
    assert_close(outputs(layer, module), expected, rtol=0, atol=0)


@each(ALL)
def test_state_goes_into_a_fresh_module(layer: Layer) -> None:
    module, other = made(layer), made(layer, seed=1)
    keys = other.load_state_dict(module.state_dict())
    assert repr(keys) == "<All keys matched successfully>"
    assert_close(outputs(layer, other), outputs(layer, module), rtol=0, atol=0)
    assert list(other.state_dict()) == list(module.state_dict())


@each(ALL)
def test_repr_names_the_class(layer: Layer) -> None:
    module = made(layer)
    assert repr(module).startswith(type(module).__name__ + "(")


# --- completeness ---------------------------------------------------------------------------------

# Public classes without a record, and why.
NO_RECORD = {
    "Buffer": "a tensor",
    "Module": "has no forward",
    "ModuleDict": "has no forward; see nn/test_containers.py",
    "ModuleList": "has no forward; see nn/test_containers.py",
    "Parameter": "a tensor",
    "ParameterDict": "has no forward; see nn/test_containers.py",
    "ParameterList": "has no forward; see nn/test_containers.py",
    "RNNBase": "has no forward",
    "RNNCellBase": "has no forward",
    "UninitializedBuffer": "a tensor",
    "UninitializedParameter": "a tensor",
}


def public_layers() -> Iterator[tuple[str, Any]]:
    for name, value in vars(nn).items():
        lazy = name.startswith("Lazy")  # see nn/test_lazy.py
        if inspect.isclass(value) and name[0].isupper() and name not in NO_RECORD and not lazy:
            yield name, value


def test_every_public_layer_has_a_record() -> None:
    recorded = {type(layer.make(nn)) for layer in ALL}
    missing = [name for name, value in public_layers() if value not in recorded]
    assert not missing, f"public layers without a record in tests/layers: {missing}"


# Functions that are procedures: they change modes, draw points or fit a model.
PROCEDURES = {
    "fit_rbf": "see nn/test_rbf.py",
    "growing_neural_gas": "see nn/test_rbf.py",
    "kmeans": "see nn/test_rbf.py",
    "kmeans_plus_plus": "see nn/test_rbf.py",
    "monte_carlo_predict": "see nn/test_noise.py",
    "uniform_centers": "see nn/test_rbf.py",
    "weight_noise": "see nn/test_noise.py",
    "weight_scaled": "see nn/test_dropout.py",
}

# Other names of functions that have records, compared in parity/test_nn_names.py.
OTHER_NAMES = {
    "native_channel_shuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
    *(f"{kind}max_pool{nd}d_with_indices" for kind in ("", "adaptive_") for nd in (1, 2, 3)),
    *(f"fractional_max_pool{nd}d_with_indices" for nd in (2, 3)),
}


def test_every_public_function_has_a_record_or_a_layer() -> None:
    """A function counts if a sample names it, or if a layer's record runs it."""
    sampled = {id(resolve(chainrule, s.name)) for s in SAMPLES}
    run = _codes_that_run()
    missing = [
        name
        for name, value in vars(nn.functional).items()
        if callable(value)
        and name[0].islower()
        and id(value) not in sampled
        and name not in {*PROCEDURES, *OTHER_NAMES}
        and getattr(value, "__code__", None) not in run
    ]
    assert not missing, f"functions of nn.functional without a sample or a layer: {missing}"


def _codes_that_run() -> set[Any]:
    """The code of every function that runs while the layers compute."""
    seen: set[Any] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for layer in ALL:
            outputs(layer, made(layer))
    finally:
        sys.setprofile(before)
    return seen


def test_labels_are_unique() -> None:
    names = [layer.label for layer in ALL]
    assert len(set(names)) == len(names), sorted({n for n in names if names.count(n) > 1})


# --- the tests see mistakes -----------------------------------------------------------------------


class Tripled(chainrule.autograd.Function):
    """2 x, with the derivative of 3 x in one mode or in both."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, both: bool) -> Tensor:
        ctx.both = both
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return 3 * g, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, both: Any) -> Tensor:
        return (3 if ctx.both else 2) * t


class Planted(nn.Module):
    """A layer with one mistake."""

    def __init__(self, mistake: str):
        super().__init__()
        self.mistake = mistake
        self.weight = nn.Parameter(chainrule.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        if self.mistake in ("one mode", "both modes"):
            return Tripled.apply(x, self.mistake == "both modes") * self.weight
        if self.mistake == "wide":
            return x.double() * self.weight
        if self.mistake == "input":
            return x.mul_(2) * self.weight
        if self.mistake == "sample":
            return x.detach() * self.weight
        if self.mistake == "nan":
            return x / 0 * 0 + self.weight
        return x * self.weight

    def __deepcopy__(self, memo: Any) -> Any:
        return self if self.mistake == "copy" else copy.copy(self)


@pytest.mark.parametrize(
    ("mistake", "test", "arguments"),
    [
        ("one mode", test_modes_are_adjoint, (False,)),
        ("one mode", test_first_derivatives, (False,)),
        ("both modes", test_first_derivatives, (False,)),
        ("sample", test_first_derivatives, (False,)),
        ("wide", test_float32_stays_float32, ()),
        ("input", test_inputs_are_left_alone, ()),
        ("copy", test_copies_and_pickles, ()),
        ("nan", test_outputs_are_finite, (True,)),
    ],
)
def test_a_planted_mistake_is_caught(mistake: str, test: Any, arguments: tuple[Any, ...]) -> None:
    layer = Layer("Planted", lambda nn: Planted(mistake), lambda r: (r.normal(size=(2, 3)),))
    with pytest.raises((AssertionError, GradcheckError)):
        test(layer, *arguments)
