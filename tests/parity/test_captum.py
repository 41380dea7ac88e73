"""Attributions against those of Captum, wherever its rules are right.

Captum's DeepLIFT gives wrong contributions where an activation stands directly before a max pooling
(its contributions then do not add up), so here convolutions stand between the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import inspect

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    attr = pytest.importorskip("captum.attr")

pytestmark = pytest.mark.filterwarnings("ignore")


def mlp(nn: Any) -> Any:
    return nn.Sequential(
        nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 6), nn.ELU(),
        nn.Linear(6, 3),
    )  # fmt: skip


def cnn(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(),
        nn.Conv2d(4, 3, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(27, 3),
    )  # fmt: skip


NETS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "mlp": (mlp, (4, 5)),
    "cnn": (cnn, (2, 2, 12, 12)),
}
METHODS = {
    "sensitivity": "Saliency",
    "gradient_x_input": "InputXGradient",
    "integrated_gradients": "IntegratedGradients",
    "deeplift": "DeepLift",
}


def both(name: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    torch.manual_seed(0)
    make, shape = NETS[name]
    theirs, ours = make(torch.nn).double().eval(), make(chainrule.nn).double().eval()
    ours.load_state_dict(
        {k: chainrule.from_numpy(v.detach().numpy()) for k, v in theirs.state_dict().items()}
    )
    rng = np.random.default_rng(0)
    return theirs, ours, rng.normal(size=shape), 0.3 * rng.normal(size=shape)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("net", NETS)
def test_methods(net: str, method: str) -> None:
    theirs, ours, x, base = both(net)
    with_base = method in ("integrated_gradients", "deeplift")
    explainer = getattr(attr, METHODS[method])(theirs)
    settings = {"baselines": torch.tensor(base)} if with_base else {}
    expected = explainer.attribute(torch.tensor(x), target=1, **settings).detach().numpy()
    got = inspect.attribute(
        ours, chainrule.from_numpy(x), 1, method=method,
        baseline=chainrule.from_numpy(base) if with_base else None,
    )  # fmt: skip
    np.testing.assert_allclose(got.values[0].numpy(), expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(
    ("net", "window", "stride"), [("mlp", (2,), (2,)), ("cnn", (2, 3, 3), (1, 2, 2))]
)
def test_occlusion(net: str, window: tuple[int, ...], stride: tuple[int, ...]) -> None:
    theirs, ours, x, base = both(net)
    expected = attr.Occlusion(theirs).attribute(
        torch.tensor(x), target=2, sliding_window_shapes=window, strides=stride,
        baselines=torch.tensor(base),
    )  # fmt: skip
    got = inspect.attribute(
        ours, chainrule.from_numpy(x), 2, method="occlusion", window=window, stride=stride,
        baseline=chainrule.from_numpy(base),
    )  # fmt: skip
    # Captum counts the windows in float32.
    np.testing.assert_allclose(got.values[0].numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("rule", "name"), [("deconvnet", "Deconvolution"), ("guided", "GuidedBackprop")]
)
def test_rectifiers(rule: str, name: str) -> None:
    theirs, ours, x, _ = both("cnn")
    expected = getattr(attr, name)(theirs).attribute(torch.tensor(x), target=1)
    got = inspect.deconvnet(ours, chainrule.from_numpy(x), unit=1, rule=rule)
    np.testing.assert_allclose(got.pictures.numpy(), expected.numpy(), rtol=1e-8, atol=1e-12)
