"""Fourier transforms: three linear primitives, and PyTorch's functions made of them.

The matrix F of a transform is symmetric, so a transform is its own transpose. What is real on one
side is linear over the real numbers only; its rules conjugate by themselves.
"""

from __future__ import annotations

from typing import Unpack

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.core.primitive import Linear, Op
from chainrule.ops.core.promotion import cast, to_floating
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.complex_numbers import conj, real
from chainrule.ops.index.reading import narrow
from chainrule.ops.shape.padding import pad_zeros
from chainrule.ops.shape.rearrange import roll
from chainrule.ops.shape.views import canonical_dim, canonical_dims
from chainrule.ops.core.arguments import placed
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Device, Dims, DType, Memory, Shape, V

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# The scale of a transform under each norm is that of the inverse under the other.
_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

# --- primitives -----------------------------------------------------------------------------------


class RealTransform(Linear):
    """Linear over the real numbers: its transpose needs no conjugation around it."""

    def on_complex_numbers(self) -> Op:
        return self


_c2c = Linear("fft_c2c", lambda g, shape_in, **p: _c2c(g, **p))


def _r2c_transpose(g: V, shape_in: tuple[int, ...], dim: int, norm: str) -> V:
    """Re(F* g): the missing terms do not count."""
    whole = _fit(conj(g), dim, shape_in[dim])
    return real(_c2c(whole, dims=(dim,), inverse=False, norm=norm))


def _c2r_transpose(g: V, shape_in: tuple[int, ...], n: int, dim: int, norm: str) -> V:
    """F g, twice where a term stands for its conjugate, too."""
    half = _r2c(g, dim=dim, norm=_SWAPPED[norm])
    array_dtype = (g.array if isinstance(g, Tensor) else g).dtype
    times = K.half_spectrum_weights(n, array_dtype).reshape((-1, *[1] * (-1 - dim)))
    return _fit(half * (of_array(times) if isinstance(g, Tensor) else times), dim, shape_in[dim])


_r2c = RealTransform("fft_r2c", _r2c_transpose)
_c2r = RealTransform("fft_c2r", _c2r_transpose)


# --- arguments ------------------------------------------------------------------------------------


def _fit(x: V, dim: int, n: int) -> V:
    """Cut, or filled up with zeros, to n elements along a dimension."""
    size = x.shape[dim]
    if n == size:
        return x
    if n < size:
        return narrow(x, dim, 0, n)
    return pad_zeros(x, pads=((0, n - size), *[(0, 0)] * (-1 - dim)))


def _norm(op: str, norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _SWAPPED:
        raise RuntimeError(
            f"fft.{op}: invalid normalization mode {norm!r}; use 'forward', 'backward' or 'ortho'"
        )
    return norm


def _floating(op: str, input: Tensor) -> Tensor:
    out = to_floating(input)
    if out.itemsize < 4:
        raise RuntimeError(f"fft.{op}: unsupported dtype {input.dtype}; convert it with .float()")
    return out


def _complex(op: str, input: Tensor) -> Tensor:
    x = _floating(op, input)
    return cast(x, dtypes.promote_types(x.dtype, dtypes.complex64))


def _real(op: str, input: Tensor) -> Tensor:
    if input.is_complex():
        raise RuntimeError(f"fft.{op}: expects a real input tensor, but got {input.dtype}")
    return _floating(op, input)


def _length(op: str, n: int | None, default: int) -> int:
    n = default if n is None else n
    if n < 1:
        raise RuntimeError(f"fft.{op}: invalid number of data points ({n}) specified")
    return n


def _sizes(
    op: str, input: Tensor, s: Shape | None, dim: Dims
) -> tuple[tuple[int, ...], list[int | None]]:
    """The dimensions counted from the end, and the size wanted of each (None: as it is)."""
    if not input.ndim and dim is not None and dim != ():
        first = dim if isinstance(dim, int) else dim[0]
        raise IndexError(f"fft.{op}: dimension specified as {first} but tensor has no dimensions")
    if dim is None and s is not None:
        dims = tuple(range(-len(s), 0))
    else:
        dims = canonical_dims(f"fft.{op}", dim, input.ndim)
        if not input.ndim and dim is not None:
            raise IndexError(
                f"fft.{op}: dimension specified as {dim}, but tensor has no dimensions"
            )
    sizes = [None if s is None or n == -1 else n for n in (dims if s is None else s)]
    if len(sizes) != len(dims) or len(dims) > input.ndim:
        raise RuntimeError(
            f"fft.{op}: when given, dim and s must have one length, at most {input.ndim}; got "
            f"s={s} and dim={dim}"
        )
    return dims, sizes


# --- of complex numbers ---------------------------------------------------------------------------


def _one(op: str, input: Tensor, n: int | None, dim: int, norm: str | None, inv: bool) -> Tensor:
    x, d = _complex(op, input), canonical_dim(f"fft.{op}", dim, input.ndim)
    x = _fit(x, d, _length(op, n, x.shape[d]))
    return _c2c(x, dims=(d,), inverse=inv, norm=_norm(op, norm))


def _several(
    op: str, input: Tensor, s: Shape | None, dim: Dims, norm: str | None, inv: bool
) -> Tensor:
    x = _complex(op, input)
    dims, sizes = _sizes(op, x, s, dim)
    for d, n in zip(dims, sizes, strict=True):
        x = _fit(x, d, _length(op, n, x.shape[d]))
    return _c2c(x, dims=dims, inverse=inv, norm=_norm(op, norm)) if dims else x


@numpy_names
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along a dimension, cut or filled up with zeros to n elements.

    ``norm`` divides the transform (``"forward"``), its inverse (``"backward"``, the default) or
    each by the square root (``"ortho"``) of the number of elements.

    >>> import chainrule
    >>> chainrule.fft.fft(chainrule.tensor([1.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _one("fft", input, n, dim, norm, False)


@numpy_names
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`fft`."""
    return _one("ifft", input, n, dim, norm, True)


@numpy_names
def fftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """The transform along several dimensions (all, or the last ones that ``s`` gives sizes of)."""
    return _several("fftn", input, s, dim, norm, False)


@numpy_names
def ifftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`fftn`."""
    return _several("ifftn", input, s, dim, norm, True)


@numpy_names
def fft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """The transform along two dimensions."""
    return _several("fft2", input, s, dim, norm, False)


@numpy_names
def ifft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse of :func:`fft2`."""
    return _several("ifft2", input, s, dim, norm, True)


# --- of real numbers ------------------------------------------------------------------------------


@numpy_names
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n // 2 + 1 terms of the transform of real numbers: the others are conjugates."""
    x, d = _real("rfft", input), canonical_dim("fft.rfft", dim, input.ndim)
    x = _fit(x, d, _length("rfft", n, x.shape[d]))
    return _r2c(x, dim=d, norm=_norm("rfft", norm))


@numpy_names
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`: n real numbers (an even number, if n is not given)."""
    x, d = _complex("irfft", input), canonical_dim("fft.irfft", dim, input.ndim)
    n = _length("irfft", n, 2 * (x.shape[d] - 1))
    return _c2r(_fit(x, d, n // 2 + 1), n=n, dim=d, norm=_norm("irfft", norm))


@numpy_names
def rfftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """:func:`rfft` along the last of several dimensions, then :func:`fft` along the others."""
    x = _real("rfftn", input)
    dims, sizes = _sizes("rfftn", x, s, dim)
    if not dims:
        raise RuntimeError("fft.rfftn: must transform at least one axis")
    for d, n in zip(dims, sizes, strict=True):
        x = _fit(x, d, _length("rfftn", n, x.shape[d]))
    out = _r2c(x, dim=dims[-1], norm=_norm("rfftn", norm))
    if len(dims) == 1:
        return out
    return _c2c(out, dims=dims[:-1], inverse=False, norm=_norm("rfftn", norm))


@numpy_names
def irfftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`rfftn`."""
    x = _complex("irfftn", input)
    dims, sizes = _sizes("irfftn", x, s, dim)
    if not dims:
        raise RuntimeError("fft.irfftn: must transform at least one axis")
    *others, last = dims
    for d, n in zip(others, sizes[:-1], strict=True):
        x = _fit(x, d, _length("irfftn", n, x.shape[d]))
    if others:
        x = _c2c(x, dims=tuple(others), inverse=True, norm=_norm("irfftn", norm))
    return irfft(x, sizes[-1], last, norm)


@numpy_names
def rfft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`rfftn` along two dimensions."""
    return rfftn(input, s, dim, norm)


@numpy_names
def irfft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse of :func:`rfft2`."""
    return irfftn(input, s, dim, norm)


# --- to real numbers ------------------------------------------------------------------------------


@numpy_names
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform, n real numbers, of a signal of which half is given and the rest conjugate."""
    return irfft(conj(_complex("hfft", input)), n, dim, _SWAPPED[_norm("hfft", norm)])


@numpy_names
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`hfft`."""
    return conj(rfft(input, n, dim, _SWAPPED[_norm("ihfft", norm)]))


@numpy_names
def hfftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """:func:`fft` along all but the last of several dimensions, then :func:`hfft`."""
    return irfftn(conj(_complex("hfftn", input)), s, dim, _SWAPPED[_norm("hfftn", norm)])


@numpy_names
def ihfftn(
    input: Tensor, s: Shape | None = None, dim: Dims = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`hfftn`."""
    return conj(rfftn(input, s, dim, _SWAPPED[_norm("ihfftn", norm)]))


@numpy_names
def hfft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`hfftn` along two dimensions."""
    return hfftn(input, s, dim, norm)


@numpy_names
def ihfft2(
    input: Tensor, s: Shape | None = None, dim: Dims = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse of :func:`hfft2`."""
    return ihfftn(input, s, dim, norm)


# --- frequencies ----------------------------------------------------------------------------------


@placed
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """The frequencies of the terms of :func:`fft` for n samples at distance d.

    >>> import chainrule
    >>> chainrule.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    steps = arange(n, dtype=dtype or dtypes.get_default_dtype(), device=device, **memory)
    out = (steps - n * cast(steps >= (n + 1) // 2, steps.dtype)) / (n * d)
    return out.requires_grad_(requires_grad)


@placed
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """The frequencies of the terms of :func:`rfft` for n samples at distance d."""
    steps = arange(n // 2 + 1, dtype=dtype or dtypes.get_default_dtype(), device=device, **memory)
    return (steps / (n * d)).requires_grad_(requires_grad)


@numpy_names
def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The terms in another order: frequency 0 in the middle of these dimensions."""
    dims = canonical_dims("fft.fftshift", dim, input.ndim)
    return roll(input, tuple(input.shape[d] // 2 for d in dims), dims)


@numpy_names
def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    dims = canonical_dims("fft.ifftshift", dim, input.ndim)
    return roll(input, tuple((input.shape[d] + 1) // 2 for d in dims), dims)
