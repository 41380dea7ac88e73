"""vmap: a function of one sample carried out for a whole batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from chainrule.autograd.batched import Batched
from chainrule.autograd.levels import level_of, new_level
from chainrule.autograd.nested import Structure, flatten, unflatten
from chainrule.ops.core.batching import spread
from chainrule.ops.creation.sampling import batch_draw
from chainrule.ops.index.reading import narrow
from chainrule.ops.shape.views import movedim
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor, of_array

__all__ = ["vmap"]

P = ParamSpec("P")
R = TypeVar("R")
# The dimension to map over, None for none; or one for each part of a tuple, list or dict.
Axes: TypeAlias = "int | Sequence[Axes] | Mapping[str, Axes] | None"


def vmap(
    func: Callable[P, R],
    in_dims: int | Sequence[Axes] = 0,
    out_dims: Axes = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """The function that applies ``func`` to every sample along ``in_dims`` and stacks the results.

    ``in_dims`` gives for each argument (or each leaf of a nested one) the dimension to map over,
    None for an argument that all samples share. ``randomness`` says what random functions inside
    do: ``"error"``, the ``"same"`` numbers for all samples, or ``"different"`` ones.

    >>> import chainrule
    >>> from chainrule.func import grad, vmap
    >>> per_sample = vmap(grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))
    >>> per_sample(chainrule.ones(2), chainrule.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[ 6., 12.],
            [42., 56.]])
    """
    if randomness not in ("error", "same", "different"):
        raise RuntimeError(
            f"vmap: only allows randomness to be 'error', 'different' or 'same', got {randomness!r}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0, got {chunk_size}")

    @functools.wraps(func)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        leaves, structure = flatten(args)
        dims = _leaf_dims(in_dims, args, leaves)
        for keyword_leaf in flatten(kwargs)[0]:
            leaves.append(keyword_leaf)
            dims.append(0 if isinstance(keyword_leaf, Tensor) else None)
        size = _batch_size(leaves, dims)
        moved = [movedim(x, d, 0) if d else x for x, d in zip(leaves, dims, strict=True)]

        def run(values: list[Any], size: int) -> tuple[list[Tensor], Structure]:
            return _run(
                func, values, dims, size, structure, len(flatten(args)[0]), kwargs, randomness
            )

        if chunk_size is None or chunk_size >= size:
            outputs, out_structure = run(moved, size)
        else:
            outputs, out_structure = _in_chunks(run, moved, dims, size, chunk_size)
        targets = _out_dims(out_dims, len(outputs))
        placed = [x if d == 0 else movedim(x, 0, d) for x, d in zip(outputs, targets, strict=True)]
        return unflatten(placed, out_structure)

    return mapped


def _run(
    func: Callable[..., Any],
    values: list[Any],
    dims: list[int | None],
    size: int,
    structure: Structure,
    count: int,
    kwargs: dict[str, Any],
    randomness: str,
) -> tuple[list[Tensor], Structure]:
    """One pass of the function over a batch: outputs with the batch first, and their structure."""
    with new_level(lambda level, t: Batched(level, t, size, mapped=False)) as level:
        boxed = [
            x if d is None else of_array(Batched(level, x, size))
            for x, d in zip(values, dims, strict=True)
        ]
        batch_draw.append(_Draw(level, size, randomness, batch_draw[-1] if batch_draw else None))
        try:
            keywords = unflatten(boxed[count:], flatten(kwargs)[1])
            result = func(*unflatten(boxed[:count], structure), **keywords)
        finally:
            batch_draw.pop()
        outputs, out_structure = flatten(result)
        return [_unbox(level, size, x) for x in outputs], out_structure


def _unbox(level: int, size: int, x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap: the mapped function must only return Tensors, got {type(x).__name__}"
        )
    if level_of(x) != level:
        return spread(x, size)
    return x.array.value if x.array.mapped else spread(x.array.value, size)


class _Draw:
    """What a random function does inside vmap."""

    def __init__(self, level: int, size: int, randomness: str, outer: Callable[..., Tensor] | None):
        self.level, self.size, self.randomness, self.outer = level, size, randomness, outer

    def __call__(
        self, shape: tuple[int, ...], sampler: Callable[[tuple[int, ...]], Tensor]
    ) -> Tensor:
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called a random function inside the mapped function; pass "
                "randomness='different' (other numbers for every sample) or 'same'"
            )
        if self.randomness == "different":
            return of_array(
                Batched(self.level, self._draw((self.size, *shape), sampler), self.size)
            )
        return self._draw(shape, sampler)

    def _draw(self, shape: tuple[int, ...], sampler: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
        return sampler(shape) if self.outer is None else self.outer(shape, sampler)


def _leaf_dims(
    in_dims: int | Sequence[Axes], args: tuple[Any, ...], leaves: list[Any]
) -> list[int | None]:
    """The dimension to map over for each leaf of the arguments."""
    if isinstance(in_dims, int):
        dims = [in_dims if isinstance(x, Tensor) else None for x in leaves]
    else:
        if in_dims is None or len(in_dims) != len(args):
            raise ValueError(
                f"vmap: in_dims {in_dims} must be an int or have one entry for each of the "
                f"{len(args)} arguments"
            )
        dims = []
        for d, arg in zip(in_dims, args, strict=True):
            dims += _dims_of(d, arg)
    for d, x in zip(dims, leaves, strict=True):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap: got in_dim={d} for an input of type {type(x).__name__}, which cannot be "
                "mapped over; use None for it"
            )
        if not -x.ndim <= d < x.ndim:
            raise ValueError(
                f"vmap: got in_dim={d} for an input of shape {tuple(x.shape)}; the dimension does "
                "not exist"
            )
    return dims


def _dims_of(d: Axes, arg: Any) -> list[int | None]:
    """One entry of in_dims spread over the leaves of its argument."""
    if d is None or isinstance(d, int):
        return [d] * len(flatten(arg)[0])
    if isinstance(arg, dict):
        return [x for key, value in arg.items() for x in _dims_of(d[key], value)]
    return [x for sub, value in zip(d, arg, strict=True) for x in _dims_of(sub, value)]


def _batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = {x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over; all in_dims are None")
    if len(sizes) > 1:
        raise ValueError(
            "vmap: expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sorted(sizes)}"
        )
    return sizes.pop()


def _in_chunks(
    run: Callable[[list[Any], int], tuple[list[Tensor], Structure]],
    values: list[Any],
    dims: list[int | None],
    size: int,
    chunk: int,
) -> tuple[list[Tensor], Structure]:
    """The batch in parts of at most ``chunk`` samples, to bound the memory."""
    parts, structure = [], None
    for start in range(0, size, chunk):
        length = min(chunk, size - start)
        cut = [
            x if d is None else narrow(x, 0, start, length)
            for x, d in zip(values, dims, strict=True)
        ]
        outputs, structure = run(cut, length)
        parts.append(outputs)
    return [cat(list(column)) for column in zip(*parts, strict=True)], structure


def _out_dims(out_dims: Axes, count: int) -> list[int]:
    if isinstance(out_dims, int):
        return [out_dims] * count
    flat = flatten(out_dims)[0]
    if len(flat) != count:
        raise ValueError(f"vmap: out_dims {out_dims} does not fit the {count} outputs")
    return flat
