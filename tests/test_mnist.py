"""The table of MNIST errors (X05, M24): the networks, what is recorded of them, and short runs.

``make mnist`` trains all rows to the end and fails where a printed error is not reached: hours.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import chainrule
from chainrule import data, models, nn

ROOT = Path(__file__).resolve().parent.parent


def folder() -> Path | None:
    """Where MNIST's files are, if anywhere."""
    for root in (data.data_root(), ROOT.parent / "shared" / "data"):
        with contextlib.suppress(data.DatasetError, FileNotFoundError):
            data.MNIST(root, train=False)
            return root
    return None


MNIST = folder()
needs_files = pytest.mark.skipif(MNIST is None, reason="the files of MNIST are not there")
needs_hours = pytest.mark.skipif("CHAINRULE_MNIST" not in os.environ, reason="takes hours")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    sys.modules.pop("mnist", None)
    return importlib.import_module("mnist")


def train(example: ModuleType, *arguments: str) -> dict[str, Any]:
    (row,) = example.main(["--root", str(MNIST), *arguments])
    return row  # type: ignore[no-any-return]


# --- the networks ---------------------------------------------------------------------------------


def layers(model: nn.Module) -> list[str]:
    return [type(m).__name__ for m in model.modules() if not list(m.children())]


def test_the_networks_are_those_of_the_table(example: ModuleType) -> None:
    """tanh and ReLU with three layers of 512, ReLU with four of 1024; dropout only where said."""
    x = chainrule.zeros(2, 784)
    for name, widths in (
        ("tanh512", [512] * 3),
        ("relu512", [512] * 3),
        ("relu1024", [1024] * 4),
    ):
        plain, dropped = (example.NETWORKS[name](p) for p in (0.0, 0.5))
        linear = [m for m in plain.modules() if isinstance(m, nn.Linear)]
        assert [m.out_features for m in linear] == [*widths, 10]
        kind = "Tanh" if name.startswith("tanh") else "ReLU"
        assert layers(plain).count(kind) == len(widths)
        assert layers(dropped).count("Dropout") == len(widths) + 1
        assert "Dropout" not in layers(plain)
        assert plain(x).shape == dropped(x).shape == (2, 10)


def test_the_convolutional_network_is_the_model(example: ModuleType) -> None:
    """M24: conv, pool, conv, pool, dense, ReLU throughout."""
    kinds = ["Conv2d", "ReLU", "MaxPool2d"] * 2 + ["Flatten", "Linear", "ReLU", "Linear"]
    assert layers(models.MnistConvNet()) == kinds
    assert layers(example.NETWORKS["convnet"](0.0)) == ["Unflatten", *kinds]
    assert layers(models.MnistConvNet(dropout=0.5)) == [*kinds[:-1], "Dropout", "Linear"]
    images = chainrule.randn(3, 784)
    net = example.NETWORKS["convnet"](0.0)
    plain = models.MnistConvNet(width=512)
    plain.load_state_dict(dict(zip(plain.state_dict(), net.state_dict().values(), strict=True)))
    assert chainrule.equal(net(images), plain(images.reshape(3, 1, 28, 28)))


# --- what is recorded -----------------------------------------------------------------------------


def recorded() -> dict[tuple[str, str], tuple[int, str, float, float]]:
    """Rows of docs/results.md: epochs, what is printed, and the two errors obtained."""
    text = (ROOT / "docs" / "results.md").read_text("utf-8")
    names = {"tanh 512x3": "tanh512", "ReLU 512x3": "relu512", "ReLU 1024x4": "relu1024"}
    names |= {"linear": "linear", "convolutional": "convnet"}
    pattern = r"\| ([\w ]+) \| (none|L2|dropout) \| (\d+) \| ([^|]+) \| ([\d.]+) \[([\d.]+)\] \|"
    return {
        (names[name], regularizer.lower()): (int(epochs), printed.strip(), float(a), float(b))
        for name, regularizer, epochs, printed, a, b in re.findall(pattern, text)
    }


def test_the_recorded_errors_reach_the_printed_ones(example: ModuleType) -> None:
    rows = recorded()
    wanted = {(n, r): p for n, each in example.PRINTED.items() for r, p in each.items()}
    assert set(rows) == set(wanted)
    for key, (epochs, printed, error, best) in rows.items():
        network, regularizer = key
        assert epochs == example.EPOCHS[network][regularizer]
        assert printed.split()[0] == str(wanted[key][0])
        assert best <= error
        assert example.reached({"network": network, "regularizer": regularizer, "error": error})
    assert not example.reached({"network": "convnet", "regularizer": "none", "error": 1.16})


# --- training -------------------------------------------------------------------------------------


@needs_files
def test_an_epoch_of_the_linear_network(example: ModuleType) -> None:
    assert train(example, "--only", "linear", "--epochs", "1")["error"] < 12  # percent


@needs_files
def test_the_convolutional_network_learns_more_from_few_images(example: ModuleType) -> None:
    (x, y), held, test = example.read(str(MNIST), 2000)
    parts = ((x, y), tuple(t[:500] for t in held), tuple(t[:2000] for t in test))
    error = {n: example.run(n, "none", parts, 3, 0)["error"] for n in ("linear", "convnet")}
    assert error["convnet"] < 10  # percent
    assert error["convnet"] < error["linear"] / 2


@needs_files
def test_a_row_that_is_not_reached_fails_the_check(example: ModuleType) -> None:
    with pytest.raises(SystemExit) as caught:
        train(example, "--only", "linear", "--epochs", "1", "--images", "500", "--check")
    assert caught.value.code == 1


@needs_files
@needs_hours
@pytest.mark.parametrize("regularizer", ["none", "l2", "dropout"])
@pytest.mark.parametrize("network", ["linear", "tanh512", "relu512", "relu1024", "convnet"])
def test_the_printed_errors_are_reached(
    example: ModuleType, network: str, regularizer: str
) -> None:
    if regularizer not in example.PRINTED[network]:
        pytest.skip("the table has no such row")
    row = train(example, "--only", network, "--regularizers", regularizer)
    assert example.reached(row), example.line(row)
