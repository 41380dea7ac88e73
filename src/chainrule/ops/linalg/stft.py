"""Short-time Fourier transforms: the spectra of overlapping pieces of a signal, and back."""

from __future__ import annotations

from chainrule.ops.creation.patterns import ones
from chainrule.ops.elementwise.complex_numbers import real
from chainrule.ops.index.reading import narrow
from chainrule.ops.linalg.fourier import fft, ifft, irfft, rfft
from chainrule.ops.shape.padding import _unfold_place, pad, unfold
from chainrule.ops.shape.strided import view_as_real
from chainrule.ops.shape.views import reshape, squeeze, unsqueeze
from chainrule.tensor import Tensor

__all__ = ["istft", "stft"]
METHODS = tuple(__all__)
INPLACE: tuple[str, ...] = ()


def _window(op: str, window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor:
    """The window, filled up with zeros on both sides to n_fft places."""
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{op}: expected 0 < win_length <= n_fft = {n_fft}, got {length}")
    if window is None:
        window = ones(length, dtype=real(like).dtype, device=like.device)
    if tuple(window.shape) != (length,):
        raise RuntimeError(
            f"{op}: expected a 1D window tensor of size equal to win_length={length}, got shape "
            f"{tuple(window.shape)}"
        )
    left = (n_fft - length) // 2
    return pad(window, (left, n_fft - length - left)) if length < n_fft else window


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """The spectra (..., frequencies, pieces) of pieces of n_fft samples, hop_length apart, of a
    signal (L,) or (N, L).

    ``center`` puts the middle of the pieces on the samples, filling up the signal at both ends
    (``pad_mode``). With ``return_complex=False``, real and imaginary parts are a last dimension.

    >>> import chainrule
    >>> chainrule.stft(chainrule.ones(8), 4, return_complex=True).shape
    chainrule.Size([3, 9])
    """
    if return_complex is None:
        if not input.is_complex():
            raise RuntimeError(
                "stft: requires the return_complex parameter be given for real inputs"
            )
        return_complex = True
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _window("stft", window, n_fft if win_length is None else win_length, n_fft, input)
    x = unsqueeze(input, 0) if input.ndim == 1 else input
    if x.ndim != 2:
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, got shape {tuple(input.shape)}")
    if center:
        x = squeeze(pad(unsqueeze(x, 1), (n_fft // 2, n_fft // 2), pad_mode), 1)
    if not 0 < n_fft <= x.shape[-1] or hop <= 0:
        raise RuntimeError(
            f"stft: expected 0 < n_fft <= {x.shape[-1]} and hop_length > 0, got n_fft={n_fft}, "
            f"hop_length={hop}"
        )
    pieces = unfold(x, -1, n_fft, hop) * weights
    half = not input.is_complex() if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    out = (rfft if half else fft)(pieces, norm=norm).mT
    out = out if return_complex else view_as_real(out)
    return squeeze(out, 0) if input.ndim == 1 else out


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which these are the spectra by :func:`stft`: pieces are added where they
    overlap, and divided by the sum of the squares of the window there."""
    if not input.is_complex():
        raise RuntimeError("istft: requires a complex-valued input tensor, as stft returns")
    hop = n_fft // 4 if hop_length is None else hop_length
    weights = _window("istft", window, n_fft if win_length is None else win_length, n_fft, input)
    x = unsqueeze(input, 0) if input.ndim == 2 else input
    if x.ndim != 3:
        raise RuntimeError(
            f"istft: expected a tensor with 2 or 3 dimensions, got shape {tuple(input.shape)}"
        )
    norm = "ortho" if normalized else "backward"
    if return_complex:
        pieces = ifft(x.mT, norm=norm)
    else:  # the other half of the terms are conjugates, whether they are given or not
        pieces = irfft(narrow(x, 1, 0, n_fft // 2 + 1).mT, n_fft, norm=norm)
    pieces = pieces * weights
    count = pieces.shape[1]
    total = n_fft + hop * (count - 1)
    place = {"dim": -1, "size": n_fft, "step": hop}
    out = _unfold_place(pieces, shape=(pieces.shape[0], total), **place)
    squares = (weights * weights).expand((count, n_fft))
    envelope = _unfold_place(squares, shape=(total,), **place)
    start = n_fft // 2 if center else 0
    end = total - start if center else total
    if length is not None:
        end = min(start + length, total)
    shown = narrow(envelope, 0, start, end - start)
    if float(shown.abs().min()) < 1e-11:
        raise RuntimeError(
            "istft: the window overlap add is 0 somewhere; the signal is not known there"
        )
    out = narrow(out, -1, start, end - start) / shown
    if length is not None and length > end - start:
        out = pad(out, (0, length - (end - start)))
    return reshape(out, (out.shape[-1],)) if input.ndim == 2 else out
