"""Records of Fourier transforms: real and imaginary parts, of complex and of real inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, normal

__all__ = ["SAMPLES"]


def parts(out: Any) -> list[Any]:
    """The real and imaginary parts: records differentiate real results."""
    return [(out * 1).real, (out * 1).imag]


def in_parts(name: str) -> Callable[..., Any]:
    """NumPy's function, its result in parts."""
    return lambda *args, **kwargs: parts(getattr(np.fft, name)(*args, **kwargs))


def to_complex(x: Any, y: Any, *rest: Any) -> tuple[Any, ...]:
    """Two real inputs as one complex one."""
    return (x + 1j * y, *rest)


def two(*shape: int) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    return lambda r: (r.normal(size=shape), r.normal(size=shape))


def numpy_names(kwargs: dict[str, Any]) -> dict[str, Any]:
    """NumPy says axis for one dimension and axes for several."""
    out = {k: v for k, v in kwargs.items() if k != "dim"}
    if "dim" in kwargs:
        out["axis" if isinstance(kwargs["dim"], int) else "axes"] = kwargs["dim"]
    return out


def sample(name: str, args: Any, kinds: str, **kwargs: Any) -> Sample:
    """``kinds``: "cr" is a transform of complex numbers to real ones."""
    reference = getattr(np.fft, name, None)
    to_parts = parts if kinds[1] == "c" else None
    return Sample(
        f"fft.{name}",
        args,
        kwargs,
        reference=reference
        and (
            lambda *args, **given: (to_parts or (lambda y: y))(
                reference(*args, **numpy_names(given))
            )
        ),
        prepare=to_complex if kinds[0] == "c" else None,
        pick=to_parts,
        second_order=False,
        note=f"{kinds} {kwargs}".replace(" ", "") if kwargs else kinds,
    )


SAMPLES = [
    sample("fft", normal(3, 5), "rc"),
    sample("fft", two(3, 4), "cc"),
    sample("fft", two(3, 4), "cc", n=6, dim=0, norm="ortho"),
    sample("fft", two(5, 2), "cc", n=3, dim=0, norm="forward"),
    sample("ifft", two(3, 4), "cc"),
    sample("ifft", two(3, 4), "cc", n=5, norm="forward"),
    sample("fft2", two(2, 3, 4), "cc"),
    sample("ifft2", two(2, 3, 4), "cc", norm="ortho"),
    sample("fftn", two(2, 3, 2), "cc"),
    sample("fftn", two(2, 3, 2), "cc", s=(3, 2), dim=(0, 1)),
    sample("ifftn", two(2, 3, 2), "cc"),
    sample("rfft", normal(3, 4), "rc"),
    sample("rfft", normal(3, 5), "rc", norm="ortho"),
    sample("rfft", normal(3, 4), "rc", n=5, dim=0, norm="forward"),
    sample("irfft", two(3, 3), "cr"),
    sample("irfft", two(3, 3), "cr", n=5, norm="ortho"),
    sample("irfft", two(4, 2), "cr", n=4, dim=0, norm="forward"),
    sample("rfft2", normal(2, 3, 4), "rc"),
    sample("irfft2", two(2, 3, 4), "cr"),
    sample("rfftn", normal(2, 3, 4), "rc"),
    sample("rfftn", normal(2, 3, 4), "rc", s=(3, 5), dim=(0, 2), norm="ortho"),
    sample("irfftn", two(2, 3, 3), "cr"),
    sample("irfftn", two(2, 3, 3), "cr", s=(2, 5), dim=(1, 2)),
    sample("hfft", two(3, 3), "cr"),
    sample("hfft", two(3, 3), "cr", n=5, norm="ortho"),
    sample("ihfft", normal(3, 4), "rc"),
    sample("hfft2", two(2, 3, 3), "cr"),
    sample("ihfft2", normal(2, 3, 4), "rc", norm="forward"),
    sample("hfftn", two(2, 3, 3), "cr"),
    sample("ihfftn", normal(2, 3, 4), "rc"),
    sample("fftshift", normal(3, 4), "rr"),
    sample("ifftshift", normal(3, 5), "rr", dim=(1,)),
    *[
        Sample(
            "stft",
            lambda r: (r.normal(size=(2, 12)), 4),
            {"return_complex": True, **kwargs},
            pick=parts,
            second_order=False,
            note=",".join(kwargs),
        )
        for kwargs in (
            {},
            {"hop_length": 3, "normalized": True},
            {"center": False, "onesided": False},
            {"win_length": 3, "pad_mode": "constant"},
        )
    ],
    Sample(
        "stft",
        lambda r: (r.normal(size=12), 4, 2, 4, r.uniform(0.5, 1.0, size=4)),
        {"return_complex": True},
        pick=parts,
        note="window",
    ),
    Sample("istft", two(3, 5), {"n_fft": 4}, prepare=to_complex, second_order=False),
    Sample(
        "istft",
        two(2, 4, 5),
        {"n_fft": 4, "hop_length": 2, "onesided": False, "length": 7},
        prepare=to_complex,
        second_order=False,
        note="whole",
    ),
    Sample("conj_physical", normal(3), second_order=False),
    Sample("resolve_conj", normal(3), second_order=False),
    Sample("resolve_neg", normal(3), second_order=False),
    Sample("narrow_copy", lambda r: (r.normal(size=(3, 4)), 1, 1, 2), differentiable=False),
    Sample("Tensor.sum_to_size", lambda r: (r.normal(size=(2, 3, 4)), (3, 1)), second_order=False),
    Sample("fft.fftfreq", lambda r: (5, 0.5), differentiable=False, reference=np.fft.fftfreq),
    Sample("fft.fftfreq", lambda r: (6,), differentiable=False, note="even"),
    Sample("fft.rfftfreq", lambda r: (5, 2.0), differentiable=False, reference=np.fft.rfftfreq),
]
