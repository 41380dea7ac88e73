"""Complex numbers: every operation that takes them, in both modes and twice.

The inputs of the records are made complex. What an operation then refuses is left out here; that it
refuses no more than PyTorch does stands in ``tests/parity/test_complex.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import Case, assert_close, case, complex_values, parts
from samples import ALL
from samples.record import Sample

import chainrule
from chainrule.autograd import GradcheckError, gradcheck, gradgradcheck
from chainrule.func import grad, jvp, vjp
from chainrule.ops.core.primitive import REGISTRY, Primitive
from chainrule.tensor import Tensor, of_array

REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError)


class ComplexCase:
    """A record at complex inputs: a function of them, and directions in which to go."""

    def __init__(self, sample: Sample):
        self.case = Case(sample, case(sample).args)
        self.points = tuple(of_array(v) for v in complex_values(self.case))
        self.directions = tuple(self.drawn(self.points, 1))

    def __call__(self, *variables: Tensor) -> tuple[Tensor, ...]:
        return tuple(parts(self.case(*variables)))

    @staticmethod
    def drawn(models: Any, seed: int) -> Iterator[Tensor]:
        r = np.random.default_rng(seed)
        for y in models:
            shape = tuple(y.shape)
            imaginary = 1j * r.normal(size=shape) if y.is_complex() else 0.0
            yield of_array(np.asarray(r.normal(size=shape) + imaginary, y.dtype.name))

    def moved(self, step: float) -> tuple[Tensor, ...]:
        return tuple(x + step * d for x, d in zip(self.points, self.directions, strict=True))


def inner(a: Any, b: Any) -> Tensor:
    """The real inner product of lists of tensors: the sum of Re(conj(x) y)."""
    total = of_array(np.zeros(()))
    for x, y in zip(a, b, strict=True):
        total = total + (x.conj() * y).real.sum()
    return total


def of_real_matrices(sample: Sample) -> bool:
    """Records with a transpose where complex matrices need a conjugate one: theirs are in
    ``test_linalg_complex.py``."""
    return sample.prepare is not None or sample.note.startswith("span")


def accepted() -> list[Any]:
    """The records whose function computes something with a history from complex inputs."""
    found = []
    for sample in ALL:
        if not sample.differentiable or sample.name.startswith("ops.") or of_real_matrices(sample):
            continue
        if not case(sample).values:
            continue
        c = ComplexCase(sample)
        try:
            out = c(*[x.requires_grad_() for x in c.points])
        except REFUSALS:
            continue
        if any(y.requires_grad for y in out):
            found.append(pytest.param(sample, id=sample.label))
    return found


ACCEPTED = accepted()
each = pytest.mark.parametrize("sample", ACCEPTED)


@each
def test_both_modes_and_differences(sample: Sample) -> None:
    """<g, J t> in forward mode, in reverse mode and from differences."""
    c = ComplexCase(sample)
    outputs, tangents = jvp(c, c.points, c.directions)
    assert [t.dtype for t in tangents] == [y.dtype for y in outputs]
    g = tuple(c.drawn(outputs, 2))
    gradients = vjp(c, *c.points)[1](g)
    assert [x.dtype for x in gradients] == [x.dtype for x in c.points]
    forward, reverse = inner(g, tangents), inner(gradients, c.directions)
    assert_close(forward, reverse, rtol=1e-9, atol=1e-9)
    h = 1e-6
    difference = (inner(g, c(*c.moved(h))) - inner(g, c(*c.moved(-h)))) / (2 * h)
    assert_close(forward, difference, rtol=1e-4, atol=1e-5)


@each
def test_second_order(sample: Sample) -> None:
    """d/dx <g, J(x) t> in every mix of modes; along a direction, from differences."""
    c = ComplexCase(sample)
    g, t = tuple(c.drawn(c(*c.points), 2)), tuple(c.drawn(c.points, 3))

    def pulled(*xs: Tensor) -> Any:
        return vjp(c, *xs)[1](g)

    def pushed(*xs: Tensor) -> Tensor:
        return inner(g, jvp(c, xs, t)[1])

    everything = tuple(range(len(c.points)))
    over_reverse = grad(lambda *xs: inner(t, pulled(*xs)), everything)(*c.points)
    over_forward = grad(pushed, everything)(*c.points)
    assert_close(list(over_forward), list(over_reverse), rtol=1e-7, atol=1e-8)
    slope = inner(over_reverse, c.directions)
    assert_close(inner(jvp(pulled, c.points, c.directions)[1], t), slope, rtol=1e-7, atol=1e-8)
    h = 1e-6
    difference = (inner(t, pulled(*c.moved(h))) - inner(t, pulled(*c.moved(-h)))) / (2 * h)
    assert_close(slope, difference, rtol=1e-4, atol=1e-4)


def test_there_is_something_to_test() -> None:
    """So that an error in all operations does not pass for a refusal of all."""
    names = {p.values[0].name for p in ACCEPTED}
    assert len(names) > 270
    for name in ("norm", "var", "std", "pow", "sigmoid", "logaddexp", "matmul", "fft.fft", "abs"):
        assert name in names


# --- the checker ----------------------------------------------------------------------------------


def z(*shape: int, seed: int = 0) -> Tensor:
    r = np.random.default_rng(seed)
    return of_array(r.normal(size=shape) + 1j * r.normal(size=shape)).requires_grad_()


def test_gradcheck_takes_complex_inputs() -> None:
    assert gradcheck(lambda x, y: (x * y, x.abs(), x.real, y.conj()), (z(2, 3), z(3)))
    assert gradcheck(lambda x: x.exp(), z(2), check_batched_grad=True)
    assert gradgradcheck(lambda x: x.abs() * x, z(3), check_over_fwd=True)
    real = chainrule.tensor([0.5, 2.0], dtype=chainrule.float64, requires_grad=True)
    assert gradcheck(lambda x, y: (x * y).sum(), (real, z(2)))
    with pytest.raises(ValueError, match="complex64, too coarse for differences; use x.cdouble"):
        gradcheck(chainrule.exp, z(2).detach().cfloat().requires_grad_())


@pytest.mark.parametrize(
    ("vjp_rule", "jvp_rule", "message"),
    [
        (lambda g, x: g * (x + x), lambda t, x: t * (x + x), ""),
        (lambda g, x: g * (x + x).conj(), lambda t, x: t * (x + x), "backward mode"),
        (lambda g, x: g * (x + x), lambda t, x: t * (x + x).conj(), "forward mode"),
        (lambda g, x: g * 2 * x.real, lambda t, x: t * (x + x), r"\.(real|imag) of the output"),
    ],
)
def test_gradcheck_finds_wrong_rules_of_complex_numbers(
    vjp_rule: Any, jvp_rule: Any, message: str
) -> None:
    """A rule that forgets to conjugate, or conjugates where it must not."""
    op = Primitive(
        "planted_square",
        lambda g, out, x, needs: (vjp_rule(g, x),),
        lambda t, out, x: jvp_rule(t[0], x),
        batch=None,
        kernel="square",
    )
    try:
        if not message:
            assert gradcheck(op, z(2))
            return
        with pytest.raises(GradcheckError, match=message):
            gradcheck(op, z(2))
    finally:
        del REGISTRY["planted_square"]


# --- parts as views -------------------------------------------------------------------------------


def test_parts_are_views() -> None:
    x = chainrule.tensor([1 + 2j, 3 + 4j])
    x.real.mul_(10)
    x.imag[1:] = 0.0
    assert x.tolist() == [10 + 2j, 30 + 0j]
    assert x.imag._base is x
    assert x.imag.stride() == (2,)


def test_writing_through_parts_has_gradients() -> None:
    def written(x: Tensor, r: Tensor) -> Tensor:
        y = x * (1 + 1j)
        y.real.mul_(r)
        y.imag[1:] = r[:2] ** 2
        chainrule.view_as_real(y)[0, 1] = r[2] * 3
        return y.clone()

    def of_pairs(p: Tensor) -> Tensor:
        q = p * 2
        chainrule.view_as_complex(q).imag.mul_(p[:, 0])
        return q.clone()

    r = chainrule.tensor([0.3, 0.4, 2.0], dtype=chainrule.float64, requires_grad=True)
    assert gradcheck(written, (z(3), r))
    assert gradcheck(of_pairs, r.detach().expand(2, 3)[:, :2].clone().requires_grad_())


def test_a_part_that_was_written_is_noticed() -> None:
    x = z(2)
    y = x * 2
    product = y * y
    y.imag.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.real.sum().backward()


# --- values ---------------------------------------------------------------------------------------


def test_truth_of_complex_numbers() -> None:
    x = chainrule.tensor([0j, 1j, 1 + 0j, complex(0, float("nan"))])
    assert x.bool().tolist() == [False, True, True, True]


def test_logsumexp_has_the_principal_value() -> None:
    x = chainrule.tensor([1.0 + 5j, 1000 + 4j], dtype=chainrule.complex128)
    assert_close(x.logsumexp(0), np.complex128(1000 + (4 - 2 * np.pi) * 1j))
    assert_close(x.logcumsumexp(0), np.array([1 + 5j, 1000 + 4j]))


def test_far_out() -> None:
    x = chainrule.tensor([-1000 + 1j, 1000 + 1j, 1e-12 + 1e-12j], dtype=chainrule.complex128)
    assert_close(x.sigmoid()[:2], np.array([0j, 1 + 0j]))
    assert_close(x.log1p()[2:], np.array([1e-12 + 1e-12j]), atol=1e-24)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clamp(min=0),
        lambda x: chainrule.nn.functional.hardtanh(x),
        lambda x: chainrule.nn.functional.softplus(x),
        lambda x: chainrule.nn.functional.binary_cross_entropy(x, x),
        lambda x: chainrule.max_pool1d(x, 2),
        lambda x: chainrule.scatter_reduce(x, 0, chainrule.zeros_like(x).real.long(), x, "amax"),
        lambda x: chainrule.polygamma(1, x),
    ],
)
def test_what_needs_an_order_is_refused(function: Any) -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented for .*complex"):
        function(z(2, 4).detach())
