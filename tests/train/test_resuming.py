"""A run that is resumed goes on as if it had not stopped."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from train.small import problem

import chainrule
from chainrule import models, nn, optim, train


def network(seed: int = 0, dropout: float = 0.0) -> nn.Module:
    chainrule.manual_seed(seed)
    return models.MLP(4, [8], 3, dropout=dropout)


RUN = textwrap.dedent(
    """
    import os, sys
    import chainrule
    from chainrule import models, optim, train

    epochs, path, die_after, resume = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    chainrule.manual_seed(7)
    g = chainrule.Generator().manual_seed(1)
    x = chainrule.randn(90, 4, generator=g)
    y = (x @ chainrule.randn(4, 3, generator=g)).argmax(1)
    chainrule.manual_seed(3)
    model = models.MLP(4, [16, 8], 3, dropout=0.3, norm="batch")
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def die(trainer):
        if trainer.epoch == die_after:
            os._exit(9)

    trainer = train.Trainer(
        model, "cross_entropy", optimizer, schedule=schedule, metrics=["accuracy"],
        class_weight="balanced",
        callbacks=[train.Checkpoint(path), train.LambdaCallback(on_epoch_end=die)],
    )
    history = trainer.fit(
        (x[:70], y[:70]), (x[70:], y[70:]), epochs=epochs, batch_size=16, early_stopping=50,
        resume=path if resume == "yes" else None,
    )
    chainrule.save(
        {
            "model": model.state_dict(),
            "history": [{k: v for k, v in row.items() if k != "seconds"} for row in history],
            "next": chainrule.rand(3),
            "optimizer": optimizer.state_dict(),
        },
        path + ".end",
    )
    """
)


def run(epochs: int, path: Path, die_after: int = -1, resume: bool = False) -> int:
    environment = {**os.environ, "PYTHONPATH": str(Path(chainrule.__file__).parents[1])}
    arguments = [str(epochs), str(path), str(die_after), "yes" if resume else "no"]
    return subprocess.run([sys.executable, "-c", RUN, *arguments], env=environment).returncode


def test_a_killed_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    assert run(10, tmp_path / "whole") == 0
    assert run(10, tmp_path / "parts", die_after=4) == 9
    assert run(10, tmp_path / "parts", resume=True) == 0
    whole, parts = (chainrule.load(tmp_path / f"{name}.end") for name in ("whole", "parts"))
    assert whole["history"] == parts["history"]
    assert len(whole["history"]) == 10
    for key, value in whole["model"].items():
        np.testing.assert_array_equal(value.numpy(), parts["model"][key].numpy(), err_msg=key)
    assert whole["next"].tolist() == parts["next"].tolist()
    for number, state in whole["optimizer"]["state"].items():
        for key, value in state.items():
            other = parts["optimizer"]["state"][number][key]
            np.testing.assert_array_equal(value.numpy(), other.numpy())


def test_a_wrong_checkpoint_is_refused(tmp_path: Path) -> None:
    x, y = problem()
    chainrule.save({"a": 1}, tmp_path / "x")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        train.Trainer(network(), "cross_entropy").fit((x, y), resume=tmp_path / "x")
    trainer = train.Trainer(
        network(), "cross_entropy", callbacks=[train.Checkpoint(tmp_path / "y")]
    )
    trainer.fit((x, y), epochs=1)
    with pytest.raises(ValueError, match="made with 1 callbacks"):
        train.Trainer(network(), "cross_entropy").fit((x, y), resume=tmp_path / "y")


def test_the_loss_of_a_run_is_finite_and_falls() -> None:
    x, y = problem()
    history = train.Trainer(network(), "cross_entropy").fit((x, y), epochs=20)
    assert all(math.isfinite(v) for v in history["loss"])
    assert history["loss"][-1] < history["loss"][0]


def test_metrics_count_each_sample_once_however_often_a_step_looks_at_them() -> None:
    x, y = problem()
    sizes = []

    def size(output: Any, target: Any) -> float:
        sizes.append((len(output), len(target)))
        return 0.0

    model = network()
    optimizer = optim.LBFGS(model.parameters(), max_iter=3, line_search_fn="strong_wolfe")
    trainer = train.Trainer(model, "cross_entropy", optimizer, metrics={"size": size})
    trainer.fit((x, y), epochs=2, batch_size=96)
    assert sizes == [(96, 96)] * 2


def test_an_error_of_the_optimizer_that_is_no_divergence_stays_what_it_is() -> None:
    class Failing(chainrule.optim.SGD):
        def update(self, group: Any, params: Any) -> None:
            raise RuntimeError("no parameter was changed: a message of another kind")

    trainer = train.Trainer(nn.Linear(2, 1), "mse", lambda p: Failing(p, lr=0.1), progress=False)
    with pytest.raises(RuntimeError, match="of another kind") as caught:
        trainer.fit((chainrule.ones(4, 2), chainrule.ones(4, 1)), epochs=1)
    assert not isinstance(caught.value, train.DivergedError)
