"""NumPy's words for arguments: what PyTorch takes as ``axis`` and ``keepdims`` is taken here."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

OWNERS = ("", "linalg", "special", "fft", "Tensor")
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
INDEX = np.array([[0, 2, 1]])
WHICH = np.array([2, 0])
SOURCE = RNG.normal(size=(2, 3))

# The arguments before ``dim``, and keywords for those after it. All others have (X,) and none.
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "all": ((X > 0,), {}),
    "any": ((X > 0,), {}),
    "cat": (([X, Y],), {}),
    "chunk": ((X, 2), {}),
    "concat": (([X, Y],), {}),
    "concatenate": (([X, Y],), {}),
    "cosine_similarity": ((X, Y), {}),
    "cross": ((X, Y), {}),
    "diff": ((X, 1), {}),
    "gather": ((X,), {"index": INDEX}),
    "index_add": ((X,), {"index": WHICH, "source": SOURCE}),
    "index_copy": ((X,), {"index": WHICH, "source": SOURCE}),
    "index_fill": ((X,), {"index": WHICH, "value": 7.0}),
    "index_reduce": ((X,), {"index": WHICH, "source": SOURCE, "reduce": "amax"}),
    "index_select": ((X,), {"index": WHICH}),
    "kthvalue": ((X, 2), {}),
    "nanquantile": ((X, 0.3), {}),
    "narrow": ((X,), {"start": 1, "length": 2}),
    "narrow_copy": ((X,), {"start": 1, "length": 2}),
    "norm": ((X, 2.0), {}),
    "pairwise_distance": ((X, Y), {}),
    "quantile": ((X, 0.3), {}),
    "renorm": ((X, 2.0), {"maxnorm": 0.5}),
    "repeat_interleave": ((X, 2), {}),
    "scatter": ((X,), {"index": INDEX, "src": Y}),
    "scatter_add": ((X,), {"index": INDEX, "src": Y}),
    "scatter_reduce": ((X,), {"index": INDEX, "src": Y, "reduce": "amax"}),
    "select": ((X,), {"index": 1}),
    "select_copy": ((X,), {"index": 1}),
    "select_scatter": ((X, Y[0]), {"index": 1}),
    "slice_copy": ((X,), {"start": 1}),
    "slice_scatter": ((X, Y[:2]), {"start": 1}),
    "split": ((X, 2), {}),
    "split_copy": ((X, 2), {}),
    "split_with_sizes": ((X, [1, 2]), {}),
    "split_with_sizes_copy": ((X, [1, 2]), {}),
    "squeeze": ((X[:1],), {}),
    "stack": (([X, Y],), {}),
    "take_along_dim": ((X, INDEX), {}),
    "tensor_split": ((X, 2), {}),
    "topk": ((X, 2), {}),
    "unflatten": ((X,), {"sizes": (3, 1)}),
    "unsafe_chunk": ((X, 2), {}),
    "unsafe_split": ((X, 2), {}),
    "vecdot": ((X, Y), {}),
}
PAIRS = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "matrix_norm")
# Functions that PyTorch writes in Python, with ``dim`` alone.
DIM_ALONE = {"norm", "split", "unflatten", "unique", "unique_consecutive"}


def functions() -> Iterator[tuple[str, str]]:
    """Every public function and method that takes NumPy's words."""
    for owner in OWNERS:
        ours = getattr(chainrule, owner) if owner else chainrule
        for name in dir(ours):
            if not name.startswith("_") and synonyms(getattr(ours, name, None)):
                yield owner, name


def synonyms(function: Any) -> dict[str, str]:
    if not inspect.isfunction(function):
        return {}
    found = inspect.unwrap(function, stop=lambda f: hasattr(f, "synonyms"))
    words = getattr(found, "synonyms", {})
    return {word: name for word, name in words.items() if word in ("axis", "keepdims")}


def arguments(name: str, library: Any) -> tuple[list[Any], dict[str, Any]]:
    def made(a: Any) -> Any:
        if isinstance(a, list):
            return [made(part) for part in a]
        return library.tensor(a) if isinstance(a, np.ndarray) else a

    args, kwargs = CALLS.get(name.removesuffix("_"), ((X,), {}))
    return made(list(args)), {key: made(value) for key, value in kwargs.items()}


def arrays(out: Any) -> list[np.ndarray]:
    if isinstance(out, (tuple, list)):
        return [array for part in out for array in arrays(part)]
    return [np.asarray(out.resolve_conj())]


def called(library: Any, owner: str, name: str, words: dict[str, Any]) -> list[np.ndarray]:
    args, kwargs = arguments(name, library)
    function = getattr(getattr(library, owner) if owner else library, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls index_reduce new
        return arrays(function(*args, **kwargs, **words))


@pytest.mark.parametrize(("owner", "name"), list(functions()))
def test_axis_and_keepdims_are_what_they_are_in_pytorch(owner: str, name: str) -> None:
    function = getattr(getattr(chainrule, owner) if owner else chainrule, name)
    words: dict[str, Any] = {}
    if "axis" in synonyms(function):
        words["axis"] = (0, 1) if name in PAIRS else 1 if name.startswith("unfl") else 0
    if "keepdims" in synonyms(function):
        words["keepdims"] = True
    ours = called(chainrule, owner, name, words)
    if name in DIM_ALONE and owner != "linalg" and (owner, name) != ("", "unflatten"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
            called(torch, owner, name, words)
        words = {synonyms(function)[word]: value for word, value in words.items()}
    theirs = called(torch, owner, name, words)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b)


def declared_with_dim() -> Iterator[tuple[str, str]]:
    """What PyTorch's own stubs declare with ``dim`` or ``keepdim`` and this library has."""
    folder = Path(torch.__file__).parent / "_C"
    top = ast.parse((folder / "_VariableFunctions.pyi").read_text("utf-8")).body
    inner = ast.parse((folder / "__init__.pyi").read_text("utf-8")).body
    methods = next(c.body for c in inner if getattr(c, "name", "") == "TensorBase")
    for owner, body in (("", top), ("Tensor", methods)):
        for node in body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            names = {a.arg for a in node.args.args + node.args.kwonlyargs}
            ours = getattr(chainrule, owner) if owner else chainrule
            if names & {"dim", "keepdim"} and hasattr(ours, node.name):
                yield owner, node.name


def test_no_function_with_dim_is_left_out() -> None:
    found = set(declared_with_dim())
    assert len(found) > 120
    without = {
        (owner, name)
        for owner, name in found
        if not synonyms(getattr(getattr(chainrule, owner) if owner else chainrule, name))
    }
    assert without == {("Tensor", "size"), ("Tensor", "stride")}  # which have it in their own way


@pytest.mark.parametrize("owner", ["linalg", "special", "fft"])
def test_nor_in_the_rooms_below(owner: str) -> None:
    ours = getattr(chainrule, owner)
    for name in ours.__all__:
        function = getattr(ours, name)
        if inspect.isfunction(function) and "dim" in inspect.signature(function).parameters:
            assert "axis" in synonyms(function), name


@pytest.mark.parametrize("method", ["size", "stride"])
def test_sizes_and_strides_by_axis(method: str) -> None:
    ours, theirs = chainrule.ones(2, 5, 3), torch.ones(2, 5, 3)
    for words in ({}, {"dim": -1}, {"axis": 1}, {"axis": -3}):
        assert getattr(ours, method)(**words) == getattr(theirs, method)(**words)
    for library in (chainrule, torch):
        with pytest.raises(IndexError):
            getattr(library.ones(2), method)(axis=1)
        with pytest.raises(TypeError):
            getattr(library.ones(2), method)(0, axis=0)
