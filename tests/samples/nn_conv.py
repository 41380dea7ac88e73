"""Records of true convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.record import Sample
from scipy.signal import convolve

__all__ = ["SAMPLES"]


def reference(x: Any, w: Any, bias: Any = None, **_: Any) -> Any:
    """SciPy's convolution, which flips the kernel, summed over the channels."""
    out = np.stack(
        [
            np.stack(
                [
                    sum(convolve(image[c], kernel[c], mode="valid") for c in range(len(kernel)))
                    for kernel in w
                ]
            )
            for image in x
        ]
    )
    return out if bias is None else out + bias.reshape(-1, *[1] * (x.ndim - 2))


def torch_call(torch: Any, x: Any, w: Any, *bias: Any, **settings: Any) -> Any:
    nd = x.ndim - 2
    function = getattr(torch.nn.functional, f"conv{nd}d")
    return function(x, torch.flip(w, tuple(range(2, nd + 2))), *bias, **settings)


def sample(note: str, x: tuple[int, ...], w: tuple[int, ...], **kwargs: Any) -> Sample:
    def args(r: np.random.Generator) -> tuple[Any, ...]:
        return (r.normal(size=x), r.normal(size=w), r.normal(size=w[0]))

    return Sample(
        "nn.functional.convolve",
        args,
        kwargs,
        None if kwargs else reference,
        torch_call=torch_call,
        note=note,
    )


SAMPLES: list[Sample] = [
    sample("1d", (2, 2, 7), (3, 2, 3)),
    sample("2d", (2, 2, 5, 6), (3, 2, 3, 2)),
    sample("3d", (1, 2, 4, 3, 4), (2, 2, 2, 3, 2)),
    sample("settings", (2, 4, 5, 6), (4, 2, 3, 2), stride=2, padding=1, groups=2),
]
