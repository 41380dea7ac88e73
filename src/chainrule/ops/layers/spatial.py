"""What convolution and pooling share: one number per dimension, sizes, input without a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, overload

from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import Shape, Sizes

__all__ = [
    "Ints",
    "Known",
    "OutputSize",
    "adapted_size",
    "batched",
    "conv_output_size",
    "conv_transpose_output_size",
    "divides",
    "last_sizes",
    "listed",
    "output_size",
    "padding_of",
    "per_dim",
    "pooled_size",
    "positive",
    "space_of",
    "transposed_size",
    "window_settings",
]

Ints = tuple[int, ...]
# One size for all dimensions, or one for each; None keeps the input's.
OutputSize: TypeAlias = int | Sequence[int | None] | None


def per_dim(op: str, name: str, value: Sizes, nd: int) -> Ints:
    """One number for every dimension, or as many as there are dimensions, as a tuple."""
    if value.__class__ is int:
        return (value,) * nd
    if isinstance(value, (tuple, list)):
        numbers = tuple(value) if len(value) != 1 else tuple(value) * nd
    else:
        numbers = (value,) * nd
    if len(numbers) != nd:
        raise RuntimeError(
            f"{op}: expected {name} to be a single integer value or {nd} values to match the "
            f"dimensions, but got {name}={list(numbers)}"
        )
    try:
        return tuple([n.__index__() for n in numbers])
    except AttributeError:
        message = f"{op}(): {name} must be an int or a tuple of ints, not {value!r}"
        raise TypeError(message) from None


def positive(op: str, name: str, numbers: Ints, at_least: int = 1) -> None:
    """Refuses a stride of 0, a negative padding and their like."""
    if min(numbers) < at_least:
        sort = "negative" if at_least == 0 else "non-positive"
        raise RuntimeError(f"{op}: {sort} {name} is not supported, got {name}={numbers}")


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many windows fit, ``padding`` being what both sides get together."""
    return (size + padding - dilation * (kernel - 1) - 1) // stride + 1


def transposed_size(
    size: int, kernel: int, stride: int, padding: int, output_padding: int, dilation: int
) -> int:
    """How far the windows of so many places reach, less ``padding`` on each side."""
    return (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1


def listed(sizes: Iterable[int]) -> str:
    """(2 x 3), as sizes are written in messages."""
    return "(" + " x ".join(map(str, sizes)) + ")"


def batched(op: str, input: Tensor, nd: int, function: Callable[[Tensor], Any]) -> Any:
    """The function of (N, C, spatial), applied to that or, without a batch, to (C, spatial)."""
    if not isinstance(input, Tensor):
        check_layout(op, input)
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.ndim == nd + 2:
        return function(input)
    if input.ndim != nd + 1:
        raise RuntimeError(
            f"{op}: expected {nd + 1}D (unbatched) or {nd + 2}D (batched) input, but got input of "
            f"size {tuple(input.shape)}"
        )
    out = function(reshape(input, (1, *input.shape)))
    if isinstance(out, tuple):
        return tuple([reshape(o, tuple(o.shape[1:])) for o in out])
    return reshape(out, tuple(out.shape[1:]))


class Known:
    """What followed from shapes and settings when they were given before.

    Settings are told apart by identity, which takes no time and knows 2 from 2.0. They are kept
    with what is found, so that no other object gets their place; what can change is not kept.
    """

    LIMIT = 1000

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def get(self, shapes: tuple[object, ...], *settings: object) -> Any:
        entry = self._found.get((shapes, *map(id, settings)))
        return None if entry is None else entry[0]

    def put(self, value: object, shapes: tuple[object, ...], *settings: object) -> None:
        if all([s is None or s.__class__ in (bool, int, str, tuple) for s in settings]):
            if len(self._found) >= self.LIMIT:
                self._found.clear()
            self._found[(shapes, *map(id, settings))] = (value, settings)


# --- sizes ----------------------------------------------------------------------------------------


@overload
def conv_output_size(
    size: int, kernel_size: int, stride: int = 1, padding: int | str = 0, dilation: int = 1
) -> int: ...
@overload
def conv_output_size(
    size: Shape,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
) -> tuple[int, ...]: ...
@overload
def conv_output_size(
    size: int,
    kernel_size: Shape,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
) -> tuple[int, ...]: ...
def conv_output_size(
    size: Sizes,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
) -> int | tuple[int, ...]:
    """The size of a convolution's (or pooling's) output along each dimension, rounded down:

    o = floor((i + 2 p - d (k - 1) - 1) / s) + 1

    >>> import chainrule
    >>> chainrule.conv_output_size(28, 5)
    24
    >>> chainrule.conv_output_size((28, 32), 3, stride=2, padding=1)
    (14, 16)
    """
    op, nd = "conv_output_size", _count_dims(size, kernel_size, stride, padding, dilation)
    named = {"size": size, "kernel_size": kernel_size, "stride": stride, "dilation": dilation}
    i, k, s, d = (per_dim(op, name, value, nd) for name, value in named.items())
    for name, numbers in (("kernel_size", k), ("stride", s), ("dilation", d)):
        positive(op, name, numbers)
    _, both = padding_of(op, padding, k, s, d)
    sizes = [output_size(*numbers) for numbers in zip(i, k, s, both, d, strict=True)]
    if min(sizes) < 1 or min(i) < 1:
        raise RuntimeError(
            f"{op}: kernel_size={kernel_size} with dilation={dilation} does not fit into "
            f"size={size} with padding={padding}; use a larger input, more padding or a smaller "
            "kernel"
        )
    return _like_arguments(sizes, size, kernel_size)


@overload
def conv_transpose_output_size(
    size: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
) -> int: ...
@overload
def conv_transpose_output_size(
    size: Shape,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
) -> tuple[int, ...]: ...
@overload
def conv_transpose_output_size(
    size: int,
    kernel_size: Shape,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
) -> tuple[int, ...]: ...
def conv_transpose_output_size(
    size: Sizes,
    kernel_size: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
) -> int | tuple[int, ...]:
    """The size of a transposed convolution's output along each dimension:

    o = (i - 1) s - 2 p + d (k - 1) + output_padding + 1

    >>> import chainrule
    >>> chainrule.conv_transpose_output_size(14, 4, stride=2, padding=1)
    28
    """
    op = "conv_transpose_output_size"
    nd = _count_dims(size, kernel_size, stride, padding, output_padding, dilation)
    named = {
        "size": size,
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "output_padding": output_padding,
        "dilation": dilation,
    }
    numbers = {name: per_dim(op, name, value, nd) for name, value in named.items()}
    for name, each in numbers.items():
        positive(op, name, each, at_least=0 if "padding" in name else 1)
    sizes = [transposed_size(*each) for each in zip(*numbers.values(), strict=True)]
    if min(sizes) < 1:
        raise RuntimeError(
            f"{op}: for size={size}, kernel_size={kernel_size}, stride={stride} and "
            f"padding={padding} the output would have the size {listed(sizes)}; use less padding"
        )
    return _like_arguments(sizes, size, kernel_size)


def _count_dims(*arguments: object) -> int:
    return max(len(a) if isinstance(a, (tuple, list)) else 1 for a in arguments)


def _like_arguments(sizes: list[int], *arguments: object) -> int | tuple[int, ...]:
    """A number for numbers, a tuple where one was given."""
    several = len(sizes) > 1 or any(isinstance(a, (tuple, list)) for a in arguments)
    return tuple(sizes) if several else sizes[0]


def padding_of(
    op: str, padding: Sizes | str, kernel: Ints, stride: Ints, dilation: Ints
) -> tuple[Ints, Ints]:
    """The zeros in front of each dimension, and those in front and behind together."""
    if not isinstance(padding, str):
        before = per_dim(op, "padding", padding, len(kernel))
        positive(op, "padding", before, at_least=0)
        return before, tuple([2 * p for p in before])
    if padding == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"{op}: invalid padding string {padding!r}; use 'same' or 'valid'")
    if any(s != 1 for s in stride):
        raise RuntimeError(
            f"{op}: padding='same' is not supported for strided convolutions, got stride={stride}"
        )
    both = tuple([d * (k - 1) for k, d in zip(kernel, dilation, strict=True)])
    return tuple([p // 2 for p in both]), both


# --- windows --------------------------------------------------------------------------------------


def window_settings(
    op: str,
    nd: int,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    any_padding: bool = False,
) -> dict[str, Ints]:
    """Kernel, stride, padding and dilation, one number per dimension each.

    A padding of more than half the kernel, with windows that see nothing else, is refused unless
    ``any_padding``.
    """
    k = per_dim(op, "kernel_size", kernel_size, nd)
    s = k if stride is None or stride in ([], ()) else per_dim(op, "stride", stride, nd)
    p, d = per_dim(op, "padding", padding, nd), per_dim(op, "dilation", dilation, nd)
    positive(op, "kernel_size", k)
    positive(op, "stride", s)
    positive(op, "padding", p, at_least=0)
    positive(op, "dilation", d)
    if not any_padding and any(2 * a > b for a, b in zip(p, k, strict=True)):
        raise RuntimeError(
            f"{op}: pad should be at most half of kernel size, but got padding={p} and "
            f"kernel_size={k}"
        )
    return {"kernel": k, "stride": s, "padding": p, "dilation": d}


def _check_not_empty(op: str, x: Tensor) -> None:
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{op}: expected input to have non-zero size for non-batch dimensions, but input has "
            f"sizes {tuple(x.shape)}"
        )


def pooled_size(op: str, x: Tensor, nd: int, ceil_mode: bool, windows: dict[str, Ints]) -> Ints:
    """How many windows there are along each dimension."""
    _check_not_empty(op, x)
    size = []
    for n, k, s, p, d in zip(x.shape[-nd:], *windows.values(), strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        # A last window that would begin in the padding behind is left out.
        size.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    if min(size) < 1:
        raise RuntimeError(
            f"{op}: given input size {listed(x.shape[-nd:])} and kernel_size {windows['kernel']}, "
            f"the calculated output size is {listed(size)}; output size is too small"
        )
    return tuple(size)


def check_adaptive(op: str, input: Tensor, nd: int, output_size: OutputSize) -> None:
    """Refuses an input with no more dimensions than sizes are asked for, as PyTorch does."""
    sizes = len(output_size) if isinstance(output_size, (tuple, list)) else 0
    if sizes == nd and isinstance(input, Tensor) and input.ndim <= nd:
        raise ValueError(
            f"{op}: input dimension should be at least {nd + 1}, got shape {tuple(input.shape)}"
        )


def adapted_size(op: str, x: Tensor, nd: int, output_size: OutputSize) -> Ints:
    """The given size, where None stands for the input's."""
    _check_not_empty(op, x)
    if isinstance(output_size, (tuple, list)):
        wanted = tuple(output_size) if len(output_size) != 1 else tuple(output_size) * nd
    else:
        wanted = (output_size,) * nd
    if len(wanted) != nd:
        raise RuntimeError(f"{op}: output_size must have {nd} elements, got {wanted}")
    each = zip(wanted, x.shape[-nd:], strict=True)
    size = per_dim(op, "output_size", tuple([n if w is None else w for w, n in each]), nd)
    positive(op, "output_size", size, at_least=0)
    return size


def space_of(shape: Shape) -> Ints:
    """The sizes behind the batch and the channels."""
    return tuple(shape[2:])


def last_sizes(shape: Shape, like: Ints) -> Ints:
    """The last sizes of a shape, as many as there are in ``like``."""
    return tuple(shape[-len(like) :])


def divides(size: Ints, spatial: Ints) -> bool:
    """Whether adaptive windows are all of one size, side by side."""
    return all(o > 0 and n % o == 0 for n, o in zip(spatial, size, strict=True))
