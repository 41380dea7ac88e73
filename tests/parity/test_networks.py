"""The networks of ``benchmarks/networks.py`` in small: losses, gradients and outputs as PyTorch's.

One text defines each network for both libraries, so names, order and shapes of the parameters are
compared, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from architectures import NETWORKS, Network
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")


@contextmanager
def default(lib: Any, dtype: str) -> Iterator[None]:
    """Tensors and parameters of this dtype unless another is named."""
    before = lib.get_default_dtype()
    lib.set_default_dtype(getattr(lib, dtype))
    try:
        yield
    finally:
        lib.set_default_dtype(before)


def computed(lib: Any, network: Network, dtype: str) -> dict[str, np.ndarray]:
    """Losses, gradients of all parameters, and the output of inference afterwards."""
    found = {}
    with default(lib, dtype):
        task = network.task(lib, small=True)
        for i, (loss, part) in enumerate(task.phases()):
            task.model.zero_grad()
            value = loss()
            value.backward()
            found[f"loss {i}"] = value.detach().numpy()
            for name, p in part.named_parameters():
                found[f"gradient {i} of {name}"] = p.grad.detach().numpy()
        task.model.eval()
        with lib.no_grad():
            output = task.infer()
    for i, part in enumerate(output if isinstance(output, tuple) else [output]):
        found[f"output {i}"] = part.numpy()
    return found


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray], kind: str) -> float:
    """Of all arrays of one kind, in units of their norm."""
    of = [(x.astype("float64"), b[name]) for name, x in a.items() if name.startswith(kind)]
    return sum(np.sum((x - y) ** 2) for x, y in of) ** 0.5 / sum(np.sum(y**2) for _, y in of) ** 0.5


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_the_same_losses_gradients_and_outputs(network: Network) -> None:
    ours, exact = (computed(lib, network, "float64") for lib in (chainrule, torch))
    assert list(ours) == list(exact)
    for name, value in exact.items():
        scale = max(1.0, float(np.abs(value).max()))
        assert_close(ours[name], value, atol=1e-12 * scale)

    ours, theirs = (computed(lib, network, "float32") for lib in (chainrule, torch))
    for name, value in theirs.items():
        assert (ours[name].dtype, ours[name].shape) == (value.dtype, value.shape), name
    errors = {kind: distance(theirs, exact, kind) for kind in ("loss", "gradient", "output")}
    # A loss is one number, which can be right by luck; its error is that of the outputs.
    errors["loss"] = max(errors["loss"], errors["output"])
    for kind, error in errors.items():
        assert distance(ours, exact, kind) < 3 * error + 1e-6
