"""Problems of labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import chainrule
from chainrule import nn, problems
from chainrule.problems import Problem


F64 = chainrule.float64


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {
    "or": lambda a, b: a or b,
    "and": lambda a, b: a and b,
    "and1": lambda a, b: a and not b,
    "and2": lambda a, b: not a and b,
    "xor": lambda a, b: a != b,
    "nor": lambda a, b: not (a or b),
    "nand": lambda a, b: not (a and b),
    "xnor": lambda a, b: a == b,
}


@pytest.mark.parametrize("name", BOOLEAN)
def test_boolean_tables(name: str) -> None:
    p, signed = problems.boolean(name), problems.boolean(name.upper(), signed=True)
    points = [tuple(map(bool, row)) for row in p.inputs.tolist()]
    assert sorted(points) == [(False, False), (False, True), (True, False), (True, True)]
    expected = [BOOLEAN[name](a, b) for a, b in points]
    assert p.targets[:, 0].tolist() == [float(v) for v in expected]
    assert signed.targets[:, 0].tolist() == [1.0 if v else -1.0 for v in expected]
    assert p.rule(p.inputs.flip(0)).tolist() == p.targets.flip(0).tolist()
    lines = itertools.product(np.arange(-2, 2.5, 0.5), repeat=3)
    x, y = signed.inputs.numpy(), signed.targets.numpy()[:, 0]
    separable = any((y * (x @ np.array(w[:2]) + w[2]) > 0).all() for w in lines)
    assert p.known["separable"] == separable


@pytest.mark.parametrize(
    ("make", "classes"),
    [
        (lambda **k: problems.moons(**k), 2),
        (lambda **k: problems.circles(classes=2, **k), 2),
        (lambda **k: problems.circles(classes=4, **k), 4),
        (lambda **k: problems.spirals(classes=2, turns=1.5, **k), 2),
        (lambda **k: problems.spirals(classes=5, **k), 5),
        (lambda **k: problems.blobs(classes=6, **k), 6),
    ],
    ids=["moons", "circles2", "circles4", "spirals2", "spirals5", "blobs"],
)
def test_point_sets_follow_their_rule(make: Callable[..., Problem], classes: int) -> None:
    p = make(n=120, noise=0.0, generator=seeded(), dtype=F64)
    assert p.inputs.shape == (120, 2)
    assert np.bincount(p.targets.numpy()).tolist() == [120 // classes] * classes
    assert (p.rule(p.inputs) == p.targets).all()
    near = make(n=120, noise=0.01, generator=seeded(), dtype=F64)
    assert (near.rule(near.inputs) == near.targets).all()
    assert (near.inputs - p.inputs).std().item() == pytest.approx(0.01, rel=0.15)
    far = make(n=120, noise=3.0, generator=seeded(), dtype=F64)
    assert not (far.rule(far.inputs) == far.targets).all()


def test_shapes_of_the_point_sets() -> None:
    k = {"noise": 0.0, "generator": seeded(), "dtype": F64}
    p = problems.circles(60, classes=3, **k)
    np.testing.assert_allclose(np.linalg.norm(p.inputs.numpy(), axis=1), (p.targets + 1) / 3)
    p = problems.moons(100, **k)
    upper, lower = p.inputs.numpy()[::2], p.inputs.numpy()[1::2]
    np.testing.assert_allclose(np.linalg.norm(upper, axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(lower - [1, 0.5], axis=1), 1)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5
    p = problems.blobs(20000, classes=3, noise=0.5, generator=seeded(), dtype=F64)
    d = (p.inputs - p.known["centers"][p.targets]).numpy()
    np.testing.assert_allclose(np.cov(d.T), 0.25 * np.eye(2), atol=0.01)


def test_a_small_net_learns_the_moons_but_no_line_does() -> None:
    p = problems.moons(100, 0.05, seeded(), F64)
    line = np.linalg.lstsq(
        np.c_[p.inputs.numpy(), np.ones(100)], 2 * p.targets.numpy() - 1, rcond=None
    )[0]
    wrong = (np.c_[p.inputs.numpy(), np.ones(100)] @ line > 0) != p.targets.numpy()
    assert wrong.mean() > 0.05
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    optimizer = chainrule.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        chainrule.cross_entropy(net(p.inputs), p.targets).backward()
        optimizer.step()
    assert (net(p.inputs).argmax(1) == p.targets).all()
