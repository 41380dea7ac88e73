"""Every operation, by its records: an operation without a record fails here.

One record gives the value against the reference, both modes of differentiation and their
adjointness, second order in every mix of modes, float32, memory layouts and vmap.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import Case, all_arrays, assert_close, call, case, map_arrays, outputs, resolve, weight
from ops.second_order import check_backward_pass
from samples import ALL, BY_FAMILY
from samples.record import Sample

import chainrule
from chainrule.autograd import gradcheck, gradgradcheck
from chainrule.func import grad, jvp, vjp, vmap
from chainrule.ops import families
from chainrule.ops.linalg import matrices as linalg
from chainrule.ops.core.apply import watching
from chainrule.ops.core.primitive import REGISTRY
from chainrule.tensor import Tensor, of_array


def each(samples: list[Sample]) -> pytest.MarkDecorator:
    """Runs a test for each of these samples."""
    return pytest.mark.parametrize("sample", samples, ids=[s.label for s in samples])


WITH_VARIABLES = [s for s in ALL if case(s).values]
DIFFERENTIABLE = [s for s in ALL if s.differentiable]
MAPPED = [s for s in WITH_VARIABLES if s.vmap]

# --- values ---------------------------------------------------------------------------------------


def precision(out: Any) -> dict[str, float]:
    """float32 results (of integers, say) cannot be better than float32."""
    narrow = any(y.dtype not in (chainrule.float64, chainrule.complex128) for y in outputs(out))
    return {"rtol": 2e-6, "atol": 1e-6} if narrow else {"rtol": 1e-9, "atol": 1e-12}


@each([s for s in ALL if s.reference is not None])
def test_value(sample: Sample) -> None:
    c = case(sample)
    out = c(*c.variables(requires_grad=False))
    assert_close(out, c.reference(), **precision(out))


@each(WITH_VARIABLES)
def test_inputs_are_left_alone(sample: Sample) -> None:
    c = case(sample)
    before = [v.copy() for v in c.values]
    variables = c.variables(requires_grad=sample.differentiable)
    c(*variables)
    if sample.differentiable:
        c.gradients(variables)
    assert_close([v.detach() for v in variables], before, rtol=0, atol=0)


@each(WITH_VARIABLES)
def test_shared_memory_is_known(sample: Sample) -> None:
    """An output in the memory of an input is a view of it, also where dimensions have size 1."""
    c = case(sample)
    for cut in (slice(None), slice(1)):
        variables = [of_array(v[(cut,) * v.ndim].copy()) for v in c.values]
        try:
            with warnings.catch_warnings(action="ignore"):
                out = outputs(c(*variables))
        except (RuntimeError, ValueError, IndexError, AssertionError):
            continue  # not for these sizes
        for y in out:
            for x in variables:
                if y is not x and np.shares_memory(y.array, x.array):
                    assert y.storage() is x.storage()


# --- derivatives ----------------------------------------------------------------------------------


@each(DIFFERENTIABLE)
def test_first_derivatives(sample: Sample) -> None:
    """Both modes against differences, and against each other."""
    c = case(sample)
    gradcheck(c.floats, c.variables())


@each(DIFFERENTIABLE)
def test_second_derivatives(sample: Sample) -> None:
    """Both modes of the backward pass against differences, and every mix of modes along a line."""
    c = case(sample)
    if sample.vmap and any(v.size for v in c.values):
        check_backward_pass(c.floats, c.values)
    else:
        gradgradcheck(c.floats, c.variables())
    reverse_over_reverse, *others = second_derivatives(c)
    for other in others:
        assert_close(other, reverse_over_reverse, rtol=1e-7, atol=1e-9)


def second_derivatives(c: Case) -> Iterator[list[Tensor]]:
    """d/dx <g, J(x) t> in every mix of modes, in all of which it must be the same."""
    points = tuple(c.variables(requires_grad=False))
    t = tuple(of_array(weight(tuple(x.shape))) for x in points)
    g = tuple(of_array(weight(tuple(y.shape)) - 0.3) for y in c.floats(*points))

    def pulled(*xs: Tensor) -> Any:
        """J^T g, whose derivative along t is the answer."""
        return vjp(c.floats, *xs)[1](g)

    def pushed(*xs: Tensor) -> Any:
        """<g, J t>, whose gradient is the answer."""
        return inner(g, jvp(c.floats, xs, t)[1])

    everything = tuple(range(len(points)))
    yield list(grad(lambda *xs: inner(t, pulled(*xs)), everything)(*points))
    yield list(jvp(pulled, points, t)[1])
    over_forward = list(grad(pushed, everything)(*points))
    yield over_forward
    # Forward over forward is one number: the inner product of the others with t.
    along = jvp(lambda *xs: jvp(c.floats, xs, t)[1], points, t)[1]
    assert_close(inner(g, along), inner(t, over_forward), rtol=1e-7, atol=1e-9)


def inner(a: Any, b: Any) -> Tensor:
    total = of_array(np.zeros(()))
    for x, y in zip(a, b, strict=True):
        total = total + (x * y).sum()
    return total


# --- types and layouts ----------------------------------------------------------------------------


@each([s for s in WITH_VARIABLES if s.float32])
def test_float32_stays_float32(sample: Sample) -> None:
    c = case(sample)
    narrow = c.variables(np.float32, requires_grad=sample.differentiable)
    wide = c.variables(np.float64, requires_grad=sample.differentiable)
    results = outputs(c(*narrow))
    assert {y.dtype for y in results} <= {chainrule.float32}
    for a, b in zip(results, outputs(c(*wide)), strict=True):
        assert_close(a, b, rtol=1e-4, atol=1e-4)
    if sample.differentiable:
        gradients = c.gradients(narrow)
        assert {g.dtype for g in gradients} <= {chainrule.float32}
        assert_close(gradients, c.gradients(wide), rtol=1e-3, atol=1e-3)
        _, tangents = jvp(c.floats, tuple(narrow), tuple(chainrule.ones_like(x) for x in narrow))
        assert {t.dtype for t in tangents} <= {chainrule.float32}


def transposed(value: np.ndarray) -> np.ndarray:
    """The same numbers with the first dimension last in memory."""
    return np.array(value.T, order="C").T


def strided(value: np.ndarray) -> np.ndarray:
    """The same numbers with gaps between them, the last dimension in reverse."""
    if value.ndim == 0:
        return value
    memory = np.full((*value.shape[:-1], 2 * value.shape[-1]), np.nan)
    memory[..., ::2] = value[..., ::-1]
    return memory[..., ::2][..., ::-1]


@pytest.mark.parametrize("layout", [transposed, strided])
@each([s for s in WITH_VARIABLES if "view" not in s.name])  # which refuses to copy
def test_layout_of_memory_does_not_matter(sample: Sample, layout: Any) -> None:
    c = case(sample)
    dense = c.variables(requires_grad=sample.differentiable)
    sparse = [of_array(layout(v)).requires_grad_(sample.differentiable) for v in c.values]
    assert_close(c(*sparse), c(*dense), rtol=1e-11, atol=1e-13)
    if sample.differentiable:
        assert_close(c.gradients(sparse), c.gradients(dense), rtol=1e-10, atol=1e-12)


# --- vmap -----------------------------------------------------------------------------------------


def batch(sample: Sample, size: int = 3) -> tuple[Case, list[Case], list[np.ndarray]]:
    """A batch of cases that differ in the values of their variables alone, and those stacked."""
    first = case(sample)
    others = [case(sample, number) for number in range(1, size)]
    members = [first] + [Case(sample, substitute(first, dict(enumerate(c.values)))) for c in others]
    stacked = [np.stack(column) for column in zip(*(m.values for m in members), strict=True)]
    return first, members, stacked


def substitute(c: Case, new: dict[int, np.ndarray]) -> Any:
    """The arguments of a case with some of its variables replaced."""
    numbers = iter(range(len(c.values)))

    def replaced(a: np.ndarray) -> np.ndarray:
        return new.get(next(numbers), a) if a.dtype == np.float64 else a

    return map_arrays(replaced, c.args)


def flat(out: Any) -> tuple[Any, ...]:
    """The results as one tuple of tensors."""
    return (
        tuple(y for part in out for y in flat(part)) if isinstance(out, (list, tuple)) else (out,)
    )


def looped(members: list[Case]) -> list[np.ndarray]:
    results = [flat(m(*m.variables(requires_grad=False))) for m in members]
    return [np.stack([y.numpy() for y in column]) for column in zip(*results, strict=True)]


@each(MAPPED)
def test_vmap_is_a_loop(sample: Sample) -> None:
    first, members, stacked = batch(sample)
    mapped = vmap(lambda *xs: flat(first(*xs)))(*map(of_array, stacked))
    assert_close(list(mapped), looped(members), rtol=1e-9, atol=1e-12)


@each([s for s in MAPPED if len(case(s).values) > 1])
def test_vmap_over_one_of_several(sample: Sample) -> None:
    """The others are shared by the batch; and the batch is the last dimension, in and out."""
    first, members, stacked = batch(sample)
    for i, values in enumerate(stacked):
        args = first.variables(requires_grad=False)
        args[i] = of_array(np.moveaxis(values, 0, -1))
        dims = tuple(-1 if k == i else None for k in range(len(args)))
        mapped = vmap(lambda *xs: flat(first(*xs)), in_dims=dims, out_dims=-1)(*args)
        some = [Case(sample, substitute(first, {i: m.values[i]})) for m in members]
        expected = [np.moveaxis(y, 0, -1) for y in looped(some)]
        assert_close(list(mapped), expected, rtol=1e-9, atol=1e-12)


@each([s for s in ALL if s.vmap and len(case(s).values) < len(all_arrays(case(s).args))])
def test_vmap_over_every_array(sample: Sample) -> None:
    """Integers, booleans and indices too."""
    members = [case(sample, number) for number in range(3)]
    columns = zip(*(all_arrays(m.args) for m in members), strict=True)
    stacked = [of_array(np.stack(column)) for column in columns]

    def function(*tensors: Tensor) -> Any:
        given = iter(tensors)
        return flat(call(sample, map_arrays(lambda a: next(given), members[0].args)))

    assert_close(list(vmap(function)(*stacked)), looped(members), rtol=1e-9, atol=1e-12)


@each([s for s in MAPPED if s.differentiable])
def test_vmap_of_derivatives(sample: Sample) -> None:
    """vmap of grad, grad through vmap, and jvp of vmap."""
    first, members, stacked = batch(sample)

    def scalar(*xs: Tensor) -> Tensor:
        results = first.floats(*xs)
        return inner([of_array(weight(tuple(y.shape))) for y in results], results)

    everything = tuple(range(len(stacked)))
    points = tuple(map(of_array, stacked))
    columns = zip(*(m.gradients(m.variables()) for m in members), strict=True)
    expected = [np.stack([g.numpy() for g in column]) for column in columns]
    assert_close(list(vmap(grad(scalar, everything))(*points)), expected, rtol=1e-8, atol=1e-11)

    whole = grad(lambda *xs: vmap(scalar)(*xs).sum(), everything)(*points)
    assert_close(list(whole), expected, rtol=1e-8, atol=1e-11)

    t = [weight(x.shape) for x in stacked]
    slope = jvp(vmap(scalar), points, tuple(map(of_array, t)))[1]
    along = [(a * b).reshape(3, -1).sum(axis=1) for a, b in zip(expected, t, strict=True)]
    assert_close(slope, np.sum(along, axis=0), rtol=1e-8, atol=1e-11)


# --- elementwise: every shape ---------------------------------------------------------------------


def column_and_row(args: Any, first: int) -> Any:
    """Every other array as a column, the others as rows; each is cut down to three elements."""
    turns = iter(range(first, 1000))

    def cut(a: np.ndarray) -> np.ndarray:
        a = a.reshape(-1)[:3]
        return a[:, None] if next(turns) % 2 else a

    return map_arrays(cut, args)


def as_scalars(args: Any) -> Any:
    return map_arrays(lambda a: np.array(a.reshape(-1)[0]), args)


def as_empty(args: Any) -> Any:
    return map_arrays(lambda a: a.reshape(-1)[:0].reshape(0, 2), args)


def as_empty_and_one(args: Any) -> Any:
    turns = iter(range(1000))
    return map_arrays(lambda a: a.reshape(-1, 1)[: 1 if next(turns) else 0], args)


OF_ONE = {"no dimensions": as_scalars, "empty": as_empty}
OF_SEVERAL = OF_ONE | {
    "row and column": lambda args: column_and_row(args, 0),
    "column and row": lambda args: column_and_row(args, 1),
    "empty and one": as_empty_and_one,
}
SHAPES = [
    pytest.param(sample, change, id=f"{sample.label}-{name}")
    for sample in BY_FAMILY["elementwise"]
    for name, change in (OF_SEVERAL if len(all_arrays(case(sample).args)) > 1 else OF_ONE).items()
]


@pytest.mark.parametrize(("sample", "change"), SHAPES)
def test_elementwise_at_every_shape(sample: Sample, change: Any) -> None:
    c = Case(sample, change(case(sample).args))
    out = c(*c.variables(requires_grad=False))
    assert_close(out, np.asarray(c.reference()), **precision(out))
    if sample.differentiable:
        gradcheck(c.floats, c.variables())
        gradients = c.gradients(c.variables())
        assert [g.shape for g in gradients] == [v.shape for v in c.values]


# --- completeness ---------------------------------------------------------------------------------

# Public names without a record, and why.
NO_RECORD = {
    "broadcast_to_shape": "what broadcast_to calls",
    "canonical_dim": "counts dimensions",
    "canonical_dims": "counts dimensions",
    "conv_output_size": "counts elements",
    "conv_transpose_output_size": "counts elements",
    "empty_permuted": "holds no numbers",
    "empty_strided": "holds no numbers",
    "frombuffer": "takes memory",
    "get_device": "answers with an int",
    "is_complex": "answers with a bool",
    "is_conj": "answers with a bool",
    "is_inference": "answers with a bool",
    "is_neg": "answers with a bool",
    "is_same_size": "answers with a bool",
    "is_signed": "answers with a bool",
    "is_floating_point": "answers with a bool",
    "is_nonzero": "answers with a bool",
    "is_tensor": "answers with a bool",
    "numel": "answers with an int",
    "range": "makes tensors from numbers",
    "zeros_like_of": "a helper of derivative rules",
}
NO_RECORD_FAMILIES = {
    "patterns": "makes tensors from numbers",
    "from_data": "makes tensors from arrays",
    "sampling": "draws random numbers",
    "windows": "makes tensors from numbers",
    "typed": "makes tensors from sizes or values",
}
RANDOM_PRIMITIVES = {
    "pick_with_replacement",
    "pick_without_replacement",
    "random_binomial",
    "random_log_gamma",
    "random_poisson",
    "random_von_mises",
}


def public_functions() -> Iterator[tuple[str, Any]]:
    for family in (*families, linalg):
        name = family.__name__.rpartition(".")[2]
        if name in NO_RECORD_FAMILIES:
            continue
        for function in family.__all__:
            if function not in NO_RECORD:
                yield f"{name}.{function}", getattr(family, function)


def test_every_public_function_has_a_record() -> None:
    """Other names of one function count as that function."""
    sampled = {id(resolve(chainrule, s.name)) for s in ALL}
    missing = [name for name, function in public_functions() if id(function) not in sampled]
    assert not missing, f"public functions without a sample record: {missing}"


def test_every_primitive_is_exercised() -> None:
    """By the value of some sample, or by its derivatives."""
    seen: set[str] = set()

    def note(op: Any, inputs: Any, params: Any, result: Any) -> None:
        seen.add(op.name)

    with watching(note):
        for sample in ALL:
            run_with_derivatives(sample)
    missing = sorted(set(REGISTRY) - seen - RANDOM_PRIMITIVES)
    assert not missing, f"primitives that no sample reaches: {missing}"


def run_with_derivatives(sample: Sample) -> None:
    """The value and, in a graph of its own, the gradient."""
    c = case(sample)
    variables = c.variables(requires_grad=sample.differentiable)
    results = [y for y in outputs(c(*variables)) if y.requires_grad]
    if results:
        weights = [of_array(weight(tuple(y.shape), y.dtype.name)) for y in results]
        chainrule.autograd.grad(results, variables, weights, create_graph=True, allow_unused=True)


def test_labels_are_unique() -> None:
    names = [s.label for s in ALL]
    assert len(set(names)) == len(names), sorted({n for n in names if names.count(n) > 1})
