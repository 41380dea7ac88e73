"""A training on several devices is that of one device with the whole batch."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

import chainrule
from chainrule import distributed as dist
from chainrule import nn

from meshes.nets import PLACES, images, losses, network, place

NEAR = 1e-6  # of losses


@pytest.fixture(scope="module")
def on_the_cpu() -> tuple[list[float], dict[str, Any]]:
    """Losses and buffers of the eager training with the kernels of the host."""
    model = place("the CPU")
    found = losses(model, compiled=False)
    return found, dict(model.named_buffers())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("where", [name for name in PLACES if name != "the CPU"])
def test_losses_are_those_of_the_cpu(where: str, compiled: bool, on_the_cpu: Any) -> None:
    """With dropout, batch normalization and Adam; running moments are those of all samples."""
    model = place(where)
    found = losses(model, compiled)
    assert found == pytest.approx(on_the_cpu[0], abs=NEAR, rel=0)
    inner = model.module if hasattr(model, "module") else model
    for name, buffer in inner.named_buffers():
        assert chainrule.allclose(buffer.cpu(), on_the_cpu[1][name], atol=1e-5), name


def test_placements_stay_through_steps_and_loading() -> None:
    model = place("two by two")
    weight, other = model.module[4].weight, model.module[8].weight
    cut = (dist.Replicate(), dist.Shard(0)), (dist.Replicate(), dist.Shard(1))
    for compiled in (False, True):
        losses(model, compiled, steps=4)
        assert (dist.placements_of(weight), dist.placements_of(other)) == cut
    model.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    assert (dist.placements_of(weight), dist.placements_of(other)) == cut
    one = (dist.Replicate(), dist.Replicate())
    assert dist.placements_of(model.module[1].running_mean) == one


def test_parts_of_the_batch_and_of_weights_are_where_they_are_said_to_be() -> None:
    model = place("two by two")
    weight = model.module[4].weight
    assert {s.data.shape for s in weight.array.raw.addressable_shards} == {(8, 64)}
    four = place("four devices")
    x, _ = images(32)
    out = four.module[0](nn.parallel.distributed.spread_batch(x.to("xla"), four.mesh))
    assert {s.data.shape for s in out.array.raw.addressable_shards} == {(8, 4, 4, 4)}


@pytest.mark.parametrize("where", ["four devices", "two by two"])
def test_a_batch_that_does_not_divide_is_computed_whole(where: str) -> None:
    expected = losses(place("the CPU"), compiled=False, count=29)
    assert losses(place(where), compiled=True, count=29) == pytest.approx(expected, abs=NEAR, rel=0)


def test_batch_norm_is_synchronized() -> None:
    """The moments are those of all samples, as with ``SyncBatchNorm``; those of parts differ."""
    x = chainrule.arange(32.0).reshape(8, 4) ** 2
    whole = nn.BatchNorm1d(4)(x)
    for kind in (nn.BatchNorm1d, nn.SyncBatchNorm):
        model = nn.parallel.DistributedDataParallel(kind(4).to("xla"))
        assert chainrule.allclose(model(x.to("xla")).cpu(), whole, atol=1e-5)
    parts = chainrule.cat([nn.BatchNorm1d(4)(x[i : i + 2]) for i in range(0, 8, 2)])
    assert not chainrule.allclose(parts, whole, atol=0.1)


def test_states_of_optimizers_go_to_where_parameters_are() -> None:
    """Between the CPU and a mesh, both ways, bit for bit."""
    model = place("two by two")
    optimizer = chainrule.optim.Adam(model.parameters())
    x, y = images(8)
    nn.functional.cross_entropy(model(x.to("xla")), y.to("xla")).backward()
    optimizer.step()
    there = optimizer.state_dict()
    own = network()
    here = chainrule.optim.Adam(own.parameters())
    here.load_state_dict(there)
    back = chainrule.optim.Adam(model.parameters())
    back.load_state_dict(here.state_dict())
    weight = model.module[4].weight
    for name in ("exp_avg", "exp_avg_sq"):
        mine, theirs = here.state[own[4].weight][name], back.state[weight][name]
        assert mine.is_cpu
        assert dist.placements_of(theirs) == dist.placements_of(weight)
        assert chainrule.equal(mine, theirs.cpu())
        assert chainrule.equal(mine, optimizer.state[weight][name].cpu())


# --- what is refused ------------------------------------------------------------------------------


def test_a_mesh_of_more_devices_than_there_are() -> None:
    with pytest.raises(RuntimeError, match=r"2 x 3 needs 6 devices, .* are 4 .*XLA_FLAGS=--xla_"):
        dist.init_device_mesh("xla", (2, 3))


def test_a_part_that_does_not_divide() -> None:
    mesh = dist.init_device_mesh("xla", (4,))
    with pytest.raises(ValueError, match=r"0.weight: a dimension of 6 cannot be cut into 4 equal"):
        dist.distribute_module(nn.Sequential(nn.Linear(3, 6)), mesh, {"0.weight": dist.Shard(0)})
    with pytest.raises(
        ValueError, match=r"distribute_tensor.*6 .*4 equal parts.*another dimension"
    ):
        dist.distribute_tensor(chainrule.ones(6), mesh, dist.Shard(0))


def laid(placements: Any, numbers: Any = (1.0, 2.0, 3.0, 4.0)) -> Any:
    given = chainrule.tensor(numbers) if isinstance(numbers, tuple) else numbers
    return dist.distribute_tensor(given, dist.init_device_mesh("xla", (4,)), placements)


def named(name: str) -> Any:
    mesh = dist.init_device_mesh("xla", (4,))
    return dist.distribute_module(nn.Sequential(nn.Linear(4, 4)), mesh, {name: dist.Shard(0)})


MESH = dist.init_device_mesh


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: named("1.w"), ValueError, r"no tensor '1\.w'; there are \['0\.bias"),
        (lambda: laid(dist.Shard(1)), ValueError, r"Shard\(dim=1\) of a tensor of 1 dim"),
        (lambda: laid([dist.Shard(0)] * 2), ValueError, "2 placements for a mesh of 1 dim"),
        (lambda: laid("x"), TypeError, r"placements are Shard\(dim\) and Replicate\(\)"),
        (lambda: laid(None, [1]), TypeError, "expected a Tensor, got list"),
        (lambda: MESH("xla", (0,)), ValueError, "positive numbers"),
        (lambda: MESH("cpu", (2,)), RuntimeError, "those of kind 'xla'"),
        (lambda: MESH("cuda", (1,)), RuntimeError, "'cuda' is not available"),
        (lambda: MESH("xla", (2,), mesh_dim_names=("a", "b")), RuntimeError, "1 dim.* as many"),
        (lambda: dist.DeviceMesh("xla", [1, 0]), ValueError, "in their order"),
    ],
)
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_mixing_places_says_how_to_move() -> None:
    x = chainrule.ones(4)
    mesh = dist.init_device_mesh("xla", (4,))
    laid = dist.distribute_tensor(x, mesh, dist.Shard(0))
    with pytest.raises(RuntimeError, match=r"same device, .* xla:0 and cpu! Move one .*\.to"):
        laid + x
    with pytest.raises(RuntimeError, match=r"same device, .* xla:0 and xla:1! Move one .*\.to"):
        laid + x.to("xla:1")
    other = dist.distribute_tensor(x, dist.init_device_mesh("xla", (2,)))
    with pytest.raises(RuntimeError, match=r"add: .*two meshes.* 0, 1, 2, 3 .* 0, 1! .*\.cpu\(\)"):
        laid + other
    square = dist.distribute_tensor(x, dist.init_device_mesh("xla", (2, 2)), dist.Shard(0))
    assert (laid + square).tolist() == [2.0] * 4  # the same devices in other rows


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copy_(chainrule.ones(3)),
        lambda x: x.normal_(),
        lambda x: x.zero_(),
        lambda x: x.data.copy_(chainrule.ones(3)),
        lambda x: nn.init.uniform_(x),
        lambda x: x[1:].fill_(2.0),
        lambda x: x.set_(chainrule.ones(3, device="xla:2")),
    ],
)
def test_what_is_written_from_the_host_stays_on_its_device(write: Any) -> None:
    x = chainrule.zeros(3, device="xla:2")
    write(x)
    (device,) = x.array.raw.devices()
    assert device.id == 2


def test_parameters_that_are_loaded_stay_on_their_device() -> None:
    layer = nn.Linear(3, 2).to("xla:2")
    layer.load_state_dict(nn.Linear(3, 2).state_dict())
    assert [d.id for p in layer.parameters() for d in p.array.raw.devices()] == [2, 2]
