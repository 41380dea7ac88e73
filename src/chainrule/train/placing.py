"""Where a training computes: on the CPU, on a device, or on several, which share each batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, TypeAlias

from chainrule import nn
from chainrule.backend import devices as kinds, meshes, processes
from chainrule.backend.placed import Placed
from chainrule.data.sampler import DistributedSampler
from chainrule.nn.parallel.distributed import (
    DistributedDataParallel,
    lay_module,
    same_stream,
    spread_batch,
)
from chainrule.nn.parameter import is_lazy
from chainrule.ops.core.arguments import check_device
from chainrule.optim import Optimizer
from chainrule.placement import device as Place
from chainrule.tensor import Tensor, of_array
from chainrule.train.structures import on_tensors
from chainrule.typing import Device

__all__ = ["DevicesLike", "Placing", "check_devices", "on_host", "place_modules"]

# How many, "auto", a kind ("cuda"), one or several by name ("cuda:0,cuda:1"), or a list of these.
DevicesLike: TypeAlias = int | str | Place | Sequence[int | str | Place]

NAMES = (*kinds.KINDS, "gpu")
MEANT = 'a number, "auto", a kind like "cuda", or names like ["cuda:0", "cuda:1"]'


# --- what is asked for ----------------------------------------------------------------------------


def check_devices(devices: DevicesLike) -> tuple[str, list[int]]:
    """The kind of the devices that are meant, and their numbers, none for the CPU.

    Raises:
        RuntimeError: they are not there, or JAX is not installed.
        TypeError, ValueError: it is not clear what is meant.
    """
    try:
        kind, numbers = _meant(devices)
    except RuntimeError as error:
        if find_spec("jax") is None:
            raise RuntimeError(f"devices={devices!r}: {kinds.NO_JAX}") from None
        raise RuntimeError(f"devices={devices!r}: {error}") from None
    if kind == "cpu":
        return kind, []
    count = meshes.all_devices(kind)
    if len(numbers) > count or max(numbers) >= count:
        raise RuntimeError(
            f"devices={devices!r}: there {'is' if count == 1 else 'are'} {count} of kind {kind!r}"
            f"{MORE if kind == 'xla' else ''}"
        )
    if processes.size() > 1 and sorted(numbers) != list(range(count)):
        raise RuntimeError(
            f"devices={devices!r}: {processes.size()} processes have {count} devices together, and "
            f"all of them have to take part; give devices={kind!r}"
        )
    return kind, numbers


MORE = "; XLA_FLAGS=--xla_force_host_platform_device_count=4 has JAX make 4 of the CPU"


def _meant(devices: Any) -> tuple[str, list[int]]:
    if isinstance(devices, str):
        name = devices.strip()
        if name == "auto":
            return _all_of(_best_kind())
        if name.lstrip("-").isdecimal():
            return _meant(int(name))
        if name in NAMES:
            return _all_of(Place(name).type)
        devices = [part.strip() for part in name.split(",")]
    if isinstance(devices, Place):
        devices = [devices]
    if isinstance(devices, int) and not isinstance(devices, bool):
        return _so_many(devices)
    if not isinstance(devices, (list, tuple)) or isinstance(devices, bool):
        raise TypeError(f"devices={devices!r}: expected {MEANT}")
    return _listed(devices)


def _so_many(count: int) -> tuple[str, list[int]]:
    if count < 1:
        raise ValueError(f"devices={count}: at least one; devices='auto' takes all there are")
    kind = _best_kind()
    if kind == "cpu" and count > 1:
        kind = Place("xla").type  # or the error that says that JAX is missing
    return kind, [] if kind == "cpu" else list(range(count))


def _best_kind() -> str:
    """GPUs or TPUs if there are any; else the CPU, where several processes meet through JAX."""
    if find_spec("jax") is None:
        return "cpu"
    found = kinds.default_kind()
    return "cpu" if found == "xla" and processes.size() == 1 else found


def _all_of(kind: str) -> tuple[str, list[int]]:
    return kind, [] if kind == "cpu" else list(range(meshes.all_devices(kind)))


def _listed(given: Sequence[Any]) -> tuple[str, list[int]]:
    if not given:
        raise ValueError("devices=[]: name at least one")
    if all([isinstance(g, int) and not isinstance(g, bool) for g in given]):
        kind, numbers = _so_many(max(given) + 1)[0], list(given)
        kind = "xla" if kind == "cpu" else kind
    else:
        places = [_named(g) for g in given]
        kind, numbers = places[0].type, [p.index or 0 for p in places]
        if {p.type for p in places} != {kind}:
            raise ValueError(f"devices={list(given)}: they have to be of one kind")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"devices={list(given)}: one is named twice")
    return kind, numbers if kind != "cpu" else []


def _named(given: Any) -> Place:
    if not isinstance(given, (str, Place)) or given == "":
        raise TypeError(f"devices: {given!r} is none; expected {MEANT}")
    if isinstance(given, str) and given.partition(":")[0] not in (*NAMES, "cpu"):
        raise ValueError(f"devices: {given!r} is none; expected {MEANT}")
    return Place(given)


def place_modules(
    modules: Iterable[nn.Module], device: Device | None, devices: DevicesLike | None
) -> None:
    """Moves modules to the device or the devices that a trainer is asked to compute on."""
    if device is not None and devices is not None:
        raise ValueError(
            f"Trainer: device={device!r} is one, and devices={devices!r} share each batch; give "
            "one of the two"
        )
    if devices is not None:
        kind, numbers = check_devices(devices)
        if len(numbers) > 1:
            _lay(list(modules), kind, numbers)
            return
        device = Place(kind, *numbers)
    if device is not None:
        check_device("Trainer", device)
        for module in modules:
            module.to(device=device)


def _lay(modules: Sequence[nn.Module], kind: str, numbers: list[int]) -> None:
    mesh = meshes.Mesh(kind, (len(numbers),), ("data",), numbers if processes.size() == 1 else None)
    for module in modules:
        tensors = [*module.parameters(), *module.buffers()]
        if any(map(is_lazy, tensors)):
            raise RuntimeError(
                "Trainer: the shapes of some parameters are not known; call the model once before "
                "it is laid on several devices"
            )
        own = Placing(module).mesh
        if own is not None and own != mesh:
            raise RuntimeError(
                "Trainer: the model lies on a mesh of other devices already; leave devices out to "
                "compute there, or move it by .to('cpu') before"
            )
        if own is None:
            module.to(Place(kind, numbers[0] if processes.size() == 1 else 0))
            lay_module(module, mesh)


# --- what it means for a training -----------------------------------------------------------------


class Placing:
    """Where a model lies, and what its batches are moved to therefore."""

    def __init__(self, model: nn.Module):
        self.place: Any = None
        self.mesh: meshes.Mesh | None = None
        for t in (*model.parameters(), *model.buffers()):
            if not is_lazy(t) and t.array.__class__ is Placed:
                self.place, mesh = t.array.place, meshes.mesh_of(t.array.raw)
                self.mesh = None if mesh is None else meshes.Mesh.of(mesh, self.place.kind)
                break
        together = self.mesh is not None and processes.size() > 1
        self._together = together
        self._wrapped = together and isinstance(model, DistributedDataParallel)

    def begin(self, optimizer: Optimizer) -> None:
        """Has all processes draw the same random numbers, and states lie where parameters do."""
        if self._together:
            same_stream()
        tensors = [t for own in optimizer.state.values() for t in own.values()]
        places = {t.device for t in tensors if isinstance(t, Tensor) and t.ndim}
        here = {p.device for group in optimizer.param_groups for p in group["params"]}
        if not places <= here:
            optimizer.load_state_dict(optimizer.state_dict())

    def has_shares(self, loader: Any) -> bool:
        """Whether each of several processes has samples of its own in a loader's batches."""
        samplers = (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
        own = [*samplers, getattr(samplers[1], "sampler", None)]
        shared = any([isinstance(s, DistributedSampler) for s in own])
        return self._together and (self._wrapped or shared)

    def put(self, tree: Any, share: bool = False) -> Any:
        """A batch, or a part of one, where the model lies: cut among its devices, if there are
        several, whole on each of them where it cannot be cut into equal parts."""
        if self.place is None:
            return tree
        return on_tensors(lambda t: self._put(t, share), tree)

    def _put(self, t: Tensor, share: bool) -> Tensor:
        if not t.is_cpu:
            return t if self.mesh is None else spread_batch(t, self.mesh)
        array = t.detach().array
        if self.mesh is None:
            return of_array(kinds.put(array, self.place))
        entry = self.mesh.names[0]
        cuts = t.ndim and (share or not t.shape[0] % self.mesh.parts(entry))
        return of_array(
            meshes.sent(array, self.mesh, self.place, entry if cuts else None, share and t.ndim > 0)
        )

    def keep(self, t: Tensor) -> Tensor:
        """A tensor as a copy on each device, for many batches."""
        if self.place is None or not t.is_cpu:
            return t
        if self.mesh is None:
            return of_array(kinds.put(t.detach().array, self.place))
        return of_array(meshes.sent(t.detach().array, self.mesh, self.place, None, False))

    def keep_all(self, tree: Any) -> Any:
        """The same for all tensors of a structure."""
        return on_tensors(self.keep, tree)

    def spread(self, tree: Any) -> Any:
        """Rows that were chosen on the devices, cut among them."""
        return tree if self.mesh is None else spread_batch(tree, self.mesh)

    def batches(self, given: Iterable[Any], loader: Any) -> Iterator[Any]:
        """The batches of a loader where the model lies."""
        share = self.has_shares(loader)
        for batch in given:
            yield self.put(batch, share)


def on_host(tree: Any) -> Any:
    """Tensors on the CPU, in the same structure."""
    return on_tensors(lambda t: t if t.is_cpu else t.detach().cpu(), tree)
