"""Losses of both libraries, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from parity.compare import assert_agree

import chainrule
from chainrule.nn import functional as F


torch = pytest.importorskip("torch")


TF = torch.nn.functional


def agree(
    name: str,
    variables: Sequence[np.ndarray],
    constants: Sequence[Any] = (),
    *,
    second_order: bool = True,
    **settings: Any,
) -> None:
    """Compares a loss as a function of its first arguments; the others, and settings that are
    arrays, are tensors of either library."""
    __tracebackhide__ = True

    def bound(library: Any, make: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
        def made(x: Any) -> Any:
            return make(np.array(x)) if isinstance(x, np.ndarray) else x

        rest = [made(x) for x in constants]
        named = {k: made(v) for k, v in settings.items()}
        return lambda *xs: getattr(library, name)(*xs, *rest, **named)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kl_div's reduction="mean"
        assert_agree(
            bound(F, chainrule.as_tensor), bound(TF, torch.from_numpy), variables, second_order
        )
