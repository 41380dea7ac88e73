"""One record of PyTorch's operator database in both libraries, aspect by aspect.

Each aspect is a generator of disagreements, one line each; a call that PyTorch itself refuses is
not compared. Numbers are drawn by PyTorch for its own record, so each run sees the same inputs.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special
import torch
from parity.database.difference import RTOL, difference, not_near
from parity.database.sides import Call, Refused, Side, tensors_in
from parity.database.translate import (
    Missing,
    function,
    method,
    of_chainrule,
    sharing,
    to_array,
    to_torch,
)
from torch.testing._internal.common_device_type import precisionOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import chainrule

__all__ = ["ASPECTS", "OPERATORS", "applies", "label"]

Function = Callable[..., Any]

LARGEST = 100_000  # elements; the records hold the same values again in millions


def label(op: OpInfo) -> str:
    """The name of a record, with that of its variant."""
    return op.name + (f"-{op.variant_test_name}" if op.variant_test_name else "")


OPERATORS: dict[str, OpInfo] = {label(op): op for op in op_db}


# Where the dimension stands among the arguments after the input.
TIES = {"argsort": 0, "kthvalue": 1, "median": 0, "mode": 0, "nanmedian": 0, "sort": 0, "topk": 1}


def pointed_at(op: OpInfo, call: Call, side: Side) -> Any:
    """A result whose indices are replaced by what they point at: of equals any may be named."""
    at, args, kwargs = TIES[op.name], call.sample.args, call.sample.kwargs
    tensors = tensors_in(side.result, side.library.Tensor)
    index, x = tensors[-1], side.first
    if kwargs.get("stable") or (len(tensors) < 2 and op.name != "argsort") or not x.ndim:
        return side.result
    dim = kwargs.get("dim", args[at] if len(args) > at else -1)
    if index.ndim < x.ndim:
        index = index.unsqueeze(dim)
    return [*tensors[:-1], side.library.gather(x, dim, index)]


def is_random(op: OpInfo) -> bool:
    """Whether the values of an operator depend on a seed or on nothing (``empty``)."""
    names = getattr(getattr(op.op, "__code__", None), "co_names", ())
    return "wrapper_set_seed" in names or op.name in RANDOM


RANDOM = {
    *("bernoulli", "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided"),
    *("empty_permuted", "normal", "rand_like", "randn_like", "randint_like", "randint", "randn"),
    *("cauchy", "exponential", "geometric", "log_normal", "uniform", "multinomial", "rand"),
    *("nn.functional.dropout", "nn.functional.rrelu", "resize_", "resize_as_", "svd_lowrank"),
    *("pca_lowrank", "native_dropout_backward"),
}


def _each(calls: Iterator[Call], compare: Callable[[Call], str]) -> Iterator[str]:
    for n, call in enumerate(calls):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = compare(call)
        except (Refused, Missing):
            continue
        except Exception as error:  # noqa: BLE001
            if "chainrule' has no attribute" in str(error) or "'Tensor' has no attr" in str(error):
                continue  # a name that is absent inside a function of the record
            found = f"{type(error).__name__}: {error}"
        if found:
            yield f"[{n}] {_shown(call.sample)}: {found}"


def _shown(sample: SampleInput) -> str:
    def short(v: Any) -> Any:
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return [short(u) for u in v]
        return v

    parts = [str(short(v)) for v in (sample.input, *sample.args)]
    return ", ".join(parts + [f"{k}={short(v)}" for k, v in sample.kwargs.items()])


def _calls(
    op: OpInfo, dtype: str, requires_grad: bool, reference: bool = False, limit: int = 10_000
) -> Iterator[Call]:
    make = op.reference_inputs if reference else op.sample_inputs
    ours = function(op.op, op.name)
    kind = getattr(torch, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(itertools.islice(make("cpu", kind, requires_grad=requires_grad), limit))
    for sample in samples:
        if isinstance(sample.input, torch.Tensor):
            if sample.input.numel() > LARGEST:
                continue
        elif op.name.startswith("__"):  # a method of Tensor called on a number
            continue
        yield Call(op, sample, op.op, ours)


def values(op: OpInfo, dtype: str) -> Iterator[str]:
    """The result: its kind, shape, dtype and, unless it is drawn, numbers.

    Where the libraries differ, the reference of the record (NumPy's or SciPy's function) decides.
    """
    drawn = is_random(op)

    def compare(call: Call) -> str:
        theirs, ours = call.both(process=True)
        ours_, theirs_ = ours.result, theirs.result
        if op.name in TIES:
            ours_, theirs_ = pointed_at(op, call, ours), pointed_at(op, call, theirs)
        found = difference(ours_, theirs_, call.elementwise, not drawn, precision(op, dtype))
        return "" if found and _as_reference(op, call, ours.result, theirs.result) else found

    # The reference inputs are many: in float32 and bool, the samples have to do. PyTorch takes
    # minutes over polynomials of the huge degrees in them.
    many = dtype in {"float64", "int64", "complex128"} and "_polynomial_" not in op.name
    yield from _each(_calls(op, dtype, False, reference=many), compare)


def precision(op: OpInfo, dtype: str) -> float:
    """The absolute tolerance that the record itself states for its own reference."""
    for decorator in op.decorators:
        if isinstance(decorator, precisionOverride):
            kind = torch.float32 if dtype in {"int64", "bool"} else getattr(torch, dtype)
            return float(decorator.d.get(kind, 0.0))
    return 0.0


# For records that name none, or one that is no better than PyTorch.
REFERENCES = {
    "igamma": scipy.special.gammainc,
    "igammac": scipy.special.gammaincc,
    "special.zeta": scipy.special.zeta,
    "special.airy_ai": lambda x: np.where(x == np.inf, 0, scipy.special.airy(np.float64(x))[0]),
    "special.hermite_polynomial_he": lambda x, n: scipy.special.eval_hermitenorm(
        n.astype(int), np.float64(x)
    ),
    "__rpow__": lambda x, y: np.power(y, x),
}


def _as_reference(op: OpInfo, call: Call, ours: Any, theirs: Any) -> bool:
    """Whether each number is PyTorch's, or that of the record's reference."""
    reference = REFERENCES.get(op.name, op.ref)
    if reference is None or not isinstance(ours, chainrule.Tensor):
        return False
    sample = call.sample.numpy()
    try:
        expected = np.asarray(reference(sample.input, *sample.args, **sample.kwargs))
    except Exception:  # noqa: BLE001 - it does not take these arguments
        return False
    x, y = ours.array, to_array(theirs)
    if expected.shape != x.shape or y.shape != x.shape or x.dtype != y.dtype:
        return False
    with np.errstate(all="ignore"):
        told = expected.astype(x.dtype)
    atol = precision(op, str(ours.dtype).rpartition(".")[2])
    return not np.any(not_near(x, told, call.elementwise) & not_near(x, y, call.elementwise, atol))


def _weights(outputs: list[Any], seed: int) -> list[np.ndarray]:
    r = np.random.default_rng(seed)
    drawn = []
    for y in outputs:
        w = r.normal(size=tuple(y.shape))
        kind = str(y.dtype).rpartition(".")[2]
        drawn.append((w + 1j * r.normal(size=w.shape) if "complex" in kind else w).astype(kind))
    return drawn


def _slopes(side: Side, outputs: list[Any], seed: int, create_graph: bool) -> list[Any]:
    cotangents = [side.constant(w) for w in _weights(outputs, seed)]
    return list(
        side.library.autograd.grad(
            outputs,
            side.variables,
            cotangents,
            create_graph=create_graph,
            materialize_grads=True,
        )
    )


def _or_as_checked(compare: Callable[[Call], str]) -> Callable[[Call], str]:
    """Of a matrix with a part that is not read (or that must fit the other), libraries may give
    that part different derivatives: then the comparison of the record's own checks decides."""

    def compare_both(call: Call) -> str:
        found = compare(call)
        checked = call.as_checked() if found else None
        return found if checked is None else compare(checked)

    return compare_both


def gradients(op: OpInfo, dtype: str) -> Iterator[str]:
    """The gradient of a weighted sum of the results by every variable."""

    def compare(call: Call) -> str:
        theirs, ours = call.both(requires_grad=True, process=True)
        y = theirs.outputs()
        if not y or not theirs.variables:
            return ""
        try:
            expected = _slopes(theirs, y, 1, False)
        except RuntimeError as error:
            raise Refused(error) from error
        if len(ours.outputs()) != len(y):
            return f"{len(ours.outputs())} differentiable results for {len(y)}"
        got = _slopes(ours, ours.outputs(), 1, False)
        found = difference(got, expected, call.elementwise)
        return "" if found and _numerical(call, got, expected) else found

    yield from _each(_calls(op, dtype, True), _or_as_checked(compare))


def _numerical(call: Call, ours: list[Any], theirs: list[Any]) -> bool:
    """Whether ours, and not theirs, is the derivative of PyTorch's function by differences."""
    directions = _weights(theirs, 3)

    def along(step: float) -> float:
        moved = iter(directions)

        def move(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value + step * to_torch(next(moved)) if value.requires_grad else value
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(move(v) for v in value)
            return value

        args, kwargs = call.torch_inputs(True)
        args, kwargs = move(args), {k: move(v) for k, v in kwargs.items()}
        side = Side(torch, call.theirs, args, kwargs, call.process)
        y = side.outputs()
        return sum(
            float((w.conj() * to_array(t)).sum().real)
            for w, t in zip(_weights(y, 1), y, strict=True)
        )

    slope = (along(1e-6) - along(-1e-6)) / 2e-6
    ours_, theirs_ = (
        sum(float((g.conj() * d).sum().real) for g, d in zip(arrays, directions, strict=True))
        for arrays in ([g.array for g in ours], [to_array(g) for g in theirs])
    )
    tolerance = 1e-5 * (1 + abs(slope))
    return abs(ours_ - slope) < tolerance < abs(theirs_ - slope)


def second_order(op: OpInfo, dtype: str) -> Iterator[str]:
    """The gradient of a weighted sum of those gradients."""

    def both_orders(side: Side) -> list[Any]:
        slopes = _slopes(side, side.outputs(), 1, True)
        if not any(s.requires_grad for s in slopes):
            return [0 * v.detach() for v in side.variables]
        # A slope without history still has its weight drawn, so that both sides draw alike.
        cotangents = [side.constant(w) for w in _weights(slopes, 2)]
        with_history = [(s, c) for s, c in zip(slopes, cotangents, strict=True) if s.requires_grad]
        return list(
            side.library.autograd.grad(
                [s for s, _ in with_history],
                side.variables,
                [c for _, c in with_history],
                materialize_grads=True,
            )
        )

    def compare(call: Call) -> str:
        theirs, ours = call.both(requires_grad=True, process=True)
        if not theirs.outputs() or not theirs.variables:
            return ""
        try:
            expected = both_orders(theirs)
        except RuntimeError as error:
            raise Refused(error) from error
        return difference(both_orders(ours), expected, call.elementwise)

    yield from _each(_calls(op, dtype, True), _or_as_checked(compare))


def forward_mode(op: OpInfo, dtype: str) -> Iterator[str]:
    """The derivative along a direction; where PyTorch has none, from its reverse mode."""

    def compare(call: Call) -> str:
        theirs, _ = call.both(requires_grad=True, process=True)
        y = theirs.outputs()
        if not y or not theirs.variables:
            return ""
        directions = _weights(theirs.variables, 3)
        differentiable = [t.requires_grad for t in tensors_in(theirs.result, torch.Tensor)]
        if op.supports_forward_ad:
            try:
                expected = _tangents(torch, *call.torch_inputs(True), call, directions)
            except RuntimeError as error:
                raise Refused(error) from error
        args, kwargs = of_chainrule(call.torch_inputs(True), True)
        tangents = _tangents(chainrule, args, kwargs, call, directions)
        if op.supports_forward_ad:
            kept = [
                (_or_zero(chainrule, t, e), _or_zero(torch, e, e))
                for t, e, d in zip(tangents, expected, differentiable, strict=True)
                if d
            ]
            return difference([t for t, _ in kept], [e for _, e in kept], call.elementwise)
        return _adjoint(theirs, [t for t, d in zip(tangents, differentiable, strict=True) if d])

    yield from _each(_calls(op, dtype, True), _or_as_checked(compare))


def _or_zero(library: Any, tangent: Any, like: Any) -> Any:
    """A tangent that is None is zero."""
    if tangent is not None:
        return tangent
    return (
        library.zeros(())
        if like is None
        else library.zeros(
            tuple(like.shape), dtype=getattr(library, str(like.dtype).rpartition(".")[2])
        )
    )


def _adjoint(theirs: Side, tangents: list[Any]) -> str:
    """Whether <w, J d> is PyTorch's <J' w, d>."""
    y = theirs.outputs()
    try:
        slopes = [to_array(s) for s in _slopes(theirs, y, 1, False)]
    except RuntimeError as error:
        raise Refused(error) from error
    directions, weights = _weights(theirs.variables, 3), _weights(y, 1)
    expected = sum(
        float((s.conj() * d).sum().real) for s, d in zip(slopes, directions, strict=True)
    )
    got = sum(
        float((w.conj() * t.array).sum().real) if t is not None else 0.0
        for w, t in zip(weights, tangents, strict=True)
    )
    rtol = max(RTOL.get(str(t.dtype).removeprefix("torch."), 1e-2) for t in y)
    near = abs(got - expected) <= rtol * (sum(float(np.abs(s).sum()) for s in slopes) + 1e-3)
    return "" if near or not np.isfinite(expected) else f"{got} for {expected}"


def _tangents(
    library: Any, args: list[Any], kwargs: dict[str, Any], call: Call, directions: list[np.ndarray]
) -> list[Any]:
    """The derivatives of all results along the directions, one for each variable."""
    variables = [v for v in tensors_in((args, kwargs), library.Tensor) if v.requires_grad]
    forward = library.autograd.forward_ad
    f, process = (call.theirs, call.process) if library is torch else (call.ours, call.our_process)
    make = to_torch if library is torch else chainrule.as_tensor
    with forward.dual_level():
        duals = {
            id(v): forward.make_dual(v, make(np.asarray(d)))
            for v, d in zip(variables, directions, strict=True)
        }

        def dual(value: Any) -> Any:
            if isinstance(value, library.Tensor):
                return duals.get(id(value), value)
            if isinstance(value, (list, tuple)) and not isinstance(value, library.Size):
                return type(value)(dual(v) for v in value)
            return value

        result = process(f(*map(dual, args), **{k: dual(v) for k, v in kwargs.items()}))
        return [forward.unpack_dual(y).tangent for y in tensors_in(result, library.Tensor)]


def methods(op: OpInfo, dtype: str) -> Iterator[str]:
    """The method of Tensor gives what the function gives."""
    theirs = op.method_variant
    yield from _variant(op, dtype, theirs, method(theirs.__name__))


def _variant(op: OpInfo, dtype: str, theirs: Function, ours: Function) -> Iterator[str]:
    drawn = is_random(op)

    def compare(call: Call) -> str:
        first, second = Call(op, call.sample, theirs, ours).both(process=True)
        a, b = second.result, first.result
        if op.name in TIES:
            a, b = pointed_at(op, call, second), pointed_at(op, call, first)
        return difference(a, b, call.elementwise, not drawn, precision(op, dtype))

    yield from _each(_calls(op, dtype, False), compare)


def in_place(op: OpInfo, dtype: str) -> Iterator[str]:
    """The method with an underscore: its result, that it is its argument, and its gradient."""
    theirs = op.inplace_variant
    ours = function(theirs, op.name)
    yield from _variant(op, dtype, theirs, ours)
    if dtype in {"float64", "complex128"} and op.supports_autograd:
        yield from _each(_calls(op, dtype, True), lambda call: _in_place(op, call, theirs, ours))


def _in_place(op: OpInfo, call: Call, theirs: Function, ours: Function) -> str:
    """The change is made to a clone, so that the gradient of what was there can be asked for."""

    def on_clone(f: Function) -> Function:
        def changed(x: Any, *args: Any, **kwargs: Any) -> Any:
            y = x.clone()
            z = f(y, *args, **kwargs)
            if z is not y:
                raise AssertionError("a change in place must return its argument")
            return z

        return changed

    first, second = Call(op, call.sample, on_clone(theirs), on_clone(ours)).both(True)
    y = first.outputs()
    if is_random(op) or not y or not first.variables:
        return ""
    try:
        expected = _slopes(first, y, 1, False)
    except RuntimeError as error:
        raise Refused(error) from error
    return difference(_slopes(second, second.outputs(), 1, False), expected, call.elementwise)


def errors(op: OpInfo, dtype: str) -> Iterator[str]:
    """What PyTorch refuses is refused with an exception that the same `except` catches."""
    ours = function(op.op, op.name)
    for n, case in enumerate(op.error_inputs("cpu")):
        sample = case.sample_input
        found = ""
        if op.name.startswith("__") and not isinstance(sample.input, torch.Tensor):
            continue  # a method of Tensor called on a number: Python's own error in PyTorch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                args, kwargs = sharing(([sample.input, *sample.args], sample.kwargs))
                ours(*args, **kwargs)
            found = f"accepted; PyTorch: {case.error_type.__name__} {case.error_regex}"
        except Missing:
            continue
        except case.error_type:
            continue
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}; PyTorch: {case.error_type.__name__}"
        yield f"[{n}] {_shown(sample)}: {found}"


ASPECTS: dict[str, Callable[[OpInfo, str], Iterator[str]]] = {
    "values": values,
    "gradients": gradients,
    "second_order": second_order,
    "forward_mode": forward_mode,
    "methods": methods,
    "in_place": in_place,
    "errors": errors,
}


def applies(op: OpInfo, aspect: str) -> bool:
    """Whether there is anything to compare: the name exists here, and PyTorch has that of it."""
    if aspect in {"gradients", "second_order", "forward_mode"}:
        known = op.supports_autograd and not is_random(op)
        return _exists(op) and known and (aspect != "second_order" or op.supports_gradgrad)
    if aspect == "methods":
        theirs = op.method_variant
        known = theirs is not None and theirs is not op.op
        return known and _exists(op) and hasattr(chainrule.Tensor, theirs.__name__)
    if aspect == "in_place":
        return op.inplace_variant is not None and _exists(op, op.inplace_variant)
    return _exists(op) and (aspect != "errors" or op.error_inputs_func is not None)


# Written in PyTorch's inner operators, torch.ops.aten.
INTERNAL = {"max_pool2d_with_indices_backward"}


def _exists(op: OpInfo, theirs: Function | None = None) -> bool:
    if op.name in INTERNAL:
        return False
    try:
        function(theirs or op.op, op.name)
    except Missing:
        return False
    return True
