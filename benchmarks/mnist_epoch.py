"""The wall time of one epoch on the real files of MNIST, and the error it leads to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from workloads import MNIST_MLP, of_mlp, same_weights

from chainrule import data

__all__ = ["epochs"]


def _convnet(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(7 * 7 * 64, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )


RECIPES = {"MLP 784-512-512-512-10": of_mlp(MNIST_MLP), "ConvNet 32-64 5x5, 512-10": _convnet}


def _read(root: str, train: bool) -> tuple[np.ndarray, np.ndarray]:
    mnist = data.MNIST(root, train=train)
    images = mnist.data.numpy().reshape(-1, 784).astype("float32") / 255
    return (images - np.float32(0.1307)) / np.float32(0.3081), mnist.targets.numpy()


def _epoch(lib: Any, network: Any, train: Any, test: Any, batch: int = 128) -> tuple[float, float]:
    """Seconds of one epoch, and the percentage of wrong answers afterwards."""
    model = same_weights(lib, network(lib))
    criterion, optimizer = lib.nn.CrossEntropyLoss(), lib.optim.Adam(model.parameters())
    x, y = lib.tensor(train[0]), lib.tensor(train[1])
    order = lib.tensor(np.random.default_rng(0).permutation(len(train[1])))
    start = time.perf_counter()
    for i in range(0, len(order), batch):
        some = order[i : i + batch]
        optimizer.zero_grad()
        criterion(model(x[some]), y[some]).backward()
        optimizer.step()
    spent = time.perf_counter() - start
    model.eval()
    with lib.no_grad():
        parts = np.array_split(np.arange(len(test[1])), 20)
        right = sum(
            int((model(lib.tensor(test[0][p])).argmax(1).numpy() == test[1][p]).sum())
            for p in parts
        )
    return spent, 100 * (1 - right / len(test[1]))


def epochs(libraries: dict[str, Any], root: str) -> list[str]:
    """Lines of a table: seconds and test error of each recipe in each library."""
    train, test = _read(root, True), _read(root, False)
    lines = []
    for title, network in RECIPES.items():
        found = {name: _epoch(lib, network, train, test) for name, lib in libraries.items()}
        cells = "   ".join(f"{n} {s:6.1f} s, {e:.2f} % wrong" for n, (s, e) in found.items())
        if "PyTorch" in found:
            cells += f"   ratio {found['PyTorch'][0] / found['chainrule'][0]:.2f}"
        lines.append(f"{title:<26} {cells}")
    return lines
