"""Recurrent modules in words that a drawing needs: layers, directions, weights, states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.base import RNNBase
from chainrule.nn.recurrent.cells import RNNCellBase
from chainrule.nn.recurrent.variants import Bidirectional, PeepholeLSTM

__all__ = ["Recurrence", "Strand", "recurrence_of"]

Shape = tuple[int, ...]


@dataclass
class Strand:
    """One layer in one direction: a step's weights, which are the same for all steps."""

    kind: str  # RNN, GRU or LSTM
    hidden_size: int
    weights: dict[str, Shape]
    backward: bool = False
    function: str = "tanh"  # of an RNN
    peepholes: bool = False

    def name(self, part: str) -> str:
        """The name of the parameter that begins so, or nothing."""
        return next((n for n in self.weights if n.rpartition(".")[2].startswith(part)), "")

    @property
    def states(self) -> tuple[str, ...]:
        """What is handed on to the next step."""
        return ("h", "c") if self.kind == "LSTM" else ("h",)


@dataclass
class Recurrence:
    """A recurrent module: its strands by layer, from the input up, and what follows them."""

    title: str
    input_size: int
    layers: list[list[Strand]]
    output: dict[str, Shape] = field(default_factory=dict)  # weights of an output, if it has one


def recurrence_of(model: Module, layer: str | None) -> Recurrence:
    """The recurrent module of a model: that of a name, or the first."""
    found = dict(_recurrent(model))
    if layer is not None:
        if layer not in found:
            known = ", ".join(repr(path) for path in found) or "none"
            raise ValueError(
                f"wiring: {layer!r} is no recurrent layer of this model; it has {known}"
            )
        return _described(found[layer], layer)
    if not found:
        raise TypeError(
            f"wiring: {type(model).__name__} has no recurrent layer; expected an RNN, GRU, LSTM, "
            "one of their cells, PeepholeLSTM or Bidirectional, or a model that holds one"
        )
    path, module = next(iter(found.items()))
    return _described(module, path)


def _recurrent(model: Module) -> Iterator[tuple[str, Module]]:
    inside: tuple[str, ...] = ()
    for path, module in model.named_modules():
        if isinstance(module, (RNNBase, RNNCellBase, PeepholeLSTM, Bidirectional)):
            if not path.startswith(inside) or not inside:
                yield path, module
            if isinstance(module, Bidirectional):
                inside = (*inside, f"{path}." if path else "")


def _described(module: Module, path: str) -> Recurrence:
    title = f"{path}: {_short(module)}" if path else _short(module)
    if isinstance(module, Bidirectional):
        parts = []
        for name in ("forward_layer", "backward_layer"):
            inner = _layers(getattr(module, name), f"{name}.")
            if len(inner) > 1 or len(inner[0]) > 1:
                raise ValueError(
                    f"wiring: {name} has several layers or directions; draw it on its own"
                )
            parts.append(inner[0][0])
        parts[1].backward = True
        output = {
            name: tuple(p.shape)
            for name, p in module.named_parameters()
            if name.startswith("from_")
        }
        return Recurrence(title, module.forward_layer.input_size, [parts], output)
    return Recurrence(title, module.input_size, _layers(module))


def _layers(module: Module, prefix: str = "") -> list[list[Strand]]:
    shapes = {f"{prefix}{n}": tuple(p.shape) for n, p in module.named_parameters(recurse=False)}
    if not isinstance(module, RNNBase):
        kind = type(module).__name__.removesuffix("Cell").removeprefix("Peephole")
        size = int(module.hidden_size)
        strand = Strand(kind, size, shapes, function=_function(module))
        strand.peepholes = isinstance(module, PeepholeLSTM)
        return [[strand]]
    found = []
    for layer in range(module.num_layers):
        row = []
        for backward in (False, True)[: 2 if module.bidirectional else 1]:
            suffix = f"_l{layer}{'_reverse' if backward else ''}"
            own = {n: s for n, s in shapes.items() if n.endswith(suffix)}
            strand = Strand(module.kind, module.hidden_size, own, backward, _function(module))
            row.append(strand)
        found.append(row)
    return found


def _function(module: Module) -> str:
    given = getattr(module, "nonlinearity", "tanh")
    return given if isinstance(given, str) else getattr(given, "__name__", "g")


def _short(module: Module) -> str:
    lines = repr(module).splitlines()
    return lines[0] if len(lines) == 1 else type(module).__name__
