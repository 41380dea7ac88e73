"""float16 and bfloat16 beside PyTorch: every operation and layer by its records, updates, training.

Both libraries compute in float32 and round, but not after the same steps. So what is compared is
how far each is from the value in float64: ours may be one rounding of the largest number away, or
as far as PyTorch's. Gradients of several operations have been rounded more often: twice as far.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers import call, case, is_variable, map_arrays, torch_call, weight
from layer_helpers import called, draw, made
from layers import ALL as LAYERS
from layers.record import Layer
from samples import ALL as SAMPLES
from samples.record import Sample

import chainrule

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

ROUNDING = {"bfloat16": 2.0**-7, "float16": 2.0**-10}  # from a number to the next, relative
each_type = pytest.mark.parametrize("dtype", ROUNDING)

UNLIKE = {
    "igamma": "the result has the type of the second argument",
    "igammac": "the result has the type of the second argument",
    "signbit": "the sign of NaN is lost there",
    "linalg.matrix_exp": "infinite there",
    "matrix_exp": "infinite there",
    "complex": "there is no complex32",
    "linalg.vander": "refused there",
    "vander": "refused there",
    "view_as_real": "there is no complex32",
    "view_as_complex_copy": "there is no complex32",
    "view_as_real_copy": "there is no complex32",
    "view_as_complex": "there is no complex32",
    "linalg.det": "of nothing is 1 there",
    "istft": "there is no complex32",
}
COMPARED = [
    s
    for s in SAMPLES
    if s.torch != "" and s.label.partition("[")[0] not in UNLIKE and not s.label.startswith("fft.")
]


class Run:
    """A function of some arrays in one library and one type."""

    def __init__(self, library: Any, dtype: str, stored: str):
        self.library, self.dtype, self.stored = library, dtype, stored
        self.variables: list[Any] = []

    def tensor(self, a: np.ndarray) -> Any:
        """An array as a tensor; a variable is rounded to the stored type first."""
        x = self.library.from_numpy(np.array(a))
        if not is_variable(a):
            return x
        x = x.to(self.type(self.stored)).to(self.type(self.dtype)).detach().requires_grad_()
        self.variables.append(x)
        return x

    def type(self, name: str) -> Any:
        return getattr(self.library, name)

    def gradients(self, results: Sequence[Any]) -> list[Any]:
        roots = [y for y in results if getattr(y, "requires_grad", False)]
        if not roots:
            return []
        weights = []
        for y in roots:
            w = self.library.from_numpy(weight(tuple(y.shape)))
            weights.append(w.to(self.type(self.stored)).to(y.dtype))
        found = self.library.autograd.grad(roots, self.variables, weights, allow_unused=True)
        return [
            0 * x.detach() if g is None else g for x, g in zip(self.variables, found, strict=True)
        ]


def numbers(x: Any) -> np.ndarray:
    """A tensor of either library as float64, or as it is if it does not hold floating numbers."""
    x = x.detach()
    return (x.double() if x.dtype.is_floating_point else x).numpy(force=True)


def assert_as_near(
    ours: Sequence[Any], theirs: Sequence[Any], exact: Sequence[Any], dtype: str, times: float = 1
) -> None:
    """Shape, dtype, what is not finite; and the largest distance from the exact values, in
    roundings of the largest number of each result."""
    __tracebackhide__ = True
    assert len(ours) == len(theirs)
    error, their_error = 0.0, 1.0
    for a, b, c in zip(ours, theirs, exact, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        x, y, z = numbers(a), numbers(b), numbers(c)
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(x, y)
            continue
        finite = np.isfinite(y) & np.isfinite(z)
        np.testing.assert_array_equal(np.isfinite(x)[finite], True)
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        if finite.any():
            one = ROUNDING[dtype] * max(np.abs(z[finite]).max(), 1e-3)
            error = max(error, np.abs(x - z)[finite].max() / one)
            their_error = max(their_error, np.abs(y - z)[finite].max() / one)
    assert error <= 1.05 * times * their_error


def attempt(function: Callable[[], Any]) -> Any:
    """What a function returns or raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyTorch has deprecated
        try:
            return function()
        except Exception as error:  # noqa: BLE001 (whatever PyTorch raises)
            return error


def results_of(sample: Sample, run: Run) -> tuple[list[Any], list[Any]]:
    """The results of a sample and, if it is differentiable, their gradients."""
    args = map_arrays(run.tensor, case(sample).args)
    out = call(sample, args) if run.library is chainrule else torch_call(torch, sample, args)
    return flat(out), run.gradients(flat(out)) if sample.differentiable else []


def flat(out: Any) -> list[Any]:
    return [y for part in out for y in flat(part)] if isinstance(out, (list, tuple)) else [out]


@each_type
@pytest.mark.parametrize("sample", COMPARED, ids=[s.label for s in COMPARED])
def test_operation(sample: Sample, dtype: str) -> None:
    theirs = attempt(lambda: results_of(sample, Run(torch, dtype, dtype)))
    if isinstance(theirs, NotImplementedError):
        return  # there is no kernel for this type: here there may be one
    if isinstance(theirs, Exception):
        with pytest.raises(type(theirs)):
            results_of(sample, Run(chainrule, dtype, dtype))
        return
    ours = results_of(sample, Run(chainrule, dtype, dtype))
    exact = results_of(sample, Run(torch, "float64", dtype))
    assert_as_near(ours[0], theirs[0], exact[0], dtype)
    assert_as_near(ours[1], theirs[1], exact[1], dtype, times=2)


def test_most_values_are_the_same_to_the_last_bit() -> None:
    same = []
    for sample in COMPARED:
        theirs = attempt(lambda s=sample: results_of(s, Run(torch, "bfloat16", "bfloat16"))[0])
        if not isinstance(theirs, Exception):
            ours = results_of(sample, Run(chainrule, "bfloat16", "bfloat16"))[0]
            pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if hasattr(b, "detach")]
            same += [np.array_equal(numbers(a), numbers(b), equal_nan=True) for a, b in pairs]
    assert len(same) > 1000
    assert np.mean(same) > 0.85


# --- layers ---------------------------------------------------------------------------------------

IN_TORCH = [
    layer
    for layer in LAYERS
    if layer.torch and layer.differentiable and not layer.label.startswith("orthogonal[exp")
]  # matrix_exp is infinite there


def run_layer(layer: Layer, library: Any, dtype: str, stored: str) -> tuple[list[Any], list[Any]]:
    """The outputs of a layer in evaluation, and the gradients of inputs and parameters."""
    run = Run(library, dtype, stored)
    module = made(layer, torch).to(getattr(torch, stored)).eval()
    if library is chainrule:
        state = {k: from_torch(v) for k, v in module.state_dict().items()}
        module = made(layer, chainrule).to(run.type(stored)).eval()
        module.load_state_dict(state)
    module = module.to(run.type(dtype))
    args = map_arrays(run.tensor, layer.inputs(draw(layer)))
    results = called(layer, module, args)
    run.variables += [p for p in module.parameters() if p.requires_grad]
    return results, run.gradients(results)


def from_torch(x: Any) -> chainrule.Tensor:
    """A tensor of PyTorch, in its type."""
    return chainrule.from_numpy(x.double().numpy()).to(str(x.dtype).rpartition(".")[2])


@each_type
@pytest.mark.parametrize("layer", IN_TORCH, ids=[layer.label for layer in IN_TORCH])
def test_layer(layer: Layer, dtype: str) -> None:
    theirs = attempt(lambda: run_layer(layer, torch, dtype, dtype))
    if isinstance(theirs, Exception):
        pytest.skip(f"PyTorch: {theirs!r:.80}")
    ours = run_layer(layer, chainrule, dtype, dtype)
    exact = run_layer(layer, torch, "float64", dtype)
    assert_as_near(ours[0], theirs[0], exact[0], dtype, times=2)
    assert_as_near(ours[1], theirs[1], exact[1], dtype, times=3)


# --- updates and training -------------------------------------------------------------------------

# Steps that bfloat16 holds exactly: PyTorch rounds the rate, too.
UPDATES: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.125},
    "Adam": {"lr": 2.0**-7},
    "AdamW": {"lr": 2.0**-7},
    "RMSprop": {"lr": 2.0**-7},
    "Adagrad": {"lr": 0.125},
    "Adadelta": {},
    "Adamax": {"lr": 2.0**-7},
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_rounded_when_they_are_stored(name: str) -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(40, 30))
    gradients = [rng.normal(size=start.shape) for _ in range(5)]
    after = []
    for library in (chainrule, torch):
        p = library.from_numpy(start).to(library.bfloat16).requires_grad_()
        optimizer = getattr(library.optim, name)([p], **UPDATES[name])
        for g in gradients:
            p.grad = library.from_numpy(g).to(library.bfloat16)
            optimizer.step()
        after.append(p)
        state = optimizer.state[p]
        assert all(v.dtype is library.bfloat16 for v in state.values() if getattr(v, "ndim", 0))
    ours, theirs = map(numbers, after)
    assert np.mean(ours == theirs) > 0.7
    np.testing.assert_allclose(ours, theirs, rtol=3 * 2.0**-7, atol=2.0**-8)


def test_a_step_of_sgd_is_the_same_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    start, g = rng.normal(size=(2, 1000))
    after = []
    for library in (chainrule, torch):
        p = library.from_numpy(start).to(library.bfloat16).requires_grad_()
        p.grad = library.from_numpy(g).to(library.bfloat16)
        library.optim.SGD([p], lr=0.125).step()
        after.append(numbers(p))
    np.testing.assert_array_equal(*after)


def mlp(nn: Any) -> Any:
    return nn.Sequential(
        nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3)
    )


def cnn(nn: Any) -> Any:
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)),
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


@pytest.mark.parametrize(("net", "size"), [(mlp, 8), (cnn, 16)])
def test_training_has_the_losses_of_pytorch(net: Callable[[Any], Any], size: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, size))
    y = np.abs(x[:, :3]).argmax(1)
    torch.manual_seed(0)
    theirs = net(torch.nn).to(torch.bfloat16)
    ours = net(chainrule.nn).to(chainrule.bfloat16)
    ours.load_state_dict({k: from_torch(v) for k, v in theirs.state_dict().items()})
    losses = []
    for library, model in ((chainrule, ours), (torch, theirs)):
        data = library.from_numpy(x).to(library.bfloat16)
        target = library.from_numpy(y)
        optimizer = library.optim.SGD(model.parameters(), lr=0.125, momentum=0.5)
        losses.append([])
        for _ in range(60):
            optimizer.zero_grad()
            loss = library.nn.functional.cross_entropy(model(data), target)
            assert loss.dtype is library.bfloat16
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    ours_then, theirs_then = np.array(losses)
    np.testing.assert_allclose(ours_then[:10], theirs_then[:10], rtol=0.03)
    np.testing.assert_allclose(ours_then, theirs_then, atol=0.1)
    assert ours_then[-1] < 0.6 * ours_then[0]
