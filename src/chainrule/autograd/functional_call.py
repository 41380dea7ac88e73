"""Calling a module with other tensors than its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from chainrule.autograd.overlay import Place, replaced
from chainrule.tensor import Tensor

__all__ = ["functional_call"]

R = TypeVar("R")


def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: object = (),
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> R:
    """Calls ``module`` with some of its tensors replaced, by their dotted names.

    The tensors stand in a dictionary or several. The module is left as it was, and other threads
    that use it meanwhile find its own tensors. Works with any object that keeps tensors as
    attributes (where they are neither parameters nor buffers, for one thread at a time). A tensor
    that a module has under several names is replaced under all of them, unless ``tie_weights`` is
    False; ``strict`` refuses to leave any tensor as it is.

    >>> from chainrule import nn, func, ones, zeros
    >>> layer = nn.Linear(2, 1)
    >>> func.functional_call(layer, {"weight": ones(1, 2), "bias": zeros(1)}, ones(2))
    tensor([2.])
    """
    given = parameter_and_buffer_dicts
    tensors = (
        given if isinstance(given, Mapping) else {k: t for part in given for k, t in part.items()}
    )
    if strict:
        _check_complete(module, tensors)
    places = [(_place(module, name), value) for name, value in tensors.items()]
    if tie_weights and hasattr(module, "modules"):
        places += _tied(module, places)
    with replaced(places):
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


def _place(module: Any, name: str) -> Place:
    """Where the tensor of this dotted name is held."""
    *path, attribute = name.split(".")
    for part in path:
        module = (
            module[int(part)]
            if part.isdigit() and not hasattr(module, part)
            else getattr(module, part)
        )
    for holder in ("_parameters", "_buffers"):
        held = module.__dict__.get(holder)
        if held is not None and attribute in held:
            return Place(module, holder, attribute)
    if attribute not in module.__dict__:
        raise KeyError(f"functional_call: the module has no tensor named {name!r}")
    return Place(module, "", attribute)


def _tied(module: Any, places: list[tuple[Place, Any]]) -> list[tuple[Place, Any]]:
    """The other places that hold the same tensors."""
    taken = {(id(place.owner), place.holder, place.key) for place, _ in places}
    new = {id(place.get()): value for place, value in places}
    new.pop(id(None), None)
    return [
        (Place(m, holder, key), new[id(tensor)])
        for m in module.modules()
        for holder in ("_parameters", "_buffers")
        for key, tensor in m.__dict__[holder].items()
        if id(tensor) in new and (id(m), holder, key) not in taken
    ]


def _check_complete(module: Any, tensors: Mapping[str, Tensor]) -> None:
    names = [name for name, _ in [*module.named_parameters(), *module.named_buffers()]]
    missing = sorted(set(names) - set(tensors))
    if missing:
        raise RuntimeError(f"functional_call: with strict=True, no tensor is given for {missing}")
