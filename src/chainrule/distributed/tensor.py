"""Tensors on several devices at once, in parts or as copies: PyTorch's ``DTensor``.

    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "model"))
    distribute_module(net, mesh, {"0.weight": [Replicate(), Shard(0)]})

A tensor on a mesh is a tensor like all others, and operations on it are computed by all devices of
the mesh, as if it lay on one: losses, gradients and random masks are those of one device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from chainrule.absent import absent
from chainrule.backend import devices, meshes
from chainrule.backend.placed import Placed, compute
from chainrule.distributed.device_mesh import DeviceMesh
from chainrule.nn import Module
from chainrule.nn.parameter import is_lazy
from chainrule.placement import device
from chainrule.tensor import Tensor, of_array

__all__ = [
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "placements_of",
]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut, along this dimension if one is named."""
        return False

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return False


class Shard(Placement):
    """Cut into equal parts along a dimension, one for each device.

    >>> from chainrule.distributed import Shard
    >>> Shard(0)
    Shard(dim=0)
    """

    def __init__(self, dim: int):
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"Shard: dim must be an int, got {dim!r}")
        self.dim = dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self.dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and other.dim == self.dim

    def __hash__(self) -> int:
        return hash(("Shard", self.dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"


class Replicate(Placement):
    """A copy on each device."""

    def is_replicate(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash("Replicate")

    def __repr__(self) -> str:
        return "Replicate()"


Placements: TypeAlias = Placement | Sequence[Placement]


def _layout(op: str, mesh: DeviceMesh, placements: Placements | None, ndim: int) -> list[Any]:
    """For each dimension of a tensor the names of the mesh's dimensions that cut it."""
    given = [Replicate()] if placements is None else placements
    listed = [given] if isinstance(given, Placement) else list(given)
    listed += [Replicate()] * (mesh.ndim - len(listed))
    if len(listed) > mesh.ndim:
        raise ValueError(
            f"{op}: {len(listed)} placements for a mesh of {mesh.ndim} dimensions; there is one "
            "for each dimension of the mesh"
        )
    cut: list[tuple[str, ...]] = [()] * ndim
    for name, placement in zip(mesh.raw.names, listed, strict=True):
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise ValueError(f"{op}: {placement} of a tensor of {ndim} dimensions")
            cut[placement.dim] = (*cut[placement.dim], name)
        elif not isinstance(placement, Replicate):
            raise TypeError(f"{op}: placements are Shard(dim) and Replicate(), got {placement!r}")
    return [None if not names else names[0] if len(names) == 1 else names for names in cut]


def _laid(op: str, tensor: Tensor, mesh: DeviceMesh, placements: Placements | None) -> Any:
    place = device(mesh.device_type).home()
    if place is None:
        raise RuntimeError(f"{op}: the CPU has no mesh")
    cell = devices.put(tensor.array, place)
    return compute.lay(cell, mesh.raw, _layout(op, mesh, placements, tensor.ndim), op)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Placements | None = None
) -> Tensor:
    """A tensor on a mesh: by default a copy on each device. All processes have the same one.

    Args:
        tensor: the numbers.
        device_mesh: the devices.
        placements: one for each dimension of the mesh, :class:`Shard` or :class:`Replicate`.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"distribute_tensor: expected a Tensor, got {type(tensor).__name__}")
    out = of_array(_laid("distribute_tensor", tensor.detach(), device_mesh, placements))
    return out.requires_grad_() if tensor.requires_grad else out


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh,
    partition_fn: Mapping[str, Placements]
    | Callable[[str, Module, DeviceMesh], None]
    | None = None,
) -> Module:
    """A module whose parameters and buffers lie on a mesh, those that are not named as copies.

    Args:
        module: the module, which is changed and returned.
        device_mesh: the devices.
        partition_fn: placements by the names of parameters, or a function ``(name, module, mesh)``
            that distributes the tensors of each module in it, as PyTorch's.
    """
    op = "distribute_module"
    if callable(partition_fn):
        for name, part in module.named_modules():
            partition_fn(name, part, device_mesh)
        wanted: Mapping[str, Placements] = {}
    else:
        wanted = partition_fn or {}
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    unknown = sorted(set(wanted) - set(tensors))
    if unknown:
        raise ValueError(f"{op}: there is no tensor {unknown[0]!r}; there are {sorted(tensors)}")
    for name, t in tensors.items():
        if is_lazy(t):
            raise ValueError(f"{op}: the shape of {name!r} is not known; call the module once")
        if name in wanted or placements_of(t) is None:
            t.data = of_array(_laid(f"{op}: {name}", t.detach(), device_mesh, wanted.get(name)))
    return module


def placements_of(tensor: Tensor) -> tuple[Placement, ...] | None:
    """How a tensor lies on its mesh; None if it lies on one device."""
    array = tensor.array
    mesh = meshes.mesh_of(array.raw) if isinstance(array, Placed) else None
    if mesh is None:
        return None
    found: list[Placement] = []
    spec = meshes.layout_of(array.raw)
    for name in mesh.axis_names:
        cut = [d for d, entry in enumerate(spec) if entry is not None and name in _names(entry)]
        found.append(Shard(cut[0]) if cut else Replicate())
    return tuple(found)


def _names(entry: Any) -> tuple[str, ...]:
    return (entry,) if isinstance(entry, str) else tuple(entry)


MADE = "make the tensor, and distribute_tensor(tensor, mesh, placements) lays it on the mesh"
ABSENT = {
    "DTensor": "a tensor on a mesh is a Tensor, and placements_of(tensor) says how it lies",
    "Partial": "sums that are not complete are XLA's own; a tensor here is cut or copied",
    **dict.fromkeys(("empty", "full", "ones", "rand", "randn", "zeros"), MADE),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
