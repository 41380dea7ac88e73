"""Many small networks trained at once by ``train.fit_many``, and one after the other.

The loop is ``Trainer.fit`` for each network; for XOR also a loop written by hand, without history,
validation or checks. Times are the best of some turns taken alternately, and the losses of the
last epoch must agree.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import chainrule
from chainrule import data, models, nn, optim, problems, train
from chainrule.random import fork_rng

Losses = list[float]


def one_by_one(
    make: Callable[[], nn.Module],
    parts: Sequence[Any],
    loss: str,
    optimizers: Sequence[Any],
    seeds: Sequence[int],
    **options: Any,
) -> Losses:
    """The last loss of each network, trained alone."""
    last = []
    for part, optimizer, seed in zip(parts, optimizers, seeds, strict=True):
        with fork_rng():
            chainrule.manual_seed(seed)
            trainer = train.Trainer(make(), loss, optimizer, progress=False)
            last.append(trainer.fit(part, **options)[-1]["loss"])
    return last


def by_hand(make: Callable[[], nn.Module], x: Any, y: Any, lr: float, epochs: int) -> nn.Module:
    """A loop without anything around it, for one network."""
    model = make()
    optimizer = optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    return model


def best(works: dict[str, Callable[[], Any]], turns: int) -> tuple[dict[str, float], dict]:
    """Seconds of each, the best of some turns in alternation, and what they returned."""
    seconds, results = dict.fromkeys(works, float("inf")), {}
    for _ in range(turns):
        for name, work in works.items():
            gc.collect()
            start = perf_counter()
            results[name] = work()
            seconds[name] = min(seconds[name], perf_counter() - start)
    return seconds, results


def compared(title: str, works: dict[str, Callable[[], Any]], turns: int = 3) -> list[str]:
    """Lines of a table: the seconds of the loop and of ``fit_many``, their ratio, the gap."""
    seconds, results = best(works, turns)
    gap = max(abs(a - b) for a, b in zip(results["loop"], results["many"], strict=True))
    lines = [
        f"{title:<46} loop {seconds['loop']:7.3f} s  many {seconds['many']:7.3f} s  "
        f"{seconds['loop'] / seconds['many']:5.1f} times faster  (losses agree to {gap:.0e})"
    ]
    if "by hand" in seconds:
        ratio = seconds["by hand"] / seconds["many"]
        lines.append(
            f"{'':<46} by hand {seconds['by hand']:4.3f} s {'':>16} {ratio:5.1f} times faster"
        )
    return lines


def xor(
    rates: Sequence[float], title: str, epochs: int = 1000, turns: int = 3, by_hand_too: bool = True
) -> list[str]:
    """Networks 2-4-1 on XOR, all data in each step, each with its learning rate."""
    problem = problems.boolean("xor")
    x, y = problem.inputs, problem.targets

    def make() -> nn.Module:
        return models.MLP(2, [4], 1, "tanh")

    seeds = range(len(rates))
    options: dict[str, Any] = {"epochs": epochs, "batch_size": 4}
    optimizers = [lambda p, lr=lr: optim.SGD(p, lr=lr) for lr in rates]
    works: dict[str, Callable[[], Any]] = {
        "loop": lambda: one_by_one(
            make, [(x, y)] * len(rates), "bce_with_logits", optimizers, seeds, **options
        ),
        "many": lambda: train.fit_many(
            make, (x, y), "bce_with_logits", "sgd", seeds=seeds, lr=rates, **options
        ).last("loss"),
    }
    if by_hand_too:
        works["by hand"] = lambda: [by_hand(make, x, y, 0.5, epochs) for _ in seeds]
    return compared(f"{len(rates)} XOR networks 2-4-1, {title}", works, turns)


def iris(rates: Sequence[float], size: int, epochs: int = 300, turns: int = 3) -> list[str]:
    """Five folds of iris, networks 4-8-3, with one or several learning rates each."""
    x, y = data.embedded("iris").tensors()
    x = (x - x.mean(0)) / x.std(0)
    splits = list(data.KFold(5, shuffle=True, random_state=0).split(x, y))

    def make() -> nn.Module:
        return models.MLP(4, [8], 3, "tanh")

    parts = [(x[a], y[a]) for a, _ in splits for _ in rates]
    each = [lr for _ in splits for lr in rates]
    seeds = range(len(parts))
    options: dict[str, Any] = {"epochs": epochs, "batch_size": size}
    optimizers = [lambda p, lr=lr: optim.Adam(p, lr=lr) for lr in each]
    works: dict[str, Callable[[], Any]] = {
        "loop": lambda: one_by_one(make, parts, "cross_entropy", optimizers, seeds, **options),
        "many": lambda: train.fit_many(
            make, parts, "cross_entropy", "adam", seeds=seeds, lr=each, **options
        ).last("loss"),
    }
    shown = "all data" if size >= 120 else f"batches of {size}"
    what = "5-fold iris 4-8-3" if len(rates) == 1 else f"5 folds x {len(rates)} rates"
    return compared(f"{what} ({len(parts)} networks), {shown}", works, turns)


SAME, OTHER = [0.5] * 20, [0.1 + 0.05 * i for i in range(20)]
GRID = [0.003, 0.01, 0.03, 0.1]


def lines() -> list[str]:
    """What ``make bench`` shows of it: a minute of the loops is too long."""
    return [
        "loop: train.Trainer(...).fit for one network after the other; many: train.fit_many",
        *xor(SAME, "one learning rate", turns=2, by_hand_too=False),
        *xor(OTHER, "a learning rate each", epochs=300, turns=2, by_hand_too=False),
        *iris([0.01], 150, turns=5),
        *iris([0.01], 32, turns=4),
        "(wanted: 5 times faster)",
    ]


if __name__ == "__main__":
    print(*xor(SAME, "one learning rate"), *xor(OTHER, "a learning rate each"), sep="\n")
    for rates in ([0.01], GRID):
        for size in (150, 32):
            print(*iris(rates, size), sep="\n")
