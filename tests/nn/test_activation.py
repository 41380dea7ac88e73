"""Activations: the numbers the courses state, what happens at kinks, in place, and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F


def slope(function: Any, *points: float) -> list[float]:
    x = chainrule.tensor(points, dtype=chainrule.float64, requires_grad=True)
    return chainrule.autograd.grad(function(x).sum(), x)[0].tolist()


def value(function: Any, x: float) -> float:
    return function(chainrule.tensor(x, dtype=chainrule.float64)).item()


# --- numbers of the courses -----------------------------------------------------------------------


def test_sigmoid_and_tanh_are_the_same_curve() -> None:
    x = chainrule.linspace(-5, 5, 101, dtype=chainrule.float64)
    assert_close(x.sigmoid(), ((x / 2).tanh() + 1) / 2, atol=1e-15)
    assert_close(x.tanh(), 2 * (2 * x).sigmoid() - 1, atol=1e-15)
    assert slope(chainrule.sigmoid, 0.0) == [0.25]
    assert slope(chainrule.tanh, 0.0) == [1.0]


def test_lecun_tanh_is_one_at_one() -> None:
    assert value(F.lecun_tanh, 1.0) == pytest.approx(0.999997, abs=5e-7)


def test_soboleva_tanh() -> None:
    x = chainrule.linspace(-30, 30, 61, dtype=chainrule.float64)
    assert_close(F.soboleva_tanh(x), x.tanh(), atol=1e-15)
    assert value(lambda x: F.soboleva_tanh(x, 2.0, 1.0, 1.0, 1.0), 5.0) == pytest.approx(
        148.4, abs=0.05
    )
    far = F.soboleva_tanh(chainrule.tensor([-1e4, 1e4]), 0.5, 1.0, 1.0, 1.0)
    assert_close(far, np.array([-1.0, 0.0], np.float32))


def test_selu_constants_solve_the_fixed_point_equations() -> None:
    """In closed form (Klambauer et al., 2017), and the lower bound that follows."""
    root_e, tail = math.sqrt(math.e), scipy.special.erfc(math.sqrt(0.5))
    alpha = -math.sqrt(2 / math.pi) / (tail * root_e - 1)
    inner = (
        2 * scipy.special.erfc(math.sqrt(2)) * math.e**2
        + math.pi * tail**2 * math.e
        - 2 * (2 + math.pi) * tail * root_e
        + math.pi
        + 2
    )
    scale = (1 - tail * root_e) * math.sqrt(2 * math.pi) / math.sqrt(inner)
    assert alpha == pytest.approx(1.6732632423543772, rel=1e-14)
    assert scale == pytest.approx(1.0507009873554805, rel=1e-14)
    assert value(F.selu, 1.0) == 1.0507009873554805
    assert value(F.selu, -1000.0) == pytest.approx(-1.7580993, abs=5e-8)


@pytest.mark.parametrize(
    ("function", "place", "minimum"),
    [(F.gelu, -0.7518, -0.16997), (F.silu, -1.27846, -0.27846)],
)
def test_minima(function: Any, place: float, minimum: float) -> None:
    found = scipy.optimize.minimize_scalar(
        lambda x: value(function, x), bounds=(-2, 0), method="bounded", options={"xatol": 1e-10}
    )
    assert found.x == pytest.approx(place, abs=5e-5)
    assert found.fun == pytest.approx(minimum, abs=5e-6)


def test_leaky_relu_keeps_the_sign() -> None:
    assert value(F.leaky_relu, -1.0) == -0.01


def test_softmax_jacobian() -> None:
    x = chainrule.tensor([0.5, -1.0, 2.0], dtype=chainrule.float64)
    p = F.softmax(x, 0)
    expected = chainrule.diag(p) - chainrule.outer(p, p)
    assert_close(chainrule.func.jacrev(lambda x: F.softmax(x, 0))(x), expected, atol=1e-15)


def test_softplus_slope_is_the_sigmoid() -> None:
    """e^x / (1 + e^x)^2 is the slope of that again: 0.1966 at 1."""
    x = chainrule.tensor(1.0, dtype=chainrule.float64)
    first = chainrule.func.grad(F.softplus)
    assert first(x).item() == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-14)
    assert chainrule.func.grad(first)(x).item() == pytest.approx(0.1966, abs=5e-5)


def test_half_of_relu_units_are_zero_after_a_symmetric_start() -> None:
    chainrule.manual_seed(0)
    out = nn.Sequential(nn.Linear(50, 400), nn.ReLU())(chainrule.randn(200, 50))
    assert (out == 0).float().mean().item() == pytest.approx(0.5, abs=0.01)


# --- output activations and their losses ----------------------------------------------------------


def test_output_delta_is_prediction_minus_target() -> None:
    """Identity with half the squares, sigmoid with BCE, softmax with cross-entropy."""
    s = chainrule.tensor([[0.3, -1.2, 2.0]], dtype=chainrule.float64, requires_grad=True)
    y = chainrule.tensor([[0.0, 0.0, 1.0]], dtype=chainrule.float64)
    losses = {
        lambda s: s: 0.5 * ((s - y) ** 2).sum(),
        chainrule.sigmoid: chainrule.binary_cross_entropy(s.sigmoid(), y, reduction="sum"),
        lambda s: F.softmax(s, 1): chainrule.nll_loss(F.log_softmax(s, 1), chainrule.tensor([2])),
    }
    for output, loss in losses.items():
        (delta,) = chainrule.autograd.grad(loss, s)
        assert_close(delta, output(s.detach()) - y, atol=1e-12)


# --- kinks, infinities ----------------------------------------------------------------------------


def test_slopes_at_kinks_are_those_of_pytorch() -> None:
    assert slope(F.relu, 0.0) == [0.0]
    assert slope(F.leaky_relu, 0.0) == [0.01]
    assert slope(F.elu, 0.0) == [1.0]
    assert slope(F.selu, 0.0)[0] == pytest.approx(1.7581, abs=5e-5)
    assert slope(F.hardtanh, -1.0, 1.0) == [0.0, 0.0]
    assert slope(F.relu6, 0.0, 6.0) == [0.0, 0.0]
    assert slope(F.hardsigmoid, -3.0, 0.0, 3.0) == [0.0, 1 / 6, 0.0]
    assert slope(F.hardswish, -3.0, 3.0) == [0.0, 1.0]
    assert slope(F.softshrink, -0.5, 0.5) == [0.0, 0.0]


EDGES = [
    -math.inf,
    -1e30,
    -6.0,
    -3.0,
    -1.0,
    -0.5,
    -0.0,
    0.0,
    0.5,
    1.0,
    3.0,
    6.0,
    20.0,
    21.0,
    1e30,
    math.inf,
    math.nan,
]


@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "hardtanh",
        "hardswish",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "softsign",
        "softshrink",
        "tanhshrink",
        "logsigmoid",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_edges_are_those_of_pytorch(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    # PyTorch's float32 GELU at infinity depends on the place in the array.
    edges = [x for x in EDGES if not math.isinf(x)] if name == "gelu" else EDGES
    results = []
    for library, functional in ((chainrule, F), (torch, torch.nn.functional)):
        x = library.tensor(edges, dtype=getattr(library, dtype), requires_grad=True)
        y = getattr(functional, name)(x)
        # PyTorch's own gradient at NaN depends on the place in the array.
        results.append([y.detach(), library.autograd.grad(y.sum(), x)[0][:-1]])
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    assert_close(results[0], results[1], rtol=tolerance, atol=tolerance)


def test_hardsigmoid_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x = np.linspace(-4, 4, 33, dtype=np.float32)
    ours, theirs = chainrule.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    a, b = F.hardsigmoid(ours), torch.nn.functional.hardsigmoid(theirs)
    assert_close(a.detach(), b.detach(), rtol=1e-6)
    a.sum().backward()
    b.sum().backward()
    assert_close(ours.grad, theirs.grad, rtol=1e-6)


@pytest.mark.parametrize("dtype", [chainrule.float32, chainrule.float64])
def test_large_arrays_take_another_way_to_the_same_values(dtype: Any) -> None:
    """Kernels choose by size; float32 erf is then an approximation."""
    x = chainrule.linspace(-12, 12, 6001, dtype=dtype)
    tolerance = 1e-6 if dtype is chainrule.float32 else 1e-12
    a = x.double().numpy()
    assert_close(x.sigmoid().double(), scipy.special.expit(a), rtol=tolerance)
    assert_close(x.erf().double(), scipy.special.erf(a), rtol=tolerance)
    assert_close(F.softplus(x, threshold=math.inf).double(), np.logaddexp(a, 0), rtol=tolerance)
    assert_close(F.gelu(x).double(), a * scipy.special.ndtr(a), rtol=0, atol=12 * tolerance)
    where = chainrule.where(x > 1, x, chainrule.tensor(-0.0, dtype=dtype))
    assert_close(where.double(), np.where(a > 1, a, 0.0), rtol=0, atol=0)


# --- in place -------------------------------------------------------------------------------------

IN_PLACE = [
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.RReLU,
    nn.ELU,
    nn.CELU,
    nn.SELU,
    nn.SiLU,
    nn.Mish,
    nn.Hardtanh,
    nn.Hardsigmoid,
    nn.Hardswish,
]


@pytest.mark.parametrize("make", IN_PLACE)
def test_in_place_writes_into_the_input_with_the_same_gradient(make: Any) -> None:
    values = chainrule.linspace(-4.1, 4.1, 12)
    x, y = (values.clone().requires_grad_() for _ in range(2))
    plain, changed = make().eval(), make(inplace=True).eval()
    expected = plain(x * 1)
    expected.sum().backward()
    inner = y * 1
    out = changed(inner)
    assert out is inner
    out.sum().backward()
    assert_close(out.detach(), expected.detach())
    assert_close(y.grad, x.grad)
    assert "inplace=True" in repr(changed)
    assert "inplace" not in repr(plain)


def test_in_place_refuses_a_leaf() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable"):
        F.relu_(chainrule.ones(2, requires_grad=True))


# --- random ---------------------------------------------------------------------------------------


def test_rrelu_slopes_are_uniform_in_training() -> None:
    chainrule.manual_seed(0)
    layer = nn.RReLU(0.1, 0.5)
    slopes = -layer(-chainrule.ones(20000))
    assert slopes.min().item() >= 0.1
    assert slopes.max().item() <= 0.5
    assert slopes.mean().item() == pytest.approx(0.3, abs=0.005)
    assert_close(layer.eval()(-chainrule.ones(2)), np.full(2, -0.3, np.float32), rtol=1e-6)


def test_gumbel_softmax_draws_classes_with_their_probabilities() -> None:
    chainrule.manual_seed(0)
    p = chainrule.tensor([0.2, 0.5, 0.3])
    logits = p.log().expand(30000, 3).clone().requires_grad_()
    drawn = F.gumbel_softmax(logits, tau=0.7, hard=True)
    assert_close(drawn.sum(1).detach(), np.ones(30000, np.float32), rtol=1e-6)
    assert_close(drawn.mean(0).detach(), p, rtol=0, atol=0.01)
    (drawn * chainrule.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum().item() > 0


# --- learned --------------------------------------------------------------------------------------


def test_parametric_activation_learns_its_parameters() -> None:
    """The slope of an unknown leaky function is found by gradient descent."""
    chainrule.manual_seed(0)
    x = chainrule.randn(200)
    target = F.leaky_relu(x, 0.3)
    learned = nn.ParametricActivation(lambda x, a: chainrule.where(x > 0, x, a * x), a=1.0)
    for _ in range(60):
        (g,) = chainrule.autograd.grad(((learned(x) - target) ** 2).mean(), learned.a)
        with chainrule.no_grad():
            learned.a -= g
    assert learned.a.item() == pytest.approx(0.3, abs=1e-4)
    assert list(learned.state_dict()) == ["a"]


def test_prelu_learns() -> None:
    layer = nn.PReLU(2)
    layer(-chainrule.ones(3, 2)).sum().backward()
    assert_close(layer.weight.grad, np.full(2, -3.0, np.float32))


# --- errors ---------------------------------------------------------------------------------------

ERRORS = [
    (lambda x: F.gelu(x, approximate="erf"), RuntimeError, "gelu: approximate.*'erf'"),
    (lambda x: F.glu(x), RuntimeError, "glu: halving dimension must be even.*size 3"),
    (lambda x: F.glu(x.sum()), RuntimeError, "glu: does not support 0-dimensional"),
    (lambda x: F.celu(x, 0.0), RuntimeError, "celu: alpha cannot be 0"),
    (lambda x: F.softshrink(x, -1.0), RuntimeError, "softshrink: lambd.*-1"),
    (lambda x: F.hardtanh(x, 2.0, 1.0), ValueError, "hardtanh: min_val"),
    (lambda x: F.rrelu(x, 0.5, 0.1), RuntimeError, "rrelu: lower must not exceed upper"),
    (lambda x: F.elu(x.long()), RuntimeError, "elu: not implemented for chainrule.int64"),
    (lambda x: F.selu([1.0]), TypeError, "selu.*must be Tensor, not list"),
    (lambda x: F.prelu(x, chainrule.ones(4)), RuntimeError, "prelu: mismatch.*= 4.*= 3"),
    (lambda x: F.prelu(x, chainrule.ones(1, 1)), RuntimeError, "prelu: expected weight"),
    (lambda x: F.prelu(x, chainrule.ones(1).double()), RuntimeError, "prelu: type promoting"),
    (
        lambda x: nn.Softmax2d()(x),
        ValueError,
        r"Softmax2d: expected input to be 3D or 4D.*\(2, 3\)",
    ),
    (lambda x: nn.Hardtanh(1.0, 1.0), ValueError, "Hardtanh: max_val must be larger"),
    (lambda x: nn.ParametricActivation(F.elu), ValueError, "at least one parameter"),
    (lambda x: nn.Unflatten(1, 3), TypeError, "Unflatten: unflattened_size must be a tuple"),
    (lambda x: nn.Unflatten(1, (3.0,)), TypeError, "element of type float at pos 0"),
    (lambda x: nn.Unflatten("C", (3,)), TypeError, "Unflatten: dim must be an int"),
    (lambda x: nn.Unflatten(1, (2, 2))(x), RuntimeError, "unflatten"),
]


@pytest.mark.parametrize(("call", "error", "match"), ERRORS, ids=[m for *_, m in ERRORS])
def test_errors(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call(chainrule.ones(2, 3))


@pytest.mark.parametrize(("ndim", "dim"), [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_softmax_without_a_dimension_warns_and_chooses(ndim: int, dim: int) -> None:
    x = chainrule.randn(*[2] * ndim)
    for function in (F.softmax, F.softmin, F.log_softmax):
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            out = function(x)
        assert_close(out, function(x, dim))
