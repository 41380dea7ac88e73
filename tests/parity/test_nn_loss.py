"""Losses of numbers, classes, distances and sequences against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.compare import assert_agree
from parity.losses import agree

import chainrule
from chainrule.nn import functional as F


torch = pytest.importorskip("torch")


TF = torch.nn.functional


each_reduction = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


ELEMENTWISE_SHAPES = [(), (5,), (4, 3), (2, 3, 2), (0, 3)]


def normal(*shape: int, count: int = 1, seed: int = 0) -> list[np.ndarray]:
    r = np.random.default_rng([seed, *shape])
    return [np.asarray(2 * r.normal(size=shape)) for _ in range(count)]


def signs(*shape: int) -> np.ndarray:
    return np.asarray(2 * np.random.default_rng(5).integers(0, 2, size=shape) - 1)


def positive(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(6).uniform(0.3, 3.0, size=shape))


# --- numbers --------------------------------------------------------------------------------------


@each_reduction
@pytest.mark.parametrize("shape", ELEMENTWISE_SHAPES, ids=str)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("l1_loss", {}),
        ("mse_loss", {}),
        ("smooth_l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.4}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {}),
        ("huber_loss", {"delta": 0.4}),
        ("huber_loss", {"delta": 3.0}),
        ("poisson_nll_loss", {}),
    ],
    ids=str,
)
def test_elementwise(name: str, settings: Any, shape: tuple[int, ...], reduction: str) -> None:
    linear = name == "l1_loss" or settings.get("beta") == 0
    pair = normal(*shape, count=2)
    agree(name, pair, reduction=reduction, second_order=not linear, **settings)


@each_reduction
@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "huber_loss"])
def test_weights_of_elements(name: str, reduction: str) -> None:
    agree(
        name,
        normal(4, 3, count=2),
        reduction=reduction,
        weight=positive(4, 3),
        second_order=name != "l1_loss",
    )


@each_reduction
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("log_input", [False, True])
def test_poisson(log_input: bool, full: bool, reduction: str) -> None:
    """Targets on both sides of 1, where Stirling's formula begins."""
    rate = normal(4, 3)[0] if log_input else positive(4, 3)
    target = np.array([[0.0, 0.5, 1.0], [1.5, 2.0, 7.0], [3.0, 0.2, 9.0], [1.0, 4.0, 0.0]])
    agree("poisson_nll_loss", [rate], [target], log_input=log_input, full=full, reduction=reduction)


@each_reduction
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("var", [(4, 3), (4,), (4, 1), (1, 3)], ids=str)
def test_gaussian(var: tuple[int, ...], full: bool, reduction: str) -> None:
    variables = [*normal(4, 3, count=2), positive(*var)]
    agree("gaussian_nll_loss", variables, full=full, reduction=reduction)


@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_a_variance_below_eps_passes_its_gradient(eps: float) -> None:
    var = np.array([0.0, 1e-9, 0.1, 0.7])
    agree("gaussian_nll_loss", [*normal(4, count=2), var], eps=eps)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (5,), (2, 3, 2)], ids=str)
def test_kl_div(shape: tuple[int, ...], log_target: bool, reduction: str) -> None:
    x, y = normal(*shape, count=2)
    target = y if log_target else np.exp(y)
    agree("kl_div", [x, target], log_target=log_target, reduction=reduction)


def test_kl_div_of_certain_events() -> None:
    """0 log 0 is 0."""
    x = normal(4)[0]
    agree("kl_div", [x], [np.array([0.0, 1.0, 0.0, 0.5])], reduction="sum")


# --- classes --------------------------------------------------------------------------------------


@each_reduction
@pytest.mark.parametrize("shape", ELEMENTWISE_SHAPES, ids=str)
def test_labels_of_two_signs(shape: tuple[int, ...], reduction: str) -> None:
    x = normal(*shape)
    agree("soft_margin_loss", x, [signs(*shape)], reduction=reduction)
    agree("hinge_embedding_loss", x, [signs(*shape)], reduction=reduction, margin=0.7)
    agree("hinge_embedding_loss", x, [np.zeros(shape, int)], reduction=reduction)
    pair = normal(*shape, count=2)
    agree("margin_ranking_loss", pair, [signs(*shape)], reduction=reduction, margin=0.3)


@each_reduction
@pytest.mark.parametrize("weight", [None, (4, 3), (3,), (4, 1), ()], ids=str)
@pytest.mark.parametrize("pos_weight", [None, (3,), (4, 3)], ids=str)
def test_two_classes(weight: Any, pos_weight: Any, reduction: str) -> None:
    x, y = normal(4, 3)[0], np.random.default_rng(0).uniform(size=(4, 3))
    given = {"weight": None if weight is None else positive(*weight), "reduction": reduction}
    agree("binary_cross_entropy", [positive(4, 3) / 4, y], **given)
    more = {"pos_weight": None if pos_weight is None else positive(*pos_weight)}
    agree("binary_cross_entropy_with_logits", [x, y], **given, **more)


@each_reduction
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (3,), (2, 3, 4), (2, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("ignore_index", [-100, 1])
def test_many_classes(
    shape: tuple[int, ...], weighted: bool, ignore_index: int, reduction: str
) -> None:
    """By position, where size_average and reduce stand between."""
    x = normal(*shape)
    index_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = np.asarray(np.random.default_rng(2).integers(0, 3, size=index_shape))
    if len(shape) == 1:
        target = np.asarray(2)
    weight = positive(3) if weighted else None
    agree("nll_loss", x, [target, weight, None, ignore_index, None, reduction])
    for smoothing in (0.0, 0.2):
        agree("cross_entropy", x, [target, weight, None, ignore_index, None, reduction, smoothing])


@each_reduction
@pytest.mark.parametrize("shape", [(5, 4), (4,), (1, 1), (0, 3)], ids=str)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("margin", [1.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_multi_margin(
    shape: tuple[int, ...], p: int, margin: float, weighted: bool, reduction: str
) -> None:
    target = np.asarray(np.random.default_rng(3).integers(0, shape[-1], size=shape[:-1]))
    weight = positive(shape[-1]) if weighted else None
    agree(
        "multi_margin_loss",
        normal(*shape),
        [target, p, margin, weight],
        reduction=reduction,
        second_order=False,
    )
    if len(shape) == 1:
        agree(
            "multi_margin_loss",
            normal(*shape),
            [target.reshape(1), p, margin, weight],
            reduction=reduction,
            second_order=False,
        )


@each_reduction
@pytest.mark.parametrize(
    "labels",
    [
        [[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3], [1, 1, -1, 0]],
        [0, 2, -1, 0],
        [-1, -1, -1],
        [[0]],
        np.zeros((0, 3), int),
    ],
    ids=str,
)
def test_multilabel_margin(labels: Any, reduction: str) -> None:
    """Lists that end early, never, at once; labels named twice."""
    target = np.array(labels)
    agree(
        "multilabel_margin_loss",
        normal(*target.shape),
        [target],
        reduction=reduction,
        second_order=False,
    )


@each_reduction
@pytest.mark.parametrize("weight", [None, (3,), (4, 3)], ids=str)
def test_multilabel_soft_margin(weight: Any, reduction: str) -> None:
    target = np.random.default_rng(4).integers(0, 2, size=(4, 3)).astype(float)
    given = None if weight is None else positive(*weight)
    agree("multilabel_soft_margin_loss", normal(4, 3), [target, given], reduction=reduction)


# --- distances ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "dim"),
    [
        ((4, 3), (4, 3), 1),
        ((4, 3), (4, 3), 0),
        ((3,), (3,), 0),
        ((2, 3, 4), (2, 3, 4), -1),
        ((2, 1, 4), (3, 4), 2),
        ((2, 1, 4), (3, 4), 1),
        ((3,), (4, 3), -1),
        ((4, 3), (1, 3), 1),
    ],
    ids=str,
)
def test_cosine_similarity(first: Any, second: Any, dim: int) -> None:
    x, y = normal(*first)[0], normal(*second, seed=1)[0]
    agree("cosine_similarity", [x, y], dim=dim)
    agree("cosine_similarity", [1e-5 * x, y], dim=dim, eps=0.1)


def test_cosine_similarity_of_nothing() -> None:
    """A vector of zeros has no direction; the derivative is what PyTorch makes of it."""
    x, y = normal(2, 3, count=2)
    x[0] = 0
    agree("cosine_similarity", [x, y], second_order=False)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("first", "second"),
    [((4, 3), (4, 3)), ((3,), (4, 3)), ((2, 4, 3), (4, 3)), ((3,), (3,))],
    ids=str,
)
def test_pairwise_distance(first: Any, second: Any, keepdim: bool, p: float) -> None:
    x, y = normal(*first)[0], normal(*second, seed=1)[0]
    agree("pairwise_distance", [x, y], p=p, keepdim=keepdim, second_order=p in (2, 3))


@each_reduction
@pytest.mark.parametrize("shape", [(4, 3), (3,)], ids=str)
@pytest.mark.parametrize("margin", [0.0, 0.3, -0.5])
def test_cosine_embedding(shape: tuple[int, ...], margin: float, reduction: str) -> None:
    agree(
        "cosine_embedding_loss",
        normal(*shape, count=2),
        [signs(*shape[:-1])],
        margin=margin,
        reduction=reduction,
    )


@each_reduction
@pytest.mark.parametrize("shape", [(5, 3), (3,)], ids=str)
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_triplets(shape: tuple[int, ...], swap: bool, p: float, reduction: str) -> None:
    settings = {"swap": swap, "reduction": reduction}
    agree(
        "triplet_margin_loss",
        normal(*shape, count=3),
        p=p,
        margin=2.0,
        second_order=p > 1,
        **settings,
    )
    agree("triplet_margin_with_distance_loss", normal(*shape, count=3), margin=2.0, **settings)


# --- sequences ------------------------------------------------------------------------------------


@each_reduction
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_ctc(seed: int, joined: bool, reduction: str) -> None:
    """Random lengths, also 0, and targets that do not fit into their input.

    The gradient is compared by the logits: PyTorch's gradient by log-probabilities takes it for
    granted that they are normalized.
    """
    r = np.random.default_rng(seed)
    steps, n, classes, longest = (
        int(r.integers(*limits)) for limits in ((1, 8), (1, 5), (2, 5), (1, 4))
    )
    blank = int(r.integers(0, classes))
    labels = r.choice([k for k in range(classes) if k != blank], size=(n, longest))
    inputs, outputs = r.integers(0, steps + 1, size=n), r.integers(0, longest + 1, size=n)
    if joined:
        labels = np.concatenate([row[:k] for row, k in zip(labels, outputs, strict=True)])
    lengths = tuple(map(int, inputs)), tuple(map(int, outputs))

    def of_logits(library: Any, x: Any, target: Any, **settings: Any) -> Any:
        return library.ctc_loss(x.log_softmax(-1), target, *lengths, blank, reduction, **settings)

    x = r.normal(size=(steps, n, classes))
    ours, theirs = chainrule.as_tensor(labels), torch.from_numpy(labels)
    with chainrule.no_grad(), torch.no_grad():
        a = of_logits(F, chainrule.as_tensor(x), ours)
        b = of_logits(TF, torch.from_numpy(x), theirs)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    assert_agree(
        lambda x: of_logits(F, x, ours, zero_infinity=True),
        lambda x: of_logits(TF, x, theirs, zero_infinity=True),
        [x],
        second_order=False,
    )
