"""The network for tables: members, pieces, indices, and the linear model beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chainrule
from chainrule import models, nn


def network(**settings: object) -> models.TabularNetwork:
    chainrule.manual_seed(0)
    model = models.TabularNetwork(4, 2, (8, 5), members=3, index_sizes=[7], pieces=[4, 0, 3])
    model.set_pieces(rows(50))
    for p in model.parameters():
        nn.init.normal_(p, 0.0, 0.5)
    chance = chainrule.Generator().manual_seed(1)
    model.set_linear(
        chainrule.randn(3, 3, 2, generator=chance), chainrule.randn(3, 1, 2, generator=chance)
    )
    return model


def rows(n: int) -> chainrule.Tensor:
    chance = chainrule.Generator().manual_seed(2)
    numbers = chainrule.randn(n, 3, generator=chance)
    index = chainrule.randint(0, 7, (n, 1), generator=chance).float()
    return chainrule.cat([numbers, index], 1)


def by_hand(model: models.TabularNetwork, x: np.ndarray, m: int) -> np.ndarray:
    """Member m in NumPy, feature by feature."""
    s = {name: value.numpy() for name, value in model.state_dict().items()}
    seen, source = [*x[:, :3].T], [0, 1, 2]
    for t, j in enumerate([0] * 4 + [2] * 3):
        seen.append(np.clip((x[:, j] - s["low"][t]) * s["steepness"][t], 0, 1))
        source.append(j)
    for vector in s["tables.0.weight"][x[:, 3].astype(int)].T:
        seen.append(vector)
        source.append(3)
    h = np.stack(seen, 1) * s["scale"][m][source]
    for i in range(2):
        h = np.maximum(0, h @ s[f"hidden.{i}.weight"][m] + s[f"hidden.{i}.bias"][m])
    linear = x[:, :3] @ s["linear_weight"][m] + s["linear_bias"][m]
    return h @ s["head.weight"][m] + s["head.bias"][m] + linear


def test_members_and_their_mean_are_the_formula() -> None:
    model, x = network(), rows(6)
    each = np.stack([by_hand(model, x.numpy(), m) for m in range(3)])
    np.testing.assert_allclose(model(x).detach().numpy(), each.mean(0), rtol=1e-4, atol=1e-5)
    own = chainrule.stack([x, x.flip(0), x * 1], 1)  # rows for each member
    expected = np.stack([each[0], each[1][::-1], each[2]], 1)
    np.testing.assert_allclose(model(own).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_it_starts_as_the_mean_of_its_linear_models() -> None:
    model = models.TabularNetwork(3, 1, pieces=[4, 4, 4], clip=3.0)
    x = rows(20)[:, :3]
    w = chainrule.randn(4, 3, 1)
    model.set_linear(w, chainrule.zeros(4, 1, 1))
    clipped = x / (1 + (x / 3) ** 2) ** 0.5
    np.testing.assert_allclose(model(clipped).detach().numpy(), (x @ w.mean(0)).numpy(), atol=0.05)


def test_pieces_lie_between_quantiles_and_fit_the_values() -> None:
    x = chainrule.stack([chainrule.arange(100.0), chainrule.arange(100.0) % 2], 1)
    assert models.TabularNetwork.pieces_of(x) == [8, 0]
    assert models.TabularNetwork.pieces_of(chainrule.randn(50, 96)) == [0] * 96
    model = models.TabularNetwork(2, 1, pieces=[8, 0])
    model.set_pieces(x)
    np.testing.assert_allclose(model.low.numpy(), np.linspace(0, 99, 9)[:-1], rtol=1e-5)
    seen = model.features(x)[:, 2:]
    assert float(seen.min()) == 0
    assert float(seen.max()) == 1
    np.testing.assert_allclose(seen.sum(1).numpy(), np.arange(100) / 99 * 8, atol=1e-3)


def test_gradients_reach_every_parameter_and_no_linear_model() -> None:
    model = network()
    model(rows(30)).sum().backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in model.parameters())
    assert {name for name, _ in model.named_buffers()} >= {"linear_weight", "linear_bias"}


def test_saved_and_loaded(tmp_path: Path) -> None:
    model, x = network(), rows(5)
    chainrule.save(model, tmp_path / "model")
    again = chainrule.load(tmp_path / "model")
    assert again(x).tolist() == model(x).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"in_features": 0}, "at least one feature"),
        ({"members": 0}, "members=0"),
        ({"pieces": [1]}, "1 pieces"),
        ({"index_sizes": [0]}, "index_sizes are positive"),
        ({"pieces": [-1, 0, 0]}, "not negative"),
    ],
)
def test_what_is_no_network_is_refused(arguments: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"in_features": 3, "out_features": 2, **arguments}
    with pytest.raises(ValueError, match=message):
        models.TabularNetwork(**given)  # type: ignore[arg-type]


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected rows \(N, 4\), or \(N, 3, 4\)"):
        network()(chainrule.ones(5, 3))
