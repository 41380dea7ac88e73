"""``Trainer(devices=...)``, ``fit_table(devices=...)``: losses, checkpoints, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

import chainrule
from chainrule import data, nn, optim, train
from chainrule import distributed as dist
from chainrule.train.placing import check_devices

from meshes.nets import images, network

NEAR = 1e-6


def trained(count: int = 96, epochs: int = 3, resume: Any = None, **options: Any) -> train.Trainer:
    """A run with validation; of 90 samples the last batch of an epoch has 10."""
    net = options.pop("net", None) or network()
    trainer = train.Trainer(
        net,
        "cross_entropy",
        lambda p: optim.Adam(p, lr=1e-2),
        metrics=["accuracy"],
        progress=False,
        seed=3,
        **options,
    )
    chainrule.manual_seed(7)
    data = images(count)
    trainer.fit(data, tuple(t[:30] for t in data), epochs=epochs, batch_size=16, resume=resume)
    return trainer


def check_same(trainer: train.Trainer, other: train.Trainer) -> None:
    for column in ("loss", "val_loss", "accuracy"):
        own, theirs = trainer.history[column], other.history[column]
        assert own == pytest.approx(theirs, abs=NEAR, rel=0), column


@pytest.mark.parametrize("options", [{}, {"accumulate": 2, "clip_norm": 1.0}], ids=["", "clipped"])
@pytest.mark.parametrize("count", [96, 90])
def test_losses_are_those_of_the_cpu(count: int, options: dict[str, Any]) -> None:
    """Also where the last batch cannot be cut among the devices, and in steps and whole epochs."""
    alone = trained(count, **options)
    assert alone.history.ran.startswith("eager")
    for places in ({"device": "xla"}, {"devices": "xla"}, {"devices": ["xla:1", "xla:3"]}):
        there = trained(count, **options, **places)
        check_same(there, alone)
        epochs = count == 96 and not options.get("accumulate")
        assert there.history.ran == ("compiled epochs" if epochs else there.history.ran)
        assert there.history.ran.startswith("compiled")


def test_eager_epochs_and_steps_are_the_same() -> None:
    alone = trained()
    check_same(trained(devices="xla", compile=False), alone)
    seen: list[Any] = []
    steps = trained(devices=4, callbacks=[train.LambdaCallback(on_batch_end=seen.append)])
    assert steps.history.ran == "compiled steps"
    check_same(steps, alone)


def test_the_batch_is_cut_and_the_network_is_copied() -> None:
    """Each of four devices has a fourth of a batch and all parameters."""
    seen = []
    net = network()
    net[0].register_forward_pre_hook(lambda m, x: seen.append(x[0].array.raw))
    trained(count=16, epochs=1, net=net, devices="xla", compile=False)
    shards = {s.data.shape for s in seen[0].addressable_shards}
    assert (len(seen[0].sharding.device_set), shards) == (4, {(4, 1, 6, 6)})
    weight = net[4].weight
    assert dist.placements_of(weight) == (dist.Replicate(),)
    assert len(weight.array.raw.sharding.device_set) == 4


def test_a_model_on_a_mesh_is_trained_there() -> None:
    net = network()
    mesh = dist.init_device_mesh("xla", (2, 2), mesh_dim_names=("data", "model"))
    dist.distribute_module(net, mesh, {"4.weight": [dist.Replicate(), dist.Shard(0)]})
    trainer = trained(net=net)
    check_same(trainer, trained())
    assert dist.placements_of(net[4].weight) == (dist.Replicate(), dist.Shard(0))
    with pytest.raises(RuntimeError, match=r"on a mesh of other devices .* leave devices out"):
        train.Trainer(net, "mse", devices="xla")


def test_loaders_weights_of_classes_and_predictions() -> None:
    """What comes as batches of a loader, with weights; predictions come back to the CPU."""
    x, y = images(48)
    found = []
    for devices in (None, "xla"):
        loader = data.DataLoader(data.TensorDataset(x, y), batch_size=12)
        trainer = train.Trainer(
            network(),
            "cross_entropy",
            class_weight="balanced",
            progress=False,
            devices=devices,
        )
        chainrule.manual_seed(2)
        trainer.fit(loader, epochs=3)
        out = trainer.predict(x[:7])
        assert out.is_cpu
        found.append((trainer.history["loss"], out, trainer.evaluate((x, y))))
    assert found[0][0] == pytest.approx(found[1][0], abs=NEAR, rel=0)
    assert chainrule.allclose(found[0][1], found[1][1], atol=1e-5)
    assert found[0][2] == pytest.approx(found[1][2], abs=NEAR, rel=0)


def test_whole_numbers_for_an_embedding_stay_whole() -> None:
    net = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 2))
    x = chainrule.randint(0, 5, (16, 2))
    trainer = train.Trainer(net, "cross_entropy", progress=False, devices="xla")
    trainer.fit((x, x.sum(1) % 2), epochs=1, batch_size=8)
    assert trainer.predict(x).shape == (16, 2)


def test_a_loss_that_is_not_finite_ends_the_run() -> None:
    x, y = images(64)
    x[5] = float("nan")
    trainer = train.Trainer(network(), "cross_entropy", progress=False, devices="xla", seed=0)
    with pytest.raises(train.DivergedError, match=r"not finite in batch \d+ of epoch 1"):
        trainer.fit((x, y), epochs=2, batch_size=8)


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then"),
    [({"devices": "xla"}, {}), ({}, {"devices": "xla"}), ({"device": "xla"}, {"devices": 2})],
    ids=["to the CPU", "from the CPU", "to more devices"],
)
def test_checkpoints_go_anywhere(first: Any, then: Any, tmp_path: Path) -> None:
    """What is loaded elsewhere and saved again is the same file; losses go on as they were."""
    kept, again = tmp_path / "kept.safetensors", tmp_path / "again.safetensors"
    trained(epochs=2, **first).save_checkpoint(kept)
    trained(epochs=2, resume=kept, **then).save_checkpoint(again)
    assert kept.read_bytes() == again.read_bytes()
    check_same(trained(epochs=4, resume=kept, **then), trained(epochs=4))


def test_the_best_weights_come_back() -> None:
    runs = []
    for options in ({}, {"devices": "xla"}):
        net = network()
        trainer = train.Trainer(net, "cross_entropy", progress=False, seed=3, **options)
        chainrule.manual_seed(7)
        data = images(32)
        trainer.fit(data, data, epochs=8, batch_size=8, early_stopping=2)
        runs.append((len(trainer.history), net[8].weight.cpu()))
    assert runs[0][0] == runs[1][0]
    assert chainrule.allclose(runs[0][1], runs[1][1], atol=1e-5)


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ("xla", ("xla", [0, 1, 2, 3])),
        ("3", ("xla", [0, 1, 2])),
        (2, ("xla", [0, 1])),
        (1, ("cpu", [])),
        ("auto", ("cpu", [])),
        ("cpu", ("cpu", [])),
        ("xla:1,xla:3", ("xla", [1, 3])),
        ([3, 0], ("xla", [3, 0])),
        (chainrule.device("cpu"), ("cpu", [])),
    ],
)
def test_names_of_devices(devices: Any, expected: Any) -> None:
    assert check_devices(devices) == expected


@pytest.mark.parametrize(
    ("devices", "error", "message"),
    [
        (0, ValueError, "devices=0: at least one; devices='auto'"),
        ("-1", ValueError, "devices=-1: at least one"),
        (9, RuntimeError, "devices=9: there are 4 .*XLA_FLAGS=--xla_force"),
        ([7], RuntimeError, r"devices=\[7\]: there are 4"),
        ([], ValueError, "name at least one"),
        (["xla:0", "xla:0"], ValueError, "one is named twice"),
        (["xla:0", "cpu"], ValueError, "of one kind"),
        ("cuda", RuntimeError, "devices='cuda': .*'cuda' is not available"),
        ("vulkan", ValueError, "'vulkan' is none; expected a number"),
        (True, TypeError, "devices=True: expected a number"),
        (2.0, TypeError, "devices=2.0: expected a number"),
        ([2.5], TypeError, "devices: 2.5 is none"),
    ],
)
def test_devices_that_are_not_there(devices: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        train.Trainer(nn.Linear(1, 1), "mse", devices=devices)


def test_one_of_device_and_devices() -> None:
    with pytest.raises(ValueError, match=r"Trainer: device='xla' is one, .* give one of the two"):
        train.Trainer(nn.Linear(1, 1), "mse", device="xla", devices=2)
    lazy = nn.Sequential(nn.LazyLinear(2), nn.Linear(2, 1))
    with pytest.raises(RuntimeError, match="call the model once before"):
        train.Trainer(lazy, "mse", optim.SGD(lazy[1].parameters(), lr=0.1), devices=2)


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [train.Settings(epochs=4), train.Settings(hidden=(8,), epochs=4)]
)
def test_tables(settings: train.Settings) -> None:
    table = data.embedded("iris").table
    alone, there = (
        train.fit_table(table, settings=settings, progress=False, devices=devices)
        for devices in (None, "xla")
    )
    for column in ("loss", "val_loss"):
        own, other = alone.history[column], there.history[column]
        assert own == pytest.approx(other, abs=1e-5), column
    assert all(p.is_cpu for p in there.model.parameters())
    assert there.predict(table) == alone.predict(table)


def test_the_search_is_for_the_cpu() -> None:
    settings = train.Settings(effort="high")
    with pytest.raises(ValueError, match="devices='xla': the effort 'high' .* on the CPU; leave"):
        train.fit_table(data.embedded("iris").table, settings=settings, devices="xla")


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chainrule", "fit", "iris", "--hidden", "8", "--epochs", "3"]
    command += ["--json", "--out", str(tmp_path / "out"), "--devices"]
    run = subprocess.run([*command, "xla"], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["scores"]["accuracy"] > 0.2
    run = subprocess.run([*command, "9"], capture_output=True, text=True, timeout=240)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "chainrule fit: error: devices='9': there are 4 of kind 'xla'" in run.stderr
