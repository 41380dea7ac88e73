"""Networks of the courses on a device."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.atlas.course.x05_mnist import errors_of, stand_in

pytest.importorskip("jax")


@pytest.mark.parametrize(("name", "regularizer"), [("relu512", "dropout"), ("convnet", "none")])
def test_errors_of_digits_are_those_of_the_cpu(name: str, regularizer: str) -> None:
    """Epochs in one call, one network after another, against all seeds at once."""
    parts = stand_in(300)
    found = errors_of(name, regularizer, parts, 2, 2, shrink=16, device="xla")
    # Shares of the same counts, in float32; one answer more is a third of a percent.
    wanted = errors_of(name, regularizer, parts, 2, 2, shrink=16)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
