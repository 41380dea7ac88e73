"""Many small networks trained at once by ``train.fit_many``, and one after the other.

The loop is ``Trainer.fit`` for each network; for XOR also a loop written by hand, without history,
validation or checks. Times are the best of some turns, and the losses of the last epoch must agree.
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
    make: Callable[[], nn.Module], parts: Sequence[Any], loss: str, optimizers: Sequence[Any],
    seeds: Sequence[int], **options: Any,
) -> Losses:  # fmt: skip
    """The last loss of each network, trained alone."""
    last = []
    for part, optimizer, seed in zip(parts, optimizers, seeds, strict=True):
        with fork_rng():
            chainrule.manual_seed(seed)
            trainer = train.Trainer(make(), loss, optimizer, progress=False)
            last.append(trainer.fit(part, **options)[-1]["loss"])
    return last


def by_hand(make: Callable[[], nn.Module], x: Any, y: Any, lr: float, epochs: int) -> None:
    """A loop without anything around it, for one network."""
    model = make()
    optimizer = optim.SGD(model.parameters(), lr=lr)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()


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


def report(title: str, works: dict[str, Callable[[], Any]], turns: int = 3) -> None:
    seconds, results = best(works, turns)
    gap = max(abs(a - b) for a, b in zip(results["loop"], results["many"], strict=True))
    print(
        f"{title:<46} loop {seconds['loop']:7.3f} s  many {seconds['many']:7.3f} s  "
        f"{seconds['loop'] / seconds['many']:5.1f} times faster  (losses agree to {gap:.0e})"
    )
    if "by hand" in seconds:
        ratio = seconds["by hand"] / seconds["many"]
        print(f"{'':<46} by hand {seconds['by hand']:4.3f} s {'':>16} {ratio:5.1f} times faster")


def xor(networks: int = 20, epochs: int = 1000) -> None:
    """Networks 2-4-1 on XOR, all data in each step, one learning rate or one each."""
    problem = problems.boolean("xor")
    x, y = problem.inputs, problem.targets

    def make() -> nn.Module:
        return models.MLP(2, [4], 1, "tanh")

    seeds = range(networks)
    options: dict[str, Any] = {"epochs": epochs, "batch_size": 4}
    for title, rates in (
        ("one learning rate", [0.5] * networks),
        ("a learning rate each", [0.1 + 0.05 * i for i in seeds]),
    ):
        optimizers = [lambda p, lr=lr: optim.SGD(p, lr=lr) for lr in rates]
        works: dict[str, Callable[[], Any]] = {
            "loop": lambda o=optimizers: one_by_one(
                make, [(x, y)] * networks, "bce_with_logits", o, seeds, **options
            ),
            "many": lambda r=rates: train.fit_many(
                make, (x, y), "bce_with_logits", "sgd", seeds=seeds, lr=r, **options
            ).last("loss"),
            "by hand": lambda: [by_hand(make, x, y, 0.5, epochs) for _ in seeds],
        }
        report(f"{networks} XOR networks 2-4-1, {title}", works)


def iris(epochs: int = 300) -> None:
    """Five folds of iris, networks 4-8-3, alone and with four learning rates each."""
    x, y = data.embedded("iris").tensors()
    x = (x - x.mean(0)) / x.std(0)
    splits = list(data.KFold(5, shuffle=True, random_state=0).split(x, y))

    def make() -> nn.Module:
        return models.MLP(4, [8], 3, "tanh")

    for rates in ([0.01], [0.003, 0.01, 0.03, 0.1]):
        for size in (150, 32):
            parts = [(x[a], y[a]) for a, _ in splits for _ in rates]
            each = [lr for _ in splits for lr in rates]
            seeds = range(len(parts))
            options: dict[str, Any] = {"epochs": epochs, "batch_size": size}
            optimizers = [lambda p, lr=lr: optim.Adam(p, lr=lr) for lr in each]
            works: dict[str, Callable[[], Any]] = {
                "loop": lambda d=parts, o=optimizers, s=seeds, k=options: one_by_one(
                    make, d, "cross_entropy", o, s, **k
                ),
                "many": lambda d=parts, r=each, s=seeds, k=options: train.fit_many(
                    make, d, "cross_entropy", "adam", seeds=s, lr=r, **k
                ).last("loss"),
            }
            shown = "all data" if size == 150 else f"batches of {size}"
            what = "5-fold iris 4-8-3" if len(rates) == 1 else f"5 folds x {len(rates)} rates"
            report(f"{what} ({len(parts)} networks), {shown}", works)


if __name__ == "__main__":
    xor()
    iris()
