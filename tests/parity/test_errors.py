"""A wrong call raises what PyTorch raises, and says which operation and which shapes.

Each program takes the library; the message that is matched is ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")

Program = Callable[[Any], Any]


def ones(library: Any, *shape: int, dtype: str = "float32") -> Any:
    array = np.ones(shape, dtype=dtype)
    return chainrule.as_tensor(array) if library is chainrule else torch.from_numpy(array)


def leaf(library: Any, *shape: int) -> Any:
    return ones(library, *shape).requires_grad_()


def ints(library: Any, *shape: int) -> Any:
    return ones(library, *shape, dtype="int64")


def raised(library: Any, program: Program) -> BaseException:
    try:
        out = program(library)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        return e
    raise AssertionError(f"nothing was raised in {library.__name__}, the result is {out}")


def assert_same_error(program: Program, message: str) -> None:
    ours, theirs = raised(chainrule, program), raised(torch, program)
    # PyTorch's own subclasses of RuntimeError (linear algebra, no kernel) count as RuntimeError.
    expected = RuntimeError if isinstance(theirs, RuntimeError) else type(theirs)
    assert type(ours) is expected or (
        expected is RuntimeError and isinstance(ours, RuntimeError)
    ), f"{type(ours).__name__}: {ours}\nin PyTorch {type(theirs).__name__}: {theirs}"
    assert re.search(message, str(ours), re.DOTALL), f"{message!r} does not match {str(ours)!r}"


# --- shapes that do not fit -----------------------------------------------------------------------

BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "atan2",
    "hypot",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "copysign",
    "heaviside",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
]
BITWISE = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
]


@pytest.mark.parametrize("name", BINARY + BITWISE)
def test_two_operands_that_do_not_broadcast(name: str) -> None:
    dtype = "int64" if name in BITWISE else "float32"

    def program(t: Any) -> Any:
        return getattr(t, name)(ones(t, 2, 3, dtype=dtype), ones(t, 4, dtype=dtype))

    operation = "div" if name == "true_divide" else name
    assert_same_error(program, rf"^{operation}: .*3.*4.*\(2, 3\) and \(4,\)")


@pytest.mark.parametrize("name", BINARY)
def test_mixed_types_that_do_not_broadcast(name: str) -> None:
    if name in ("heaviside", "hypot", "logaddexp", "logaddexp2"):
        return  # one of the libraries refuses the types first

    def program(t: Any) -> Any:
        return getattr(t, name)(ones(t, 2, 3), ones(t, 4, dtype="float64"))

    assert_same_error(program, r"\(2, 3\) and \(4,\)")


OPERATORS: dict[str, Program] = {
    "add": lambda t: ones(t, 2, 3) + ones(t, 2),
    "sub": lambda t: ones(t, 2, 3) - ones(t, 2),
    "mul": lambda t: ones(t, 2, 3) * ones(t, 2),
    "div": lambda t: ones(t, 2, 3) / ones(t, 2),
    "pow": lambda t: ones(t, 2, 3) ** ones(t, 2),
    "eq": lambda t: ones(t, 2, 3) == ones(t, 2),
    "lt": lambda t: ones(t, 2, 3) < ones(t, 2),
    "where": lambda t: t.where(ones(t, 2, 3) > 0, ones(t, 2), ones(t, 2, 3)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_do_not_broadcast(name: str) -> None:
    assert_same_error(OPERATORS[name], rf"^{name}: .*\(2, 3\).*\(2,\)")


SHAPES: list[tuple[str, Program, str]] = [
    ("matmul", lambda t: ones(t, 2, 3) @ ones(t, 4, 5), r"matmul: .*\(2, 3\).*\(4, 5\)"),
    ("matmul vectors", lambda t: t.matmul(ones(t, 3), ones(t, 4)), r"\(3,\).*\(4,\)"),
    ("matmul vector", lambda t: t.matmul(ones(t, 2, 3), ones(t, 4)), r"\(2, 3\).*\(4,\)"),
    ("matmul batch", lambda t: ones(t, 2, 2, 3) @ ones(t, 3, 3, 2), r"\(2, 2, 3\).*\(3, 3, 2\)"),
    ("matmul scalar", lambda t: t.matmul(ones(t), ones(t, 2)), r"matmul: .*0-D"),
    ("mm", lambda t: t.mm(ones(t, 2, 3), ones(t, 2, 3)), r"mm: .*\(2, 3\).*\(2, 3\)"),
    ("bmm", lambda t: t.bmm(ones(t, 2, 3), ones(t, 2, 3)), r"bmm: .*3"),
    ("mv", lambda t: t.mv(ones(t, 2, 3), ones(t, 2)), r"mv: .*\(2, 3\).*\(2,\)"),
    ("dot", lambda t: t.dot(ones(t, 2), ones(t, 3)), r"dot: .*2.*3"),
    ("addmm", lambda t: t.addmm(ones(t, 5), ones(t, 2, 3), ones(t, 4, 5)), r"\(2, 3\).*\(4, 5\)"),
    ("cat", lambda t: t.cat([ones(t, 2, 3), ones(t, 2, 4)]), r"cat: .*\(2, 3\) and \(2, 4\)"),
    ("cat dims", lambda t: t.cat([ones(t, 2, 3), ones(t, 3)]), r"cat: .*\(2, 3\) and \(3,\)"),
    ("cat nothing", lambda t: t.cat([]), r"cat: .*non-empty"),
    ("cat scalars", lambda t: t.cat([ones(t), ones(t)]), r"cat: zero-dimensional"),
    ("cat dim", lambda t: t.cat([ones(t, 2), ones(t, 2)], 1), r"cat: .*\[-1, 0\].* 1"),
    ("stack", lambda t: t.stack([ones(t, 2), ones(t, 3)]), r"stack: .*\(2,\).*\(3,\)"),
    ("stack nothing", lambda t: t.stack([]), r"stack: .*non-empty"),
    ("reshape", lambda t: ones(t, 2, 3).reshape(4, 2), r"reshape: .*\(4, 2\).*6.*\(2, 3\)"),
    ("reshape -1", lambda t: ones(t, 2, 3).reshape(4, -1), r"reshape: .*\(4, -1\).*6"),
    ("reshape two -1", lambda t: ones(t, 2, 3).reshape(-1, -1), r"reshape: only one"),
    ("reshape -2", lambda t: ones(t, 2, 3).reshape(-2, 3), r"reshape: .*-2"),
    ("reshape ambiguous", lambda t: ones(t, 0, 3).reshape(-1, 0), r"reshape: .*\(0, 3\)"),
    ("view", lambda t: ones(t, 2, 3).t().view(6), r"view: .*\(3, 2\)"),
    ("view size", lambda t: ones(t, 2, 3).view(4), r"\(2, 3\)"),
    ("expand", lambda t: ones(t, 2, 3).expand(4, 3), r"expand: .*4.*2.*\(4, 3\).*\(2, 3\)"),
    ("expand fewer", lambda t: ones(t, 2, 3).expand(3), r"expand: .*1.*2"),
    ("expand -1", lambda t: ones(t, 3).expand(-1, 3), r"expand: -1"),
    ("permute", lambda t: ones(t, 2, 3).permute(0), r"permute: .*\(2, 3\).*\(0,\)"),
    ("permute twice", lambda t: ones(t, 2, 3).permute(0, 0), r"permute: .*\(0, 0\)"),
    ("permute range", lambda t: ones(t, 2, 3).permute(0, 2), r"permute: .*range.* 2"),
    ("transpose", lambda t: ones(t, 2, 3).transpose(0, 2), r"transpose: .*\[-2, 1\].* 2"),
    ("squeeze", lambda t: ones(t, 2, 3).squeeze(2), r"squeeze: .*\[-2, 1\].* 2"),
    ("unsqueeze", lambda t: ones(t, 2, 3).unsqueeze(3), r"unsqueeze: .*\[-3, 2\].* 3"),
    ("flatten", lambda t: ones(t, 2, 3).flatten(1, 0), r"flatten: start_dim"),
    ("movedim", lambda t: ones(t, 2, 3).movedim((0, 1), (0,)), r"movedim: "),
    ("sum", lambda t: ones(t, 2, 3).sum(dim=2), r"sum: .*\[-2, 1\].* 2"),
    ("sum twice", lambda t: ones(t, 2, 3).sum(dim=(0, 0)), r"sum: .*\(0, 0\)"),
    ("max of nothing", lambda t: ones(t, 0).max(), r"max: "),
    ("index", lambda t: ones(t, 2, 3)[2], r"index.* 2 .*0.* 2"),
    ("index list", lambda t: ones(t, 2, 3)[[0, 2]], r"index.* 2 .*2"),
    ("index dims", lambda t: ones(t, 2, 3)[0, 0, 0], r"too many indices|\(2, 3\)"),
    ("index mask", lambda t: ones(t, 2, 3)[ones(t, 3) > 0], r"\(3,\).*\(2, 3\)"),
    ("index type", lambda t: ones(t, 2, 3)[ones(t, 1)], r"float"),
    ("index together", lambda t: ones(t, 4, 4)[[0, 1], [0, 1, 2]], r"\[2\], \[3\]"),
    ("gather", lambda t: t.gather(ones(t, 2, 3), 0, ints(t, 2) * 0), r"gather: "),
    ("gather range", lambda t: t.gather(ones(t, 2), 0, ints(t, 2) * 5), r"gather: .*5"),
    ("select", lambda t: ones(t, 2, 3).select(0, 2), r"select: .* 2"),
    ("narrow", lambda t: ones(t, 2, 3).narrow(0, 1, 2), r"narrow: "),
    ("split", lambda t: t.split(ones(t, 5), [2, 2]), r"split: .*5"),
    ("item", lambda t: ones(t, 2, 3).item(), r"item: .*6.*\(2, 3\)"),
    ("bool", lambda t: bool(ones(t, 2)), r"bool: .*ambiguous.*\(2,\)"),
    ("bool of nothing", lambda t: bool(ones(t, 0)), r"bool: .*ambiguous"),
    ("len", lambda t: len(ones(t)), r"len\(\) of a 0-d tensor"),
    ("size", lambda t: ones(t, 2, 3).size(2), r"size: .*2.*\(2, 3\)"),
    ("broadcast_shapes", lambda t: t.broadcast_shapes((2, 3), (4,)), r"\(2, 3\) and \(4,\)"),
]


@pytest.mark.parametrize(
    ("program", "message"), [p[1:] for p in SHAPES], ids=[p[0] for p in SHAPES]
)
def test_shapes(program: Program, message: str) -> None:
    assert_same_error(program, message)


# --- types that do not fit ------------------------------------------------------------------------

TYPES: list[tuple[str, Program, str]] = [
    ("add a string", lambda t: t.add(ones(t, 2), "a"), r"add\(\).*str"),
    ("operator and a string", lambda t: ones(t, 2) + "a", r"str"),
    ("operator and None", lambda t: ones(t, 2) * None, r"NoneType"),
    ("sin of a number", lambda t: t.sin(1.0), r"sin\(\).*Tensor.*float"),
    ("sin of a list", lambda t: t.sin([1.0]), r"sin\(\).*Tensor.*list"),
    ("bitwise and of floats", lambda t: ones(t, 2) & ones(t, 2), r"bitwise_and: .*float32"),
    ("not of floats", lambda t: t.bitwise_not(ones(t, 2)), r"bitwise_not: .*float32"),
    ("less than complex", lambda t: ones(t, 2, dtype="complex64") < 1, r"lt: .*complex64"),
    ("floor of complex", lambda t: t.floor(ones(t, 2, dtype="complex64")), r"floor: .*complex64"),
    ("minus a bool", lambda t: ones(t, 2) - (ones(t, 2) > 0), r"sub: .*bool"),
    ("minus True", lambda t: ones(t, 2) - True, r"sub: .*bool"),
    ("negative bool", lambda t: -(ones(t, 2) > 0), r"neg: .*bool"),
    ("plus bool", lambda t: +(ones(t, 2) > 0), r"positive: .*bool"),
    ("condition of floats", lambda t: t.where(ones(t, 2), 1.0, 2.0), r"where: .*boolean.*float32"),
    (
        "matmul of two types",
        lambda t: ones(t, 2, 2) @ ones(t, 2, 2, dtype="float64"),
        r"matmul: .*float32.*float64",
    ),
    ("rounding mode", lambda t: t.div(ones(t, 2), 2, rounding_mode="up"), r"div: .*'up'"),
    ("imag of real", lambda t: t.imag(ones(t, 2)), r"imag: .*float32"),
    ("clamp without limits", lambda t: t.clamp(ones(t, 2)), r"clamp: .*'min' or 'max'"),
    ("addcdiv of integers", lambda t: t.addcdiv(ints(t, 2), ints(t, 2), ints(t, 2)), r"addcdiv: "),
    (
        "isclose of two types",
        lambda t: t.isclose(ones(t, 2), ints(t, 2)),
        r"isclose: .*float32.*int64",
    ),
    ("negative polygamma", lambda t: t.polygamma(-1, ones(t, 2)), r"polygamma: .*-1"),
    ("mean of integers", lambda t: ints(t, 2).mean(), r"mean: .*int64"),
    ("fraction of an index", lambda t: ones(t, 2)[0.5], r"float"),
    ("string as an index", lambda t: ones(t, 2)["a"], r"str"),
    ("float as a dimension", lambda t: ones(t, 2).sum(dim=0.5), r"sum\(\).*float"),
    ("index from floats", lambda t: [1, 2][ones(t)], r"index: .*float32"),
    ("in place to integers", lambda t: ints(t, 2).add_(0.5), r"add_: .*float32.*int64"),
    ("default type", lambda t: t.set_default_dtype(t.int64), r"set_default_dtype: .*int64"),
]


@pytest.mark.parametrize(("program", "message"), [p[1:] for p in TYPES], ids=[p[0] for p in TYPES])
def test_types(program: Program, message: str) -> None:
    assert_same_error(program, message)


# --- the graph ------------------------------------------------------------------------------------


def backward_twice(t: Any) -> None:
    y = (leaf(t, 2) * leaf(t, 2)).sum()
    y.backward()
    y.backward()


def modified_input(t: Any) -> None:
    x, w = leaf(t, 2), leaf(t, 2)
    y = x * 1
    z = y * w
    y.add_(1)
    z.sum().backward()


def modified_output(t: Any) -> None:
    y = leaf(t, 2).exp()
    y.add_(1)
    y.sum().backward()


def assign_wrong_grad(t: Any) -> None:
    leaf(t, 2).grad = ones(t, 3)


def assign_no_tensor_as_grad(t: Any) -> None:
    leaf(t, 2).grad = 1.0


def unused(t: Any) -> Any:
    x, w = leaf(t, 2), leaf(t, 2)
    return t.autograd.grad((x * 2).sum(), w)


def deepcopy_with_history(t: Any) -> Any:
    import copy

    return copy.deepcopy(leaf(t, 2) * 2)


def write_to_expanded(t: Any) -> Any:
    return ones(t, 1, 3).expand(2, 3).add_(1)


def write_to_leaf(t: Any) -> Any:
    return leaf(t, 2).add_(1)


def write_to_view_of_leaf(t: Any) -> Any:
    return leaf(t, 2).view(2, 1).mul_(2)


def write_another_shape(t: Any) -> Any:
    return ones(t, 3).add_(ones(t, 2, 3))


def setitem_wrong_shape(t: Any) -> Any:
    x = ones(t, 2, 3)
    x[0] = ones(t, 4)


def switch_off_inside(t: Any) -> Any:
    (leaf(t, 2) * 2).requires_grad = False


def detach_view(t: Any) -> Any:
    return ones(t, 2).view(2, 1).detach_()


GRAPH: list[tuple[Program, str]] = [
    (backward_twice, r"backward: .*second time.*retain_graph=True"),
    (lambda t: (leaf(t, 2, 3) * 2).backward(), r"backward: .*scalar outputs.*\(2, 3\)"),
    (lambda t: ones(t, 2).sum().backward(), r"backward: .*does not require grad"),
    (lambda t: leaf(t, 2).sum().backward(ones(t, 2)), r"backward: .*\(2,\).*\(\)"),
    (lambda t: ints(t, 2).requires_grad_(), r"requires_grad_: .*floating point.*int64"),
    (lambda t: t.tensor([1, 2], requires_grad=True), r"floating point"),
    (modified_input, r"modified by an inplace operation: .*MulBackward"),
    (modified_output, r"modified by an inplace operation: .*ExpBackward"),
    (write_to_expanded, r"add_: .*single memory location.*clone"),
    (write_to_leaf, r"add_: a leaf Variable that requires grad.*no_grad"),
    (write_to_view_of_leaf, r"mul_: a view of a leaf Variable"),
    (write_another_shape, r"add_: .*\(3,\).*\(2, 3\)"),
    (setitem_wrong_shape, r"\(4,\).*\(3,\)"),
    (assign_wrong_grad, r"grad: .*\(3,\).*\(2,\)"),
    (assign_no_tensor_as_grad, r"grad: .*float"),
    (unused, r"grad: .*not have been used.*allow_unused"),
    (lambda t: t.autograd.grad(ones(t, 1).sum(), ones(t, 1)), r"grad: .*does not require grad"),
    (lambda t: leaf(t, 2).numpy(), r"numpy: .*detach"),
    (deepcopy_with_history, r"deepcopy: .*graph leaves.*detach"),
    (switch_off_inside, r"requires_grad.*leaf.*detach"),
    (detach_view, r"detach_: .*view"),
    (lambda t: ones(t, 2).register_hook(print), r"register_hook: .*require"),
    (lambda t: ones(t, 2).retain_grad(), r"retain_grad: .*requires_grad=False"),
    (lambda t: t.zeros(2, device="nowhere"), r"device: 'nowhere' is not available"),
    (lambda t: t.device("nowhere"), r"^device: 'nowhere'"),
    (lambda t: t.tensor([[1.0], [1.0, 2.0]]), r"tensor"),
    (lambda t: t.tensor(["a"]), r"tensor"),
    (lambda t: t.zeros(-1), r"zeros: .*-1"),
]


@pytest.mark.parametrize(("program", "message"), GRAPH, ids=[m for _, m in GRAPH])
def test_graph(program: Program, message: str) -> None:
    assert_same_error(program, message)
