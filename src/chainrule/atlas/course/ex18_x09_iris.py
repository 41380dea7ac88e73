"""Example 18 of document 000 (X09): a 4-8-3 classifier of Fisher's irises, ten epochs of Adam.

One hidden layer of 8 neurons, as in the course's program; its text speaks of two, of 4 and 8
(erratum 53). The batches of 5 come in the same order in every epoch. Ten epochs at rate 0.001 are
210 small steps: what accuracy they reach depends on the start and on the split, so it is measured
over many seeds.
"""

from __future__ import annotations

import copy

import chainrule
from chainrule import Tensor, data, nn, optim
from chainrule.atlas.course.course_table import show, spread

BATCH = 5


def split(seed: int) -> list[Tensor]:
    """x_train, x_test, y_train, y_test with one-hot targets: 105 and 45 flowers."""
    x, labels = data.embedded("iris").tensors()
    y = nn.functional.one_hot(labels, 3).to(x.dtype)
    return data.train_test_split(x, y, train_size=0.7, random_state=seed)


def network() -> nn.Sequential:
    """4-8-3 with ReLU."""
    h_theta = nn.Sequential()
    h_theta.add_module("a1", nn.Linear(4, 8))
    h_theta.add_module("g1", nn.ReLU())
    h_theta.add_module("a2", nn.Linear(8, 3))
    return h_theta


def accuracy(scores: Tensor, y: Tensor) -> float:
    """The share of right answers."""
    return (scores.argmax(1) == y.argmax(1)).float().mean().item()


def train(seed: int, epochs: int) -> tuple[list[float], nn.Sequential]:
    """The test accuracy after every epoch, and the network when it was best."""
    chainrule.manual_seed(seed)
    x_train, x_test, y_train, y_test = split(seed)
    h_theta = network()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(h_theta.parameters(), lr=0.001)
    history: list[float] = []
    best = h_theta.state_dict()
    for _ in range(epochs):
        h_theta.train()
        for i in range(0, len(x_train), BATCH):
            loss = loss_fn(h_theta(x_train[i : i + BATCH]), y_train[i : i + BATCH])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        h_theta.eval()
        with chainrule.no_grad():
            history.append(accuracy(h_theta(x_test), y_test))
        if history[-1] > max(history[:-1], default=-1.0):
            best = copy.deepcopy(h_theta.state_dict())
    h_theta.load_state_dict(best)
    return history, h_theta


def main(epochs: int = 10, seeds: int = 100) -> dict[str, list[float]]:
    """The accuracies of all seeds."""
    histories = [train(seed, epochs)[0] for seed in range(seeds)]
    last, best = [h[-1] for h in histories], [max(h) for h in histories]
    mean, std = spread(last)
    show(
        f"Example 18: test accuracy after {epochs} epochs, {seeds} seeds",
        ("", "PyTorch, seed 0", "obtained", "lowest", "highest"),
        [
            (
                "last epoch",
                "0.60",
                f"{mean:.2f} +- {std:.2f}",
                f"{min(last):.2f}",
                f"{max(last):.2f}",
            ),
            (
                "best epoch",
                "-",
                f"{spread(best)[0]:.2f} +- {spread(best)[1]:.2f}",
                f"{min(best):.2f}",
                f"{max(best):.2f}",
            ),
        ],
    )
    inside = min(last) <= 0.6 <= max(last)
    print(f"0.60 lies {'inside' if inside else 'outside'} the range of the seeds")
    return {"last": last, "best": best}


if __name__ == "__main__":
    main()
