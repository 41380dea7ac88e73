"""Estimators that train on a device, against the CPU."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("sklearn")

from chainrule.estimators import NetworkClassifier, NetworkRegressor

PLACE = "xla"
X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


def both(**options: Any) -> list[NetworkClassifier]:
    """On the CPU and on the device, before they are fitted."""
    return [NetworkClassifier(random_state=0, device=d, **options) for d in (None, PLACE)]


@pytest.mark.filterwarnings("ignore:Maximum iterations")
@pytest.mark.parametrize(
    "options", [{"early_stopping": True}, {"solver": "lbfgs"}, {"class_weight": "balanced"}]
)
def test_fits_are_those_of_the_cpu(options: dict[str, Any]) -> None:
    here, there = [e.fit(X, Y) for e in both(max_iter=8, **options)]
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)
    assert all(p.is_cpu for p in there.module_.parameters())
    again = pickle.loads(pickle.dumps(there))
    np.testing.assert_array_equal(again.predict_proba(X), there.predict_proba(X))


def test_parts_go_on_where_they_are() -> None:
    here, there = both()
    for place in (PLACE, None, PLACE):  # there and back
        here.partial_fit(X, Y, classes=[0, 1])
        there.set_params(device=place).partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="'cuda' is not available.*JAX finds no gpu"):
        NetworkRegressor(device="cuda").fit(X, X[:, 0])
