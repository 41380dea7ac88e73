"""Several devices as one: arrays that lie on all of them, in parts or as copies.

XLA computes with such an array as with one that lies in one place, and adds what the devices have
to tell each other. Where there are several processes, all of them make the same calls: each of
them knows its own parts of every array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.backend import processes
from chainrule.backend.devices import KINDS, jax
from chainrule.backend.placed import Place, Placed, compute
from chainrule.backend.tracing import is_tracing

__all__ = [
    "Layout",
    "Mesh",
    "all_devices",
    "are_in_use",
    "brought",
    "in_turn",
    "joined",
    "layout_of",
    "like",
    "mesh_of",
    "placed",
    "read",
    "sent",
    "share_batches",
    "spread",
]

_in_use = False


def are_in_use() -> bool:
    """Whether any array lies on several devices."""
    return _in_use


class Layout(tuple[Any, ...]):
    """How an array lies on a mesh: for each of its dimensions the names of the mesh's dimensions
    that it is cut along, or None."""


def all_devices(kind: str) -> int:
    """How many devices of a kind all processes have together."""
    return len(jax().devices(KINDS[kind] or None))


class Mesh:
    """Devices of all processes in rows and columns, whose dimensions have names."""

    def __init__(
        self,
        kind: str,
        shape: Sequence[int],
        names: Sequence[str],
        numbers: Sequence[int] | None = None,
    ):
        """``numbers`` are those of the devices of a process that is alone; by default the first."""
        there = jax().devices(KINDS[kind] or None)
        there = there if numbers is None else [there[n] for n in numbers]
        count = math.prod(shape)
        if count > len(there):
            raise RuntimeError(
                f"init_device_mesh: a mesh of {' x '.join(map(str, shape))} needs {count} devices, "
                f"and there {'is' if len(there) == 1 else 'are'} {len(there)} of kind {kind!r}; on "
                "CPUs XLA_FLAGS=--xla_force_host_platform_device_count=8 makes more"
            )
        if processes.size() > 1 and count != len(there):
            raise RuntimeError(
                f"init_device_mesh: {processes.size()} processes have {len(there)} devices, and a "
                f"mesh of {' x '.join(map(str, shape))} has {count}: every device has to be in it"
            )
        devices = np.array(there[:count], object).reshape(tuple(shape))
        self.raw = jax().sharding.Mesh(devices, tuple(names))
        self.kind, self.shape, self.names = kind, tuple(shape), tuple(names)

    @classmethod
    def of(cls, raw: Any, kind: str) -> Mesh:
        """The mesh that JAX names as that of an array."""
        made = cls.__new__(cls)
        made.raw, made.kind = raw, kind
        made.shape, made.names = tuple(raw.devices.shape), tuple(raw.axis_names)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def sharding(self, layout: Sequence[Any] = ()) -> Any:
        """JAX's word for a layout; an empty one is a copy on each device."""
        spec = jax().sharding.PartitionSpec(*layout)
        return jax().sharding.NamedSharding(self.raw, spec)

    def parts(self, entry: Any) -> int:
        """In how many parts a dimension is cut along these dimensions of the mesh."""
        names = () if entry is None else (entry,) if isinstance(entry, str) else entry
        return math.prod([self.shape[self.names.index(n)] for n in names])


def mesh_of(raw: Any) -> Any:
    """JAX's mesh of an array that lies on several devices, None for others."""
    return raw.sharding.mesh if _several(raw) else None


def layout_of(raw: Any) -> Any:
    """How an array lies on its mesh."""
    return Layout(raw.sharding.spec)


def _several(raw: Any) -> bool:
    traced = isinstance(raw, (jax().core.Tracer, np.ndarray))
    return not traced and len(raw.sharding.device_set) > 1


def placed(cell: Placed, mesh: Mesh, layout: Sequence[Any], op: str) -> Placed:
    """The same numbers, which are the same in all processes, on a mesh."""
    global _in_use
    for n, entry in zip(cell.shape, layout, strict=False):
        if n % mesh.parts(entry):
            raise ValueError(
                f"{op}: a dimension of {n} cannot be cut into {mesh.parts(entry)} equal parts "
                f"(shape {list(cell.shape)}, cut along {entry!r}); take another dimension, another "
                "mesh, or a size that divides"
            )
    _in_use = True
    return Placed(spread(cell.raw, mesh.sharding(layout)), cell.place)


def spread(raw: Any, sharding: Any) -> Any:
    """An array on all devices of a sharding; all processes have the same numbers."""
    if is_tracing() or isinstance(raw, jax().core.Tracer):
        return jax().lax.with_sharding_constraint(raw, sharding)
    if processes.size() == 1 or not getattr(raw, "is_fully_addressable", True):
        return jax().device_put(raw, sharding)
    a = np.asarray(raw)
    return jax().make_array_from_callback(a.shape, sharding, lambda at: a[at])


def sent(a: Any, mesh: Mesh, place: Place, entry: Any, share: bool) -> Placed:
    """Numbers of the host on a mesh, cut along their first dimension if an entry says how.

    All processes have the same numbers, or each one a ``share`` of the first dimension.
    """
    global _in_use
    _in_use = True
    if not share:
        return Placed(spread(np.array(a), mesh.sharding((entry,))), place)
    return Placed(_of_shares(a, mesh, entry, "DistributedSampler"), place)


def _of_shares(a: Any, mesh: Mesh, entry: Any, op: str) -> Any:
    n, parts = len(a), mesh.parts(entry)
    if n * processes.size() % parts:
        raise ValueError(
            f"{op}: a batch of {n} samples in each of {processes.size()} processes cannot be cut "
            f"among {parts} devices; leave such a last batch out with drop_last=True, or take a "
            f"batch_size that is a multiple of {parts // math.gcd(parts, processes.size())}"
        )
    return jax().make_array_from_process_local_data(mesh.sharding((entry,)), np.array(a))


def share_batches(mesh: Mesh | None) -> None:
    """Has tensors that are moved to a device be shares of a batch on this mesh from now on: where
    there are several processes, each has other samples."""
    global _batches
    _batches = mesh if processes.size() > 1 else None


_batches: Mesh | None = None


def brought(a: Any, place: Place) -> Placed | None:
    """The batch of which this process has a share, which the user moves to a device; None where
    that is nothing but a move."""
    if _batches is None or isinstance(a, Placed) or not a.shape:
        return None
    return Placed(_of_shares(a, _batches, _batches.names[0], "DistributedDataParallel"), place)


def in_turn(out: Any) -> Any:
    """What a call gave; on CPUs when it is there.

    XLA has a few threads for all devices that it makes of a CPU. Those that wait for the others of
    one program would be missing for these, if another program had the rest.
    """
    if _in_use and not is_tracing() and jax().default_backend() == "cpu":
        jax().block_until_ready(out)
    return out


def joined(op: str, raws: Sequence[Any]) -> list[Any]:
    """Arrays of one call, all on the mesh that some of them lie on: others are copied to it."""
    there = [m for m in map(mesh_of, raws) if m is not None]
    if not there:
        return list(raws)
    mesh = there[0]
    for other in there:
        if other is not mesh and other.devices.ravel().tolist() != mesh.devices.ravel().tolist():
            raise RuntimeError(
                f"{op}: Expected all tensors to be on the same devices, but found at least two "
                f"meshes, of {_named(mesh)} and of {_named(other)}! Move one of them with .cpu() "
                "and lay it on the mesh of the other"
            )
    whole = jax().sharding.NamedSharding(mesh, jax().sharding.PartitionSpec())
    return [raw if _several(raw) else spread(raw, whole) for raw in raws]


def _named(mesh: Any) -> str:
    numbers = [str(d.id) for d in mesh.devices.ravel()[:8]]
    return "devices " + ", ".join(numbers) + (", ..." if mesh.devices.size > 8 else "")


def read(raw: Any) -> np.ndarray:
    """All numbers of an array, wherever they are: a call that all processes make."""
    if raw.is_fully_addressable:
        return np.array(raw)
    if raw.is_fully_replicated:
        return np.array(raw.addressable_data(0))
    whole = jax().sharding.NamedSharding(raw.sharding.mesh, jax().sharding.PartitionSpec())
    return np.array(jax().jit(lambda a: a, out_shardings=whole)(raw).addressable_data(0))


def like(place: Place, raw: Any, model: Placed) -> Placed:
    """A new array that lies as a model does, if it has its shape; else a copy on each device."""
    theirs = model.raw
    mesh = mesh_of(theirs)
    if mesh is None:
        return compute.put(raw, place)
    spec = jax().sharding.PartitionSpec
    fits = raw.shape == theirs.shape
    sharding = theirs.sharding if fits else jax().sharding.NamedSharding(mesh, spec())
    return Placed(spread(raw, sharding), place)
