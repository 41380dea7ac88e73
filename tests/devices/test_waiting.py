"""Checks of compiled steps on a device, which are looked at later."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from devices.pairs import PLACE, Pair, lowered, mlp, mlp_data, momentum, drops_twice

import chainrule
from chainrule import nn
from chainrule.backend import K

pytest.importorskip("jax")


def test_a_gradient_that_is_not_finite_changes_nothing() -> None:
    pair = Pair(mlp)
    data = mlp_data()
    pair.run(data)
    before = copy.deepcopy(pair.there.state_dict())
    steps = pair.theirs.state_dict()["state"][0]["step"]
    x, y = data[0]
    with pytest.raises(RuntimeError, match="not finite|NaN"):
        pair.compiled((x * math.nan).to(PLACE), y.to(PLACE)).item()
    for name, t in pair.there.state_dict().items():
        assert chainrule.equal(t.cpu(), before[name].cpu()), name
    assert pair.theirs.state_dict()["state"][0]["step"] == steps
    a, b = pair.run(data)
    np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_an_epoch_that_diverges_ends_before_the_step() -> None:
    pair = Pair(mlp)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    x[17] = math.nan  # in the fourth batch
    for a, b in zip(x.split(5)[:3], y.split(5)[:3], strict=True):
        pair.step(a, b)
    losses = pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5)
    # The step runs in its own mode, whenever its numbers are read.
    with chainrule.no_grad(), pytest.raises(RuntimeError, match="not finite|NaN") as caught:
        losses.cpu()
    assert "in call 3 of 6" in "".join(caught.value.__notes__)
    pair.check()


def test_an_epoch_that_diverges_undoes_what_was_sent_behind_it() -> None:
    """Epochs and steps do not wait for each other; the first error comes, and nothing after it."""
    pair = Pair(mlp)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    bad = x.clone()
    bad[17] = math.nan
    for a, b in [*data, *data[:3]]:
        pair.step(a, b)
    there, bad, targets = x.to(PLACE), bad.to(PLACE), y.to(PLACE)
    count = pair.theirs.state_dict()["state"][0]["step"]

    def run() -> None:
        pair.compiled.epoch(there, targets, batch_size=5)
        pair.compiled.epoch(bad, targets, batch_size=5)
        pair.compiled(there[:5], targets[:5])
        pair.compiled.epoch(there, targets, batch_size=5).cpu()

    with pytest.raises(RuntimeError, match="not finite|NaN") as caught:
        run()
    assert caught.value.__notes__[0] == "in call 3 of 6, counted from 0"
    assert "those after it did nothing" in caught.value.__notes__[1]
    assert pair.theirs.state_dict()["state"][0]["step"] == count + 9
    pair.check()
    wanted, found = pair.run(data)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_open_steps_hold_few_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones are looked at soon, small ones all at once."""
    pair, data = Pair(mlp), mlp_data(40)
    monkeypatch.setattr("chainrule.compiler.waiting.HELD", 4 * (5 * 4 * 4 + 5 * 8))
    eager, found = [], []
    for x, y in data:
        eager.append(pair.step(x, y))
        found.append(pair.compiled(x.to(PLACE), y.to(PLACE)))
        runner = pair.compiled._used.runner if pair.compiled.repeated else None
        assert runner is None or len(runner.waiting.calls) <= 4
    np.testing.assert_allclose([t.item() for t in found], [t.item() for t in eager], rtol=1e-5)


def test_epochs_that_do_again_what_is_no_error() -> None:
    """Epochs of one step and of several, and the rows that they returned."""
    limit = chainrule.tensor([1.0], device=PLACE)

    def step(x: Any) -> Any:
        return (x * limit).sum() if K.all_finite([x.array]) else (x * 0).nansum() - 1

    x = chainrule.arange(8.0).reshape(4, 2)
    for rows in (1, 4):
        compiled = chainrule.compile(step)
        for _ in range(4):
            compiled(x[:1].to(PLACE))
        bad = x[:rows].clone()
        bad[-1] = math.inf
        first = compiled.epoch(x[:rows].to(PLACE), batch_size=1)
        second = compiled.epoch(bad.to(PLACE), batch_size=1)
        third = compiled.epoch(x[:rows].to(PLACE), batch_size=1)
        sums = x[:rows].sum(1).tolist()
        assert first.tolist() == third.tolist() == sums
        assert second.tolist() == [*sums[:-1], -1.0]


def test_gradients_stay_where_they_are() -> None:
    """They are the program's own memory, as on the CPU; a copy is the user's."""
    pair = Pair(mlp)
    pair.run(mlp_data())
    leaf = pair.there[0].weight
    held, kept = leaf.grad, leaf.grad.clone()
    before = kept.cpu()
    places = []
    for x, y in mlp_data(4):
        pair.compiled(x.to(PLACE), y.to(PLACE))
        places.append(leaf.grad.array.raw.unsafe_buffer_pointer())
    assert leaf.grad is held
    assert len(set(places)) == 1
    assert chainrule.equal(kept.cpu(), before)
    assert not chainrule.equal(held.cpu(), before)
    late = (held * chainrule.ones_like(held).requires_grad_()).sum()
    pair.compiled(x.to(PLACE), y.to(PLACE))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        late.backward()


def test_a_number_out_of_range_is_the_eager_error() -> None:
    table = nn.Embedding(5, 3).to(PLACE)
    read = chainrule.compile(lambda i: table(i).sum(), fullgraph=True)
    with chainrule.no_grad():
        for _ in range(4):
            read(chainrule.tensor([1, 4], device=PLACE)).item()
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            read(chainrule.tensor([1, 5], device=PLACE)).item()
        assert read(chainrule.tensor([1, 2], device=PLACE)).shape == ()


def test_memory_that_runs_out_names_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(mlp)
    pair.run(mlp_data())

    def full(*args: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 123 bytes.")

    monkeypatch.setattr(lowered(pair.compiled), "fast", full)
    x, y = mlp_data()[0]
    with pytest.raises(chainrule.cuda.OutOfMemoryError, match=r"f32\[5,4\].*smaller batch"):
        pair.compiled(x.to(PLACE), y.to(PLACE))
    monkeypatch.undo()
    a = pair.step(x, y).item()
    assert math.isclose(pair.compiled(x.to(PLACE), y.to(PLACE)).item(), a, rel_tol=1e-5)


@pytest.mark.parametrize("epoch", [True, False])
def test_steps_that_did_nothing_have_drawn_nothing(epoch: bool) -> None:
    pair = Pair(drops_twice, momentum)
    data = mlp_data(6)
    pair.run(data)
    x, y = (chainrule.cat([part[i] for part in data]) for i in range(2))
    x[17] = math.nan  # in the fourth batch

    def eager() -> None:
        for a, b in zip(x.split(5), y.split(5), strict=True):
            pair.step(a, b)

    def repeated() -> None:
        if epoch:
            pair.compiled.epoch(x.to(PLACE), y.to(PLACE), batch_size=5).cpu()
        for a, b in zip(x.split(5), y.split(5), strict=True):
            last = pair.compiled(a.to(PLACE), b.to(PLACE))
        last.item()

    after = []
    for run in (eager, repeated):
        chainrule.manual_seed(2)
        with pytest.raises(RuntimeError, match="not finite|NaN"):
            run()
        after.append(chainrule.rand(3))
    assert chainrule.equal(*after)
    pair.check()


def test_steps_that_are_done_again_have_their_random_numbers() -> None:
    """Where a check comes out otherwise than recorded, and that is no error."""
    net = drops_twice().to(PLACE)

    def step(x: Any) -> Any:
        return net(x).nansum() if K.all_finite([x.array]) else x.nansum() + net(x).nansum()

    compiled = chainrule.compile(step)

    def run(step: Any) -> list[float]:
        chainrule.manual_seed(3)
        found = []
        for k in range(8):
            x = chainrule.ones(5, 4)
            x[0] = math.inf if k == 5 else 1.0
            found += [step(x.to(PLACE)), chainrule.rand(2).sum()]
        return [t.item() for t in found]

    with chainrule.no_grad():
        run(compiled)
        np.testing.assert_allclose(run(compiled), run(step), rtol=1e-6)
    assert compiled.repeated > 4
