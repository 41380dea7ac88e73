"""Records of copies of views, of histograms, and of functions that few programs call."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.record import Args, Sample, ints, normal

__all__ = ["SAMPLES"]


def then(args: Args, *more: Any) -> Args:
    """An input, then arguments that are the same in every call."""
    return lambda r: (*args(r), *more)


def grouped(shape: tuple[int, ...], dim: int, count: int, reduce: str) -> Args:
    """An input, a dimension, the numbers of groups, slices for them, and how to reduce these."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        own = list(shape)
        own[dim] = count
        index = r.integers(0, shape[dim], size=count)
        return r.normal(size=shape), dim, index, r.normal(size=own), reduce

    return args


COPIES = [
    Sample(name, args, second_order=False)
    for name, args in {
        "alias_copy": normal(2, 3),
        "as_strided_copy": then(normal(6), (2, 3), (1, 2)),
        "diagonal_copy": normal(3, 3),
        "expand_copy": then(normal(1, 3), (2, 3)),
        "permute_copy": then(normal(2, 3), (1, 0)),
        "select_copy": then(normal(2, 3), 1, 2),
        "slice_copy": then(normal(5, 2), 0, 1, 5, 2),
        "split_copy": then(normal(5, 2), 2),
        "split_with_sizes_copy": then(normal(5, 2), (2, 3)),
        "squeeze_copy": normal(2, 1, 3),
        "t_copy": normal(2, 3),
        "transpose_copy": then(normal(2, 3), 0, 1),
        "unbind_copy": normal(2, 3),
        "unfold_copy": then(normal(5), 0, 3, 1),
        "unsqueeze_copy": then(normal(2, 3), 1),
        "view_copy": then(normal(2, 3), (3, 2)),
    }.items()
] + [
    Sample("detach_copy", normal(2, 3), differentiable=False),
    Sample(
        "view_as_complex_copy",
        normal(3, 2),
        torch="view_as_complex",  # PyTorch's copy has no derivative
        second_order=False,
        pick=lambda y: [y.real, y.imag],
    ),
    Sample(
        "view_as_real_copy",
        lambda r: (r.normal(size=3), r.normal(size=3)),
        prepare=lambda x, y: (x + 1j * y,),
        second_order=False,
    ),
]

SAMPLES = [
    *COPIES,
    *[
        Sample(
            "index_reduce",
            grouped((3, 4), dim, 5, reduce),
            {"include_self": include},
            second_order=reduce == "prod",
            note=f"{reduce}, {dim}, {include}",
        )
        for reduce in ("prod", "mean", "amax", "amin")
        for dim, include in ((0, True), (1, False))
    ],
    Sample("histogram", then(normal(20), 4), differentiable=False, vmap=False),
    Sample(
        "histogram",
        lambda r: (r.normal(size=(4, 5)), np.array([-1.0, -0.5, 0.7, 1.0])),
        {"density": True},
        differentiable=False,
        vmap=False,
        note="limits",
    ),
    Sample(
        "histogramdd",
        then(normal(20, 2), [3, 2]),
        {"range": [-1.0, 1.0, -2.0, 2.0]},
        pick=lambda out: out[0],
        differentiable=False,
        vmap=False,
    ),
    # PyTorch's own has a backward pass that fails; it is linalg.vander, turned around.
    Sample(
        "vander",
        normal(4),
        reference=np.vander,
        torch_call=lambda torch, x: torch.linalg.vander(x).flip(-1),
    ),
    Sample(
        "vander",
        then(normal(4), 3, True),
        reference=np.vander,
        torch_call=lambda torch, x, n, increasing: torch.linalg.vander(x, N=n),
        note="increasing",
    ),
    Sample("vander", then(ints(0, 4, 3), 4), differentiable=False, vmap=False, note="integers"),
    Sample("rsub", lambda r: (r.normal(size=3), r.normal(size=3)), {"alpha": 2}),
    Sample("fill", then(normal(2, 3), 1.5), second_order=False),
    Sample("constant_pad_nd", then(normal(2, 3), (1, 2), 0.5), second_order=False),
    Sample("nonzero_static", ints(0, 3, 4), {"size": 3}, differentiable=False, vmap=False),
    Sample(
        "nonzero_static",
        ints(0, 2, 6),
        {"size": 1},
        note="fewer",
        differentiable=False,
        vmap=False,
    ),
]
