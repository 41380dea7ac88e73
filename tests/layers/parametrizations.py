"""Records of layers whose weight is computed from other tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from layers.record import Layer


def rows(r: np.random.Generator) -> tuple[Any, ...]:
    return (r.normal(size=(4, 3)),)


def images(r: np.random.Generator) -> tuple[Any, ...]:
    return (r.normal(size=(2, 2, 4, 4)),)


def orthogonal(out: int, way: str, **kwargs: Any) -> Callable[[Any], Any]:
    def make(nn: Any) -> Any:
        return nn.utils.parametrizations.orthogonal(nn.Linear(3, out), "weight", way, **kwargs)

    return make


LAYERS = [
    Layer("weight_norm", lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(3, 5)), rows),
    Layer(
        "weight_norm",
        lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(3, 5), dim=None),
        rows,
        note="one norm",
    ),
    Layer(
        "weight_norm",
        lambda nn: nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 3, 3), dim=1),
        images,
        note="convolution",
    ),
    Layer(
        "spectral_norm",
        lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 5)),
        rows,
        exact=False,
    ),
    Layer(
        "spectral_norm",
        lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 5), "bias"),
        rows,
        note="of a vector",
    ),
    Layer(
        "spectral_norm",
        lambda nn: nn.utils.parametrizations.spectral_norm(
            nn.ConvTranspose2d(2, 3, 2), n_power_iterations=3
        ),
        images,
        exact=False,
        note="transposed convolution",
    ),
    Layer("orthogonal", orthogonal(3, "matrix_exp"), rows, note="exp"),
    Layer(
        "orthogonal",
        orthogonal(5, "matrix_exp", use_trivialization=False),
        rows,
        note="exp, not square",
    ),
    Layer("orthogonal", orthogonal(2, "cayley"), rows, note="cayley"),
    # The signs on the diagonal must be 1 and -1 for PyTorch, which cuts 0.9 off to 0;
    # see parity/test_parametrize.py.
    Layer("orthogonal", orthogonal(5, "householder"), rows, torch=False, note="householder"),
    Layer(
        "orthogonal",
        orthogonal(2, "householder", use_trivialization=False),
        rows,
        torch=False,
        note="householder, wide",
    ),
]
