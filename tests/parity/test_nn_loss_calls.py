"""Losses at borders, with the old flags, and wrong calls, as PyTorch has them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from parity.losses import agree

import chainrule
from chainrule.nn import functional as F


torch = pytest.importorskip("torch")


TF = torch.nn.functional


def normal(*shape: int, count: int = 1, seed: int = 0) -> list[np.ndarray]:
    r = np.random.default_rng([seed, *shape])
    return [np.asarray(2 * r.normal(size=shape)) for _ in range(count)]


# --- borders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"])
def test_gradients_at_kinks_and_far_out(name: str) -> None:
    x = np.array([0.0, 1.0, -1.0, 2.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-30])
    y = np.zeros(10)
    if name == "l1_loss":
        x = x[~np.isnan(x)]  # the sign of NaN is NaN here
        y = y[: len(x)]
    ours, theirs = (
        chainrule.as_tensor(x.copy()).requires_grad_(),
        torch.tensor(x, requires_grad=True),
    )
    a = getattr(F, name)(ours, chainrule.as_tensor(y), reduction="none")
    b = getattr(TF, name)(theirs, torch.tensor(y), reduction="none")
    np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=1e-12)
    a.sum().backward()
    b.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-12)


def test_margins_just_met() -> None:
    """Where a hinge begins, the derivative is that of its inside."""
    x, zero = np.array([1.0, -1.0, 0.0]), np.zeros(3)
    agree("hinge_embedding_loss", [x], [np.array([-1, -1, -1])], reduction="sum")
    agree("margin_ranking_loss", [x, zero], [np.array([1, 1, 1])], margin=1.0, reduction="sum")


# --- the two old flags ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size_average", "reduce"), list(itertools.product([None, True, False], repeat=2))[1:]
)
def test_size_average_and_reduce(size_average: bool | None, reduce: bool | None) -> None:
    flags = {"size_average": size_average, "reduce": reduce}
    pair = normal(4, 3, count=2)
    with pytest.warns(UserWarning, match="will be deprecated"):
        expected = torch.nn.MSELoss(**flags).reduction
    with pytest.warns(UserWarning, match=f"use reduction='{expected}'"):
        assert chainrule.nn.MSELoss(**flags).reduction == expected
    with pytest.warns(UserWarning, match=f"use reduction='{expected}'"):
        F.l1_loss(*map(chainrule.as_tensor, pair), **flags)
    agree("mse_loss", pair, **flags)
    agree("cross_entropy", pair[:1], [np.array([0, 1, 2, 0])], **flags)


# --- wrong calls ----------------------------------------------------------------------------------


X, K = np.ones((4, 3)), np.array([0, 1, 2, 0])


WRONG: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "beta": ("smooth_l1_loss", (X, X), {"beta": -1.0}),
    "delta": ("huber_loss", (X, X), {"delta": 0.0}),
    "reduction": ("mse_loss", (X, X), {"reduction": "average"}),
    "batchmean": ("l1_loss", (X, X), {"reduction": "batchmean"}),
    "weight of mse": ("mse_loss", (X, X), {"weight": np.ones(3)}),
    "weight of huber": ("huber_loss", (X, X), {"weight": np.ones(3)}),
    "negative variance": ("gaussian_nll_loss", (X, X, -X), {}),
    "negative number": ("gaussian_nll_loss", (X, X, -1.0), {}),
    "variance's shape": ("gaussian_nll_loss", (X, X, np.ones(2)), {}),
    "integers in kl_div": ("kl_div", (X, X.astype(int)), {"reduction": "sum"}),
    "bce's weight": ("binary_cross_entropy", (X / 2, X, np.ones(4)), {}),
    "bce's sizes": ("binary_cross_entropy", (X / 2, X[:, :1]), {}),
    "logits' weight": ("binary_cross_entropy_with_logits", (X, X, np.ones(4)), {}),
    "pos_weight": ("binary_cross_entropy_with_logits", (X, X), {"pos_weight": np.ones(4)}),
    "class": ("multi_margin_loss", (X, K + 1), {}),
    "p": ("multi_margin_loss", (X, K), {"p": 3}),
    "too few classes": ("multi_margin_loss", (X, K[:3]), {}),
    "weight's size": ("multi_margin_loss", (X, K), {"weight": np.ones(2)}),
    "weight's rank": ("multi_margin_loss", (X, K), {"weight": np.ones((2, 2))}),
    "int32": ("multi_margin_loss", (X, K.astype(np.int32)), {}),
    "three dimensions": ("multi_margin_loss", (X[None], K), {}),
    "labels' shape": ("multilabel_margin_loss", (X, K), {}),
    "label too large": ("multilabel_margin_loss", (X, np.full((4, 3), 3)), {}),
    "label too small": ("multilabel_margin_loss", (X, np.full((4, 3), -2)), {}),
    "labels of numbers": ("multilabel_margin_loss", (X, X), {}),
    "embedding's labels": ("cosine_embedding_loss", (X, X, X), {}),
    "one label": ("cosine_embedding_loss", (X, X, np.ones(())), {}),
    "margin": ("triplet_margin_loss", (X, X, X), {"margin": 0.0}),
    "another margin": ("triplet_margin_with_distance_loss", (X, X, X), {"margin": -1.0}),
    "distance": ("pairwise_distance", (X, X[:2]), {}),
    "cosine": ("cosine_similarity", (X, X[:2]), {}),
    "cosine of integers": ("cosine_similarity", (X.astype(int), X.astype(int)), {}),
    "cosine's dim": ("cosine_similarity", (X, X), {"dim": 2}),
    "mse of integers": ("mse_loss", (X.astype(int), X.astype(int)), {}),
    "blank": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones((1, 1), int), (3,), (1,)), {"blank": 2}),
    "input_lengths": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones((1, 1), int), (4,), (1,)), {}),
    "negative length": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones((1, 1), int), (-1,), (1,)), {}),
    "target_lengths": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones((1, 1), int), (3,), (2,)), {}),
    "lengths": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones((1, 1), int), (3, 3), (1,)), {}),
    "joined": ("ctc_loss", (np.zeros((3, 1, 2)), np.ones(2, int), (3,), (1,)), {}),
    "rank": ("ctc_loss", (np.zeros(3), np.ones(1, int), (3,), (1,)), {}),
    "empty": ("ctc_loss", (np.zeros((3, 0, 2)), np.ones((0, 1), int), (), ()), {}),
    "integers in ctc": (
        "ctc_loss",
        (np.zeros((3, 1, 2), int), np.ones((1, 1), int), (3,), (1,)),
        {},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_raise_the_same(case: str) -> None:
    name, args, settings = WRONG[case]

    def raised(library: Any, make: Any) -> type[Exception]:
        def made(x: Any) -> Any:
            return make(np.array(x)) if isinstance(x, np.ndarray) else x

        with pytest.raises(Exception) as caught:  # noqa: PT011
            getattr(library, name)(*map(made, args), **{k: made(v) for k, v in settings.items()})
        return caught.type

    assert raised(F, chainrule.as_tensor) is raised(TF, torch.from_numpy)
