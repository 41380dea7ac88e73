"""Devices in rows and columns, where PyTorch's programs look for them.

mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "model"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.attributes import Size
from chainrule.backend import devices, meshes
from chainrule.placement import device

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Devices in rows and columns; see :func:`init_device_mesh`.

    ``mesh`` as nested numbers gives the shape: the devices are JAX's, in their order.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ):
        shape = tuple(mesh.shape) if hasattr(mesh, "shape") else _shape(mesh)
        flat = mesh.reshape(-1).tolist() if hasattr(mesh, "reshape") else _flat(mesh)
        if flat != list(range(len(flat))):
            raise ValueError(f"DeviceMesh: devices are taken in their order, got {flat}")
        self._start(device_type, shape, mesh_dim_names)

    def _start(self, kind: str, shape: Sequence[int], names: Sequence[str] | None) -> None:
        self.device_type = device(kind).type
        if self.device_type == "cpu":
            raise RuntimeError(
                "init_device_mesh: the CPU is one device here; JAX's CPU devices are those of "
                "kind 'xla'"
            )
        self.mesh_dim_names = tuple(names) if names is not None else None
        if names is not None and (len(names) != len(shape) or len(set(names)) < len(names)):
            raise RuntimeError(
                f"init_device_mesh: {len(shape)} dimensions need as many different names, got "
                f"{list(names)}"
            )
        used = names or [f"dim{i}" for i in range(len(shape))]
        self.raw = meshes.Mesh(self.device_type, shape, used)
        devices.activate()

    @property
    def shape(self) -> tuple[int, ...]:
        """How many devices there are along each dimension."""
        return self.raw.shape

    @property
    def ndim(self) -> int:
        """How many dimensions the mesh has."""
        return len(self.raw.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many devices there are, or how many along a dimension."""
        return Size(self.shape).numel() if mesh_dim is None else self.shape[mesh_dim]

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self.shape}{names})"


def _shape(mesh: Any) -> tuple[int, ...]:
    return (len(mesh), *_shape(mesh[0])) if isinstance(mesh, (list, tuple)) else ()


def _flat(mesh: Any) -> list[int]:
    return [n for row in mesh for n in _flat(row)] if isinstance(mesh, (list, tuple)) else [mesh]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
) -> DeviceMesh:
    """All devices, of all processes, in rows and columns.

    Args:
        device_type: "cuda", "tpu" or "xla".
        mesh_shape: how many devices along each dimension.
        mesh_dim_names: names of the dimensions.
    """
    shape = tuple(mesh_shape)
    if not shape or not all([isinstance(n, int) and n > 0 for n in shape]):
        raise ValueError(f"init_device_mesh: mesh_shape must be positive numbers, got {mesh_shape}")
    mesh = object.__new__(DeviceMesh)
    mesh._start(device_type, shape, mesh_dim_names)
    return mesh
