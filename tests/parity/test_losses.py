"""Softmax and the cross-entropies against PyTorch: value, gradients, second derivatives, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from parity.compare import assert_agree

import chainrule

torch = pytest.importorskip("torch")
F = torch.nn.functional

REDUCTIONS = ["mean", "sum", "none"]
SHAPES = [(5, 3), (1, 4), (3,), (2, 3, 4), (2, 3, 2, 2), (1, 3, 2, 1, 2), (0, 3)]
each_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def targets(r: np.random.Generator, shape: tuple[int, ...], ignore_index: int) -> np.ndarray:
    """Class numbers, some of them to be ignored."""
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = np.asarray(r.integers(0, classes, size=shape[:1] + shape[2:] if shape[1:] else ()))
    return np.where(r.random(target.shape) < 0.3, ignore_index, target) if shape[1:] else target


@each_shape
@each_reduction
@pytest.mark.parametrize("ignore_index", [-100, -1, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_class_numbers(
    shape: tuple[int, ...],
    reduction: str,
    ignore_index: int,
    weighted: bool,
    label_smoothing: float,
) -> None:
    r = np.random.default_rng(len(shape))
    x, target = 3 * r.normal(size=shape), targets(r, shape, ignore_index)
    weight = r.uniform(0.5, 2.0, size=shape[0] if len(shape) == 1 else shape[1])
    settings: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
    ours, theirs = (
        (make(target), make(weight) if weighted else None)
        for make in (chainrule.as_tensor, torch.from_numpy)
    )
    for name, more in (("nll_loss", {}), ("cross_entropy", {"label_smoothing": label_smoothing})):
        assert_agree(
            lambda x, n=name, m=more: getattr(chainrule, n)(x, *ours, **settings, **m),
            lambda x, n=name, m=more: getattr(F, n)(x, *theirs, **settings, **m),
            [x],
        )


@pytest.mark.parametrize("shape", SHAPES[:-1], ids=str)
@each_reduction
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
def test_probabilities(
    shape: tuple[int, ...], reduction: str, weighted: bool, label_smoothing: float
) -> None:
    r = np.random.default_rng(len(shape))
    x, target = 3 * r.normal(size=shape), r.uniform(size=shape)
    weight = r.uniform(0.5, 2.0, size=shape[0] if len(shape) == 1 else shape[1])
    settings: dict[str, Any] = {"reduction": reduction, "label_smoothing": label_smoothing}
    ours, theirs = (
        make(weight) if weighted else None for make in (chainrule.as_tensor, torch.from_numpy)
    )
    assert_agree(
        lambda x, y: chainrule.cross_entropy(x, y, ours, **settings),
        lambda x, y: F.cross_entropy(x, y, theirs, **settings),
        [x, target],
    )


@pytest.mark.parametrize(
    ("name", "shape"), list(itertools.product(["softmax", "log_softmax"], [(), (3,), (2, 3, 4)]))
)
def test_softmax(name: str, shape: tuple[int, ...]) -> None:
    x = 5 * np.asarray(np.random.default_rng(0).normal(size=shape))
    for dim in range(-max(1, len(shape)), max(1, len(shape))):
        assert_agree(
            lambda x, d=dim: getattr(chainrule, name)(x, d),
            lambda x, d=dim: getattr(torch, name)(x, d),
            [x],
        )


@each_reduction
@pytest.mark.parametrize("weight", [None, (4, 3), (3,)])
def test_two_classes(reduction: str, weight: tuple[int, ...] | None) -> None:
    r = np.random.default_rng(0)
    x, y = 5 * r.normal(size=(4, 3)), r.uniform(size=(4, 3))
    given = None if weight is None else r.uniform(0.5, 2.0, size=weight)
    positive = r.uniform(0.5, 2.0, size=3)

    def both(name: str, **more: np.ndarray) -> tuple[Any, Any]:
        """The function in both libraries, with the weights made tensors of theirs."""

        def bound(library: Any, make: Any) -> Any:
            w = None if given is None else make(given)
            rest = {k: make(v) for k, v in more.items()}
            return lambda x, y: getattr(library, name)(x, y, w, reduction=reduction, **rest)

        return bound(chainrule, chainrule.as_tensor), bound(F, torch.from_numpy)

    assert_agree(*both("binary_cross_entropy_with_logits"), [x, y])
    assert_agree(*both("binary_cross_entropy_with_logits", pos_weight=positive), [x, y])
    assert_agree(*both("binary_cross_entropy"), [r.uniform(0.01, 0.99, size=(4, 3)), y])


WRONG: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "too large": ("cross_entropy", (np.zeros((2, 3)), np.array([0, 3])), {}),
    "negative": ("nll_loss", (np.zeros((2, 3)), np.array([0, -1])), {}),
    "int32": ("cross_entropy", (np.zeros((2, 3)), np.array([0, 1], np.int32)), {}),
    "too few": ("cross_entropy", (np.zeros((2, 3)), np.array([0])), {}),
    "two dimensions": ("cross_entropy", (np.zeros((2, 3)), np.array([[0], [1]])), {}),
    "sequence": ("cross_entropy", (np.zeros((2, 3, 4)), np.zeros((2, 5), int)), {}),
    "image": ("cross_entropy", (np.zeros((2, 3, 4, 5)), np.zeros((2, 4), int)), {}),
    "scalar": ("nll_loss", (np.zeros(()), np.array(0)), {}),
    "weight": ("cross_entropy", (np.zeros((2, 3)), np.array([0, 1]), np.zeros(4)), {}),
    "reduction": ("nll_loss", (np.zeros((2, 3)), np.array([0, 1])), {"reduction": "most"}),
    "smoothing": ("cross_entropy", (np.zeros((2, 3)), np.array([0, 1])), {"label_smoothing": 1.5}),
    "soft and ignored": (
        "cross_entropy",
        (np.zeros((2, 3)), np.zeros((2, 3))),
        {"ignore_index": 1},
    ),
    "probability": ("binary_cross_entropy", (np.array([1.5]), np.array([1.0])), {}),
    "target": ("binary_cross_entropy", (np.array([0.5]), np.array([1.5])), {}),
    "sizes": ("binary_cross_entropy", (np.zeros(2), np.zeros(1)), {}),
    "types": ("binary_cross_entropy", (np.zeros(2), np.zeros(2, np.float32)), {}),
    "logits' sizes": ("binary_cross_entropy_with_logits", (np.zeros(2), np.zeros(1)), {}),
    "logits' type": ("binary_cross_entropy_with_logits", (np.zeros(2), np.zeros(2, int)), {}),
    "softmax of integers": ("softmax", (np.zeros(2, int), 0), {}),
    "softmax's dimension": ("softmax", (np.zeros(2), 1), {}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_raise_the_same(case: str) -> None:
    name, args, kwargs = WRONG[case]

    def raised(library: Any, make: Any) -> type[Exception]:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            getattr(library, name)(
                *[make(a) if isinstance(a, np.ndarray) else a for a in args], **kwargs
            )
        return caught.type

    assert raised(chainrule, chainrule.as_tensor) is raised(F, torch.from_numpy)
