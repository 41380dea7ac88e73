"""X05: the table of MNIST errors of document 002, networks and regularizers.

Each network is trained on 54,000 images, the epoch is chosen by the error on the other 6,000, and
the error on the 10,000 test images is of that epoch; the course has in brackets the lowest of all
epochs. Without the files, the digits that come with the package stand in: 8 by 8 pixels, enlarged
to 28 by 28, and networks of an eighth of the width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import chainrule
from chainrule import data, models, nn, optim, train

Rows = tuple[Any, Any]
Parts = tuple[Rows, Rows, Rows]


def dense(activation: str, widths: Sequence[int], dropout: float) -> nn.Module:
    """A multi-layer perceptron; dropout 0.5 for hidden units and 0.2 for the inputs."""
    net = models.MLP(784, list(widths), 10, activation=activation, dropout=dropout)
    return nn.Sequential(nn.Dropout(0.4 * dropout), *net) if dropout else net


def convolutional(dropout: float, shrink: int = 1) -> nn.Module:
    """Two convolutions with pooling, then a dense layer."""
    channels = (32 // shrink, 64 // shrink)
    network = models.MnistConvNet(channels=channels, width=512 // shrink, dropout=dropout)
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *network)


# By the probability of dropout, and by how much narrower the network is than the course's.
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "linear": lambda dropout, shrink=1: nn.Linear(784, 10),
    "tanh512": lambda dropout, shrink=1: dense("tanh", [512 // shrink] * 3, dropout),
    "relu512": lambda dropout, shrink=1: dense("relu", [512 // shrink] * 3, dropout),
    "relu1024": lambda dropout, shrink=1: dense("relu", [1024 // shrink] * 4, dropout),
    "convnet": convolutional,
}
# Errors in percent: chosen by validation, and the best of all epochs (002; linear: 004 table D.1).
PRINTED = {
    "linear": {"none": (7.6, 7.6)},
    "tanh512": {"none": (1.9, 1.8), "l2": (2.0, 1.7), "dropout": (1.5, 1.5)},
    "relu512": {"none": (1.6, 1.5), "l2": (1.7, 1.6), "dropout": (1.7, 1.4)},
    "relu1024": {"none": (1.6, 1.5), "l2": (1.6, 1.4), "dropout": (1.4, 1.4)},
    "convnet": {"none": (1.1, 1.0), "l2": (1.1, 1.0), "dropout": (0.9, 0.8)},
}
# How many epochs each row gets; with dropout networks learn more slowly.
EPOCHS = {
    "linear": {"none": 12},
    "tanh512": {"none": 12, "l2": 12, "dropout": 60},
    "relu512": {"none": 12, "l2": 12, "dropout": 40},
    "relu1024": {"none": 8, "l2": 12, "dropout": 30},
    "convnet": {"none": 8, "l2": 8, "dropout": 8},
}
MANY = 12  # epochs of the rows that take minutes, and are trained from all seeds


def read(root: str | Path | None, count: int | None = None) -> Parts:
    """Training, validation and test images as rows of 784 numbers, standardized."""
    parts = []
    for is_train in (True, False):
        mnist = data.MNIST(root, train=is_train)
        images, labels = mnist.data, mnist.targets
        parts.append((images.reshape(len(labels), 784).float() / 255, labels))
    (x, y), test = parts
    mean, std = float(x.mean()), float(x.std())
    order = chainrule.randperm(60000, generator=chainrule.Generator().manual_seed(0))
    x = (x - mean) / std
    held, rest = order[:6000], order[6000:][:count]
    return (x[rest], y[rest]), (x[held], y[held]), ((test[0] - mean) / std, test[1])


def stand_in(count: int = 900) -> Parts:
    """Digits of the package in the shape of MNIST: ``count`` to train, 200 to validate, the rest to
    test."""
    x, y = data.embedded("digits").tensors()
    images = nn.functional.interpolate(x.reshape(-1, 1, 8, 8), size=(28, 28), mode="bilinear")
    rows = images.flatten(1)
    rows = (rows - rows.mean()) / rows.std()
    order = chainrule.randperm(len(y), generator=chainrule.Generator().manual_seed(0))
    train_rows, held, test = order[:count], order[count : count + 200], order[count + 200 :]
    return tuple((rows[i], y[i]) for i in (train_rows, held, test))  # type: ignore[return-value]


class EpochErrors(train.Callback):
    """The errors in percent of every epoch, on the validation and on the test images."""

    def __init__(self, held: Rows, test: Rows):
        self.parts = {"held": held, "test": test}
        self.found: dict[str, list[float]] = {"held": [], "test": []}

    def on_epoch_end(self, trainer: train.Trainer) -> None:
        for name, (x, y) in self.parts.items():
            self.found[name].append(error(trainer.predict(x, batch_size=2000), y))


def error(scores: Any, y: Any) -> float:
    """The share of wrong answers in percent."""
    return 100 * float((scores.argmax(1) != y).float().mean())


def errors_of(
    name: str,
    regularizer: str,
    parts: Parts,
    epochs: int,
    seeds: int,
    shrink: int = 1,
    device: str | None = None,
) -> list[tuple[float, float]]:
    """Test errors in percent of networks from several seeds: of the epoch that the validation
    images choose, and the lowest of all epochs. Narrow networks, of few images, take batches of a
    quarter of the size and a larger rate.

    On the CPU all seeds are trained at once, on a device (a GPU is busy with one network) one after
    another: up to rounding these are the same networks.
    """
    lr, batch = (1e-3, 128) if shrink == 1 else (3e-3, 32)
    held, test = parts[1:]
    decay = 1e-5 if regularizer == "l2" else 0.0

    def network() -> nn.Module:
        return NETWORKS[name](0.5 if regularizer == "dropout" else 0.0, shrink)

    def optimizer(params: Any) -> optim.Optimizer:
        return optim.Adam(params, lr=lr, weight_decay=decay)

    def schedule(optimizer: optim.Optimizer) -> optim.lr_scheduler.LRScheduler:
        return optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    found: list[dict[str, list[float]]] = []
    if device is None:
        count = len(held[1])
        fits = train.fit_many(
            network,
            parts[0],
            "cross_entropy",
            optimizer,
            seeds=range(seeds),
            validation=tuple(chainrule.cat(pair) for pair in zip(held, test, strict=True)),
            metrics={
                "held": lambda s, y: error(s[:count], y[:count]),
                "test": lambda s, y: error(s[count:], y[count:]),
            },
            epochs=epochs,
            batch_size=batch,
            schedule=schedule,
        )
        found = [{k: h[f"val_{k}"] for k in ("held", "test")} for h in fits.histories]
    else:
        data, *looked = [tuple(t.to(device) for t in part) for part in parts]
        for seed in range(seeds):
            chainrule.manual_seed(seed)
            seen = EpochErrors(*looked)
            trainer = train.Trainer(
                network(),
                "cross_entropy",
                optimizer,
                schedule=schedule,
                callbacks=[seen],
                progress=False,
                device=device,
            )
            trainer.fit(data, epochs=epochs, batch_size=batch)
            found.append(seen.found)
    return [(f["test"][f["held"].index(min(f["held"]))], min(f["test"])) for f in found]
