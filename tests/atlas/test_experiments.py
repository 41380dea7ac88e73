"""Experiments of the atlas, against what is known of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import chainrule
from chainrule import data, models
from chainrule.atlas.experiments import alexnet, batches, mnist
from chainrule.atlas.course import x05_mnist


def test_a_chain_of_sigmoids_passes_a_quarter_at_most() -> None:
    """X14: with weights of size 1, |dy/dx| <= 0.25^layers; one layer reaches it, at 0."""
    x = chainrule.linspace(-6, 6, 241, dtype=chainrule.float64).requires_grad_()
    rng, h = np.random.default_rng(0), x
    for layers in range(1, 9):
        h = (float(rng.choice([-1.0, 1.0])) * h).sigmoid()
        (slope,) = chainrule.autograd.grad(h.sum(), x, retain_graph=True)
        assert slope.abs().max().item() <= 0.25**layers
        assert layers > 1 or slope.abs().max().item() == pytest.approx(0.25)


def test_steps_of_batches_are_their_gradients() -> None:
    """X15: what a step takes off is the mean of (w . x - y) x over the batch."""
    chainrule.manual_seed(3)
    found = batches.gradients(5, 4)
    chainrule.manual_seed(3)
    for k in range(4):
        x = chainrule.randn(5, 2, dtype=chainrule.float64)
        y = chainrule.randn(5, 1, dtype=chainrule.float64)
        errors = x @ chainrule.tensor(batches.WEIGHT, dtype=chainrule.float64) - y[:, 0]
        expected = (errors[:, None] * x).mean(0)
        np.testing.assert_allclose(found[k].numpy(), expected.numpy(), rtol=1e-10)


def test_the_standard_error_falls_with_the_root_of_the_batch() -> None:
    """X15: for 100 times the data a tenth; of the mean of n it is that of one over sqrt(n)."""
    chainrule.manual_seed(0)
    small, large = (batches.gradients(size, 300).std(0).norm().item() for size in (20, 2000))
    assert small / large == pytest.approx(10, rel=0.15)
    one = batches.gradients(1, 2000).std(0).norm().item()
    assert small == pytest.approx(one / math.sqrt(20), rel=0.15)


def test_the_stand_in_for_imagenet_is_read_as_it_is(tmp_path: Path) -> None:
    """X16: folders, sizes and classes are ImageNet's; a narrow AlexNet takes the images."""
    chainrule.manual_seed(0)
    alexnet.write_stand_in(tmp_path, classes=6, count=4)
    x, y = alexnet.read(tmp_path, "train")
    assert (x.shape, y.tolist()) == ((24, 3, 227, 227), sorted([*range(6)] * 4))
    assert -1 <= x.min().item() < -0.5 < 0.5 < x.max().item() <= 1
    assert data.ImageNet(tmp_path, "val").wnids == [f"n{k:08}" for k in range(6)]
    assert models.AlexNet(6, shrink=16).eval()(x[:2]).shape == (2, 6)


def test_the_stand_in_for_mnist_has_its_shape() -> None:
    parts = x05_mnist.stand_in(900)
    assert [len(y) for _, y in parts] == [900, 200, 697]
    assert all(x.shape[1] == 784 for x, _ in parts)
    for name, make in x05_mnist.NETWORKS.items():
        wide, narrow = (sum(p.numel() for p in make(0.0, k).parameters()) for k in (1, 8))
        assert make(0.5, 8)(parts[0][0][:2]).shape == (2, 10)
        assert wide == narrow if name == "linear" else wide > 4 * narrow


def test_the_epoch_is_chosen_by_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """X05: one error is of the epoch that the held-out images choose, the other the least."""
    seen = {}

    class Fits:
        histories = [{"val_held": [3.0, 1.0, 2.0], "val_test": [5.0, 4.0, 3.5]}]  # noqa: RUF012

    def fit_many(*args: object, **settings: object) -> Fits:
        seen.update(settings)
        return Fits()

    monkeypatch.setattr(x05_mnist.train, "fit_many", fit_many)
    parts = x05_mnist.stand_in(900)
    assert x05_mnist.errors_of("linear", "none", parts, 3, 1) == [(4.0, 3.5)]
    scores = chainrule.nn.functional.one_hot(seen["validation"][1], 10).float()  # type: ignore[index]
    scores[:200] = scores[:200].roll(1, 1)  # all held-out images wrong, all test images right
    held, test = (seen["metrics"][k](scores, seen["validation"][1]) for k in ("held", "test"))  # type: ignore[index]
    assert (held, test) == (100.0, 0.0)


def test_means_and_what_is_above_the_printed() -> None:
    errors = {"convnet": {"none": [(1.0, 0.9), (1.4, 1.1)], "l2": [(1.1, 1.0)] * 2}}
    assert mnist.mean(errors["convnet"]["none"]) == pytest.approx(1.2)
    assert mnist.excess(errors, "convnet") == pytest.approx([0.1, 0.0])
    assert mnist.excess(errors, "convnet", 1) == pytest.approx([0.0, 0.0])
