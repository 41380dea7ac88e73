"""What tests share: a comparison that asserts, and the way from a record to tensors."""

from __future__ import annotations

import functools
import inspect
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from samples.record import Sample

import chainrule

__all__ = [
    "Case",
    "all_arrays",
    "assert_close",
    "call",
    "case",
    "complex_values",
    "map_arrays",
    "outputs",
    "parts",
    "resolve",
    "to_array",
    "torch_call",
    "torch_dtype",
    "weight",
]


# --- comparing ------------------------------------------------------------------------------------


def to_array(x: Any) -> np.ndarray:
    """A tensor of either library, an array or a number, as an array."""
    return np.asarray(x.numpy(force=True) if hasattr(x, "detach") else x)


def assert_close(actual: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """Asserts that shape, kind of dtype and values agree (a NaN equals a NaN).

    The tolerance of an element is ``atol + rtol * |expected|``; lists and tuples are compared
    entry by entry.
    """
    __tracebackhide__ = True
    if isinstance(expected, (list, tuple)) or isinstance(actual, (list, tuple)):
        assert isinstance(actual, Sequence), f"expected several results, got {type(actual)}"
        assert isinstance(expected, Sequence), f"expected one result, got {type(actual)}"
        assert len(actual) == len(expected), f"{len(actual)} results, expected {len(expected)}"
        for a, e in zip(actual, expected, strict=True):
            assert_close(a, e, rtol, atol)
        return
    a, e = to_array(actual), to_array(expected)
    assert a.shape == e.shape, f"shape {a.shape}, expected {e.shape}"
    kinds = [d.kind.replace("u", "i") for d in (a.dtype, e.dtype)]
    assert kinds[0] == kinds[1], f"dtype {a.dtype}, expected {e.dtype}"
    if a.dtype.kind not in "fc":
        wrong = a != e
    else:
        with np.errstate(invalid="ignore"):
            near = np.isfinite(e) & (np.abs(a - e) <= atol + rtol * np.abs(e))
        wrong = ~(near | (a == e) | (np.isnan(a) & np.isnan(e)))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        count = f"{int(wrong.sum())} of {a.size} elements differ"
        raise AssertionError(f"{count}, the first at {at}: {a[at]!r}, expected {e[at]!r}")


# --- from records to tensors ----------------------------------------------------------------------


def generator(sample: Sample, number: int = 0) -> np.random.Generator:
    """Random numbers that depend on nothing but the sample's label."""
    return np.random.default_rng([zlib.crc32(sample.label.encode()), number])


def resolve(module: Any, name: str) -> Callable[..., Any]:
    """``resolve(chainrule, "linalg.inv")`` is ``chainrule.linalg.inv``."""
    return functools.reduce(getattr, name.split("."), module)


def map_arrays(function: Callable[[np.ndarray], Any], tree: Any) -> Any:
    """A tree (lists, tuples) with the function applied to its arrays."""
    if isinstance(tree, np.ndarray):
        return function(tree)
    if type(tree) in (list, tuple):
        return type(tree)(map_arrays(function, branch) for branch in tree)
    return tree


def all_arrays(tree: Any) -> list[np.ndarray]:
    """The arrays in a tree, in order."""
    found: list[np.ndarray] = []
    map_arrays(found.append, tree)
    return found


def is_variable(array: np.ndarray) -> bool:
    """Whether a record's array stands for a tensor that is differentiated."""
    return array.dtype == np.float64


def prepared(sample: Sample, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments as the sample's function gets them."""
    return args if sample.prepare is None else sample.prepare(*args)


def call(sample: Sample, args: Sequence[Any]) -> Any:
    """The sample's function on arguments that hold tensors, and what it picks of the result."""
    out = resolve(chainrule, sample.name)(*prepared(sample, args), **sample.kwargs)
    return out if sample.pick is None else sample.pick(out)


def outputs(out: Any) -> list[Any]:
    """The tensors of floating type in a result."""
    if isinstance(out, (list, tuple)):
        return [y for part in out for y in outputs(part)]
    return [out] if hasattr(out, "is_floating_point") and out.is_floating_point() else []


def parts(out: Any) -> list[Any]:
    """The tensors of floating or complex type in a result."""
    if isinstance(out, (list, tuple)):
        return [y for part in out for y in parts(part)]
    is_number = hasattr(out, "is_complex") and (out.is_complex() or out.is_floating_point())
    return [out] if is_number else []


class Case:
    """A sample at concrete arguments: the function of its variables, and their values."""

    def __init__(self, sample: Sample, args: Any):
        self.sample = sample
        self.args = args
        self.values = [a for a in all_arrays(args) if is_variable(a)]

    def __call__(self, *variables: Any) -> Any:
        """The result as a function of the variables; the other arrays are constants."""
        given = iter(variables)
        args = map_arrays(
            lambda a: next(given) if is_variable(a) else chainrule.as_tensor(a.copy()), self.args
        )
        return call(self.sample, args)

    def floats(self, *variables: Any) -> tuple[Any, ...]:
        """The results of floating type alone."""
        return tuple(outputs(self(*variables)))

    def variables(self, dtype: Any = np.float64, requires_grad: bool = True) -> list[Any]:
        tensors = [chainrule.as_tensor(np.array(v, dtype=dtype)) for v in self.values]
        return [t.requires_grad_(requires_grad) for t in tensors]

    def reference(self) -> Any:
        assert self.sample.reference is not None
        kwargs = self.sample.kwargs
        with np.errstate(all="ignore"):
            args = prepared(self.sample, self.args)
            return self.sample.reference(*args, **accepted(self.sample.reference, kwargs))

    def gradients(self, variables: Sequence[Any]) -> list[Any]:
        """The gradients of a sum of the results weighted irregularly."""
        results = [y for y in self.floats(*variables) if y.requires_grad]
        weights = [chainrule.as_tensor(weight(tuple(y.shape), y.dtype.name)) for y in results]
        return list(chainrule.autograd.grad(results, variables, weights, materialize_grads=True))


def case(sample: Sample, number: int = 0) -> Case:
    """The sample at its random arguments; other numbers give other values of the same shapes."""
    return Case(sample, sample.args(generator(sample, number)))


def complex_values(c: Case) -> list[np.ndarray]:
    """The values of a case with imaginary parts."""
    r = np.random.default_rng(7)
    return [np.asarray(v + 0.5j * r.normal(size=v.shape)) for v in c.values]


def weight(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """Irregular numbers between 0.5 and 1.5."""
    n = int(np.prod(shape))
    return (np.arange(1, n + 1) * 0.6180339887498949 % 1 + 0.5).reshape(shape).astype(dtype)


def accepted(function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments that a function names (all, if it takes any)."""
    if isinstance(function, np.ufunc):
        return {}
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return kwargs
    return {k: v for k, v in kwargs.items() if k in {p.name for p in parameters}}


# --- the same in PyTorch --------------------------------------------------------------------------


def torch_dtype(torch: Any, d: Any) -> Any:
    """``chainrule.float32`` is ``torch.float32``; anything else is passed through."""
    named = isinstance(d, (chainrule.dtype, chainrule.memory_format))
    return getattr(torch, d.name) if named else d


def torch_call(torch: Any, sample: Sample, args: Sequence[Any]) -> Any:
    """The sample's function in PyTorch."""
    kwargs = {k: torch_dtype(torch, v) for k, v in sample.kwargs.items()}
    args = prepared(sample, args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that PyTorch has deprecated
        if sample.torch_call is not None:
            out = sample.torch_call(torch, *args, **accepted(sample.torch_call, kwargs))
        else:
            function = resolve(torch, sample.torch or sample.name)
            out = function(*[torch_dtype(torch, a) for a in args], **kwargs)
    return out if sample.pick is None else sample.pick(out)
