"""A module on all devices, of which each computes a part of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule import random
from chainrule.autograd.modes import no_grad
from chainrule.backend import devices, meshes, processes
from chainrule.backend.placed import Placed, compute
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy
from chainrule.ops.core.primitive import Linear
from chainrule.placement import device as Place
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Device

__all__ = ["DistributedDataParallel", "lay_module", "same_stream", "spread_batch"]


class _Cut(Linear):
    """The same batch, of which each device has a part."""

    rounds = False

    def __init__(self) -> None:
        self.name, self.batch, self.is_view = "cut_batch", "carry", False

    def raw(self, a: Any, mesh: meshes.Mesh) -> Any:
        whole = a.shape[0] % mesh.parts(mesh.names[0])
        return compute.lay(a, mesh, () if whole else mesh.names[:1], "DistributedDataParallel")

    def transpose(self, g: Any, shape_in: Any, mesh: meshes.Mesh) -> Any:
        return g


_cut = _Cut()


def spread_batch(tree: Any, mesh: meshes.Mesh) -> Any:
    """Tensors, also in lists and dictionaries, whose first dimension is cut among the devices.

    Where it cannot be cut into equal parts, each device has all of it.
    """
    if isinstance(tree, Tensor):
        return tree if tree.ndim == 0 or tree.is_cpu else _cut(tree, mesh=mesh)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[spread_batch(part, mesh) for part in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)([spread_batch(part, mesh) for part in tree])
    if isinstance(tree, dict):
        return {key: spread_batch(part, mesh) for key, part in tree.items()}
    return tree


def lay_module(module: Module, mesh: meshes.Mesh) -> None:
    """Puts copies of a module that is on a device on all devices of a mesh: that of process 0.

    What lies on a mesh already stays as it is.
    """
    with no_grad():
        for t in [*module.parameters(), *module.buffers()]:
            array = t.array
            if meshes.mesh_of(array.raw) is None:
                numbers = processes.from_first(compute.read(array))
                cell: Placed = devices.put(numbers, array.place)
                t.data = of_array(compute.lay(cell, mesh, (), "DistributedDataParallel"))


class DistributedDataParallel(Module):
    """y = module(x), each device computing a part of the batch; parameters are copies.

    The loss is that of one device with the whole batch: batch normalization takes its statistics
    over all of it (as ``SyncBatchNorm``), and dropout draws the masks of one device. In several
    processes each one moves its share of a batch to a device; what comes out is the whole batch.
    The parameters become those of process 0, and so does the stream of random numbers.

    The module is ``.module``, and its parameters have ``module.`` before their names.

    Shape: that of the module. A batch that cannot be cut into equal parts is computed whole by each
    device; where each process brings its share, these have to divide.

    Args:
        module: a module on a device.
        device_ids: devices of this process, as PyTorch asks for: they have to be there, and those
            of JAX are all used.
        output_device: likewise.
        dim: the dimension of samples: 0.
        process_group: None or the group of all processes.
        mesh: the devices, by default all in a row.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
        process_group: Any = None,
        mesh: Any = None,
    ):
        super().__init__()
        if dim != 0:
            raise ValueError(
                f"DistributedDataParallel: batches are cut along dimension 0, got {dim}"
            )
        tensors = [*module.parameters(), *module.buffers()]
        if not any([p.requires_grad for p in module.parameters()]):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient"
            )
        if any(map(is_lazy, tensors)):
            raise RuntimeError(
                "DistributedDataParallel: modules with uninitialized parameters can't be used; "
                "call the module once before"
            )
        kinds = {t.device.type for t in tensors}
        if kinds == {"cpu"}:
            module.to(devices.default_kind())
        elif len(kinds) > 1:
            raise ValueError(f"DistributedDataParallel: the module is on several devices: {kinds}")
        self.module = module
        kind = tensors[0].device.type
        for place in [*(device_ids or ()), *(() if output_device is None else (output_device,))]:
            _check_there(kind, place)
        self.mesh = mesh.raw if mesh is not None else _row(kind)
        lay_module(module, self.mesh)
        same_stream()
        meshes.share_batches(self.mesh)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*spread_batch(inputs, self.mesh), **spread_batch(kwargs, self.mesh))

    def no_sync(self) -> Any:
        """A context that PyTorch needs to add up gradients without exchanging them: here they are
        exchanged when they are used, so it changes nothing."""
        return no_sync()


class no_sync:
    """See :meth:`DistributedDataParallel.no_sync`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def _check_there(kind: str, place: int | Device) -> None:
    """Refuses a device that is not there; of several processes each counts its own as it likes."""
    if processes.size() > 1:
        return
    try:
        Place(f"{kind}:{place}" if isinstance(place, int) else place)
    except RuntimeError as error:
        raise RuntimeError(f"DistributedDataParallel: device_ids: {error}; leave it out") from None


def _row(kind: str) -> meshes.Mesh:
    return meshes.Mesh(kind, (meshes.all_devices(kind),), ("data",))


def same_stream() -> None:
    """Has all processes draw the random numbers of process 0."""
    if processes.size() > 1:
        state = processes.from_first(random.get_rng_state().numpy())
        random.set_rng_state(state)
