"""Records of joining, splitting, repeating, turning, diagonals, padding and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, ints, normal

import chainrule
from samples.shape import linear, method, several, then

__all__ = ["SAMPLES"]


def apart(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Several inputs of these shapes."""
    return lambda r: tuple(r.normal(size=s) for s in shapes)


def as_list(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """NumPy's result of several arrays as a list."""
    return lambda *args, **kwargs: list(function(*args, **kwargs))


def pieces(x: np.ndarray, size: int, dim: int = 0) -> list[np.ndarray]:
    return np.split(x, range(size, x.shape[dim], size), axis=dim)


def by_sizes(x: np.ndarray, sizes: list[int], dim: int = 0) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def unbound(x: np.ndarray, dim: int = 0) -> list[np.ndarray]:
    return list(np.moveaxis(x, dim, 0))


def embedded(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n))
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def on_diagonal(x: np.ndarray, src: np.ndarray, offset: int = 0) -> np.ndarray:
    out = x.copy()
    i = np.arange(len(src))
    out[i + max(-offset, 0), i + max(offset, 0)] = src
    return out


def windows(x: np.ndarray, dim: int, size: int, step: int) -> np.ndarray:
    shown = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    at = [slice(None)] * shown.ndim
    at[dim % x.ndim] = slice(None, None, step)
    return shown[tuple(at)]


def blocks(*arrays: np.ndarray) -> np.ndarray:
    import scipy.linalg

    return scipy.linalg.block_diag(*arrays)


def padded(mode: str) -> Callable[..., np.ndarray]:
    def reference(x: np.ndarray, pad: tuple[int, ...], *, value: float = 0) -> np.ndarray:
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
        width = [(0, 0)] * (x.ndim - len(pairs)) + pairs
        extra = {"constant_values": value} if mode == "constant" else {}
        return np.pad(x, width, mode=mode, **extra)  # type: ignore[call-overload]

    return reference


def joined(*arrays: np.ndarray) -> np.ndarray:
    return np.stack([g.reshape(-1) for g in np.meshgrid(*arrays, indexing="ij")], axis=1)


def repeated(x: np.ndarray, repeats: Any, dim: int | None = None) -> np.ndarray:
    return np.repeat(x, repeats, axis=dim)


JOINED = [
    linear("concat", several((2, 3), (1, 3)), reference=np.concatenate),
    linear("concat", several((2, 3), (2, 1)), {"axis": 1}, reference=np.concatenate, note="axis"),
    linear("concatenate", then(several((2, 3), (2, 1)), 1), reference=np.concatenate),
    linear("hstack", several((3,), (2,)), reference=np.hstack),
    linear("hstack", several((2, 3), (2, 1)), reference=np.hstack, note="matrices"),
    linear("hstack", several((), ()), reference=np.hstack, note="no dimensions"),
    linear("vstack", several((3,), (3,)), reference=np.vstack),
    linear("vstack", several((2, 3), (3,)), reference=np.vstack, note="matrix and vector"),
    linear("row_stack", several((3,), (3,)), reference=np.vstack),
    linear("dstack", several((2, 3), (2, 3)), reference=np.dstack),
    linear("dstack", several((3,), (3,)), reference=np.dstack, note="vectors"),
    linear("column_stack", several((3,), (3, 2)), reference=np.column_stack),
    linear("block_diag", apart((2, 3), (1, 2), (4,)), reference=blocks),
    linear("block_diag", apart((), (2, 0), (2, 1)), reference=blocks, note="empty"),
    linear("meshgrid", apart((3,), (2,)), {"indexing": "ij"}, reference=as_list(np.meshgrid)),
    linear(
        "meshgrid",
        apart((3,), (2,), (4,)),
        {"indexing": "xy"},
        reference=as_list(np.meshgrid),
        note="xy",
    ),
    linear("cartesian_prod", apart((3,), (2,), (2,)), reference=joined),
    linear("broadcast_tensors", apart((3, 1), (2,), ()), reference=as_list(np.broadcast_arrays)),
]

SPLIT = [
    linear("split", then(normal(5, 2), 2), reference=pieces),
    linear("split", then(normal(2, 5), 2, -1), reference=pieces, note="last dim"),
    linear("split", then(normal(2, 5), [1, 4], 1), reference=by_sizes, note="sizes"),
    linear("split", then(normal(2, 5), [0, 5], 1), reference=by_sizes, note="an empty piece"),
    linear("Tensor.split_with_sizes", then(normal(2, 5), [2, 3], 1), reference=by_sizes),
    linear("chunk", then(normal(7, 2), 3), reference=lambda x, n: pieces(x, 3)),
    linear(
        "chunk",
        then(normal(2, 5), 4, 1),
        reference=lambda x, n, d: pieces(x, 2, d),
        note="fewer than asked",
    ),
    linear("tensor_split", then(normal(7), 3), reference=as_list(np.array_split)),
    linear(
        "tensor_split",
        then(normal(2, 7), (1, 4), -1),
        reference=lambda x, at, d: np.split(x, at, axis=d),
        note="indices",
    ),
    linear("tensor_split", then(normal(3), 5), reference=as_list(np.array_split), note="empty"),
    linear("hsplit", then(normal(2, 4), 2), reference=np.hsplit),
    linear("hsplit", then(normal(4), (1, 3)), reference=np.hsplit, note="vector"),
    linear("vsplit", then(normal(4, 2), 2), reference=np.vsplit),
    linear("dsplit", then(normal(2, 1, 4), (1,)), reference=np.dsplit),
    linear("unbind", normal(3, 2), reference=unbound),
    linear("unbind", then(normal(3, 2), -1), reference=unbound, note="last dim"),
]

REPEATED = [
    linear("Tensor.repeat", then(normal(2, 3), 2, 1), reference=lambda x, *n: np.tile(x, n)),
    linear("Tensor.repeat", then(normal(3), (2, 2)), reference=np.tile, note="new dimension"),
    linear("Tensor.repeat", then(normal(), 3), reference=np.tile, note="no dimensions"),
    linear("Tensor.repeat", then(normal(2), 0), reference=np.tile, note="zero times"),
    linear("tile", then(normal(2, 3), (2,)), reference=np.tile),
    linear("tile", then(normal(3), (2, 1, 2)), reference=np.tile, note="new dimensions"),
    linear("repeat_interleave", then(normal(2, 3), 2), reference=repeated),
    linear("repeat_interleave", then(normal(2, 3), 3, -1), reference=repeated, note="dim"),
    linear(
        "repeat_interleave",
        lambda r: (r.normal(size=(3, 2)), np.array([1, 0, 2]), 0),
        reference=repeated,
        note="tensor",
        vmap=False,
    ),
    linear(
        "repeat_interleave",
        lambda r: (np.array([2, 0, 1]),),
        differentiable=False,
        vmap=False,
        reference=lambda n: np.repeat(np.arange(len(n)), n),
        note="repeats alone",
    ),
]

TURNED = [
    linear("flip", then(normal(2, 3), (0,)), reference=np.flip),
    linear("flip", then(normal(2, 3, 2), (-1, 0)), reference=np.flip, note="several"),
    linear("flip", then(normal(2, 3), ()), reference=lambda x, d: x, note="none"),
    linear("flip", then(normal(0, 3), (0, 1)), reference=np.flip, note="empty"),
    linear(
        "flip", then(ints(0, 9, 4), (0,)), reference=np.flip, differentiable=False, note="integers"
    ),
    linear("fliplr", normal(2, 3), reference=np.fliplr),
    linear("flipud", normal(3), reference=np.flipud),
    linear("roll", then(normal(2, 3), 2), reference=np.roll),
    linear("roll", then(normal(2, 3), -1, 1), reference=np.roll, note="dim"),
    linear("roll", then(normal(3, 4), (1, 6), (0, -1)), reference=np.roll, note="several"),
    linear("roll", then(normal(3), 3, 0), reference=np.roll, note="a full turn"),
    linear("rot90", normal(2, 3), reference=np.rot90),
    linear("rot90", then(normal(2, 3, 2), 3, (1, 2)), reference=np.rot90, note="dims"),
    linear("rot90", then(normal(2, 3), 2), reference=np.rot90, note="twice"),
    linear("rot90", then(normal(2, 3), -4), reference=np.rot90, note="not at all"),
    linear("t", normal(2, 3), reference=np.transpose),
    linear("t", normal(3), reference=np.transpose, note="vector"),
    linear("adjoint", normal(2, 3, 4), reference=lambda x: np.swapaxes(x, -1, -2)),
    linear("moveaxis", then(normal(2, 3, 4), 0, -1), reference=np.moveaxis),
    linear("swapdims", then(normal(2, 3, 4), 0, -1), reference=np.swapaxes),
]

SHAPED = [
    linear("ravel", normal(2, 3), reference=np.ravel),
    linear("ravel", normal(), reference=np.ravel, note="no dimensions"),
    linear(
        "unflatten", then(normal(2, 6), 1, (2, -1)), reference=lambda x, d, s: x.reshape(2, 2, 3)
    ),
    linear(
        "unflatten",
        then(normal(6, 2), -2, (3, 2)),
        reference=lambda x, d, s: x.reshape(3, 2, 2),
        note="negative",
    ),
    linear("broadcast_to", then(normal(3, 1), (2, 3, 4)), reference=np.broadcast_to),
    linear(
        "Tensor.expand_as",
        apart((3, 1), (2, 3, 4)),
        reference=lambda x, y: np.broadcast_to(x, y.shape),
    ),
    linear("Tensor.view_as", apart((3, 4), (2, 6)), reference=lambda x, y: x.reshape(y.shape)),
    linear("Tensor.reshape_as", apart((3, 4), (2, 6)), reference=lambda x, y: x.reshape(y.shape)),
    linear("atleast_1d", normal(), reference=np.atleast_1d),
    linear("atleast_2d", normal(3), reference=np.atleast_2d),
    linear("atleast_3d", normal(2, 3), reference=np.atleast_3d),
    linear("atleast_3d", normal(3), reference=np.atleast_3d, note="vector"),
    linear("combinations", normal(3), reference=lambda x: x[[[0, 1], [0, 2], [1, 2]]]),
    linear(
        "combinations",
        then(normal(2), 2, True),
        reference=lambda x, r, w: x[[[0, 0], [0, 1], [1, 1]]],
        note="with replacement",
    ),
    linear("clone", normal(2, 3), reference=np.copy),
    linear("Tensor.contiguous", normal(2, 3), reference=np.copy),
    linear(
        "Tensor.contiguous",
        normal(2, 3, 2, 2),
        kwargs={"memory_format": chainrule.channels_last},
        reference=lambda x, memory_format: np.copy(x),
        note="channels last",
    ),
    linear("Tensor.double", normal(2, 3), reference=np.copy, float32=False),
]

DIAGONALS = [
    linear("diagonal", normal(3, 4), reference=np.diagonal),
    linear("diagonal", then(normal(3, 4), 1), reference=np.diagonal, note="above"),
    linear("diagonal", then(normal(2, 3, 4), -1, -1, 0), reference=np.diagonal, note="dims"),
    linear("diagonal", then(normal(2, 3), 5), reference=np.diagonal, note="empty"),
    linear("diag", normal(3), reference=np.diag),
    linear("diag", then(normal(3, 4), -1), reference=np.diag, note="of a matrix"),
    linear("diag_embed", normal(2, 3), reference=embedded),
    linear("diag_embed", then(normal(2, 3), -1, 0, 2), reference=embedded, note="dims"),
    linear("diag_embed", then(normal(2, 3), 1, 2, 0), reference=embedded, note="dims, above"),
    linear("diagflat", then(normal(2, 2), 1), reference=np.diagflat),
    linear("diagonal_scatter", apart((3, 3), (3,)), reference=on_diagonal),
    linear("diagonal_scatter", then(apart((3, 4), (3,)), 1), reference=on_diagonal, note="above"),
    linear("tril", normal(3, 4), reference=np.tril),
    linear("tril", then(normal(2, 3, 3), -1), reference=np.tril, note="batch, below"),
    linear("triu", normal(3, 4), reference=np.triu),
    linear("triu", then(normal(2, 3, 3), 1), reference=np.triu, note="batch, above"),
    linear("triu", then(normal(0, 3)), reference=np.triu, note="empty"),
]


def pad(args: Any, mode: str = "constant", note: str = "", **kwargs: Any) -> Sample:
    numpy_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return linear(
        "pad",
        args,
        {"mode": mode} | kwargs,
        reference=padded(numpy_mode),
        torch="nn.functional.pad",
        note=f"{mode} {note}".strip(),
    )


PADDED = [
    pad(then(normal(2, 3), (1, 2))),
    pad(then(normal(2, 3), (1, 0, 0, 2)), note="two dims", value=1.5),
    pad(then(normal(2), (0, 0)), note="nothing"),
    linear(
        "pad",
        then(normal(2, 4), (-1, 2)),
        {"value": 3.0},
        torch="nn.functional.pad",
        reference=lambda x, p: np.pad(x[:, 1:], ((0, 0), (0, 2)), constant_values=3.0),
        note="cut",
    ),
    pad(then(normal(2, 4), (3, 2)), "reflect"),
    pad(then(normal(1, 2, 3, 4), (1, 2, 2, 0)), "reflect", note="two dims"),
    pad(then(normal(2, 3), (4, 1)), "replicate"),
    pad(then(normal(2, 3, 2, 2), (1, 0, 0, 1, 2, 2)), "replicate", note="three dims"),
    pad(then(normal(2, 3), (3, 2)), "circular"),
    pad(then(normal(1, 2, 3, 4), (1, 2, 2, 0)), "circular", note="two dims"),
    linear("Tensor.unfold", then(normal(7), 0, 3, 2), reference=windows),
    linear("Tensor.unfold", then(normal(2, 5, 3), -2, 2, 1), reference=windows, note="dim"),
    linear("Tensor.unfold", then(normal(2, 5), 1, 2, 3), reference=windows, note="gaps"),
    linear("Tensor.unfold", then(normal(2, 3), 1, 0, 1), torch_call=method("unfold"), note="empty"),
]

SAMPLES: list[Sample] = [
    *JOINED,
    *SPLIT,
    *REPEATED,
    *TURNED,
    *SHAPED,
    *DIAGONALS,
    *PADDED,
]
