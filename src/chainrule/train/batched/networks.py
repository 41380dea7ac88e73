"""The networks that are to be trained together: each with its data, its stream and its record."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule import nn, optim
from chainrule.optim.names import OptimizerLike
from chainrule.random import Generator, default_generator, fork_rng, manual_seed
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype, to_features, to_tensor
from chainrule.train.callbacks import EarlyStopping
from chainrule.train.batched.columns import Data
from chainrule.train.batched.rates import OwnRates
from chainrule.train.history import Ending, History
from chainrule.train.batched.stacking import architecture
from chainrule.typing import HasArray

__all__ = ["Maker", "Network", "make_networks"]

Maker = Callable[[], nn.Module]


@dataclass
class Network:
    """One network: what it learns from, its record, and why it stopped."""

    model: nn.Module
    data: Data
    validation: Data | None
    generator: Generator
    lr: float | None
    optimizer: OptimizerLike | None
    stopping: EarlyStopping | None
    history: History = field(default_factory=History)
    stopped: str = ""
    ending: Ending = ""
    best: float = math.inf
    finished: bool = False
    rates: OwnRates | None = None

    def stop(self, reason: str, ending: Ending = "stopped") -> None:
        """Ends the training of this network; the first reason counts."""
        if not self.stopped:
            self.stopped, self.ending = reason, ending

    def watched(self, row: Mapping[str, float]) -> float:
        """What a row is judged by: lower is better, and NaN never is."""
        if self.stopping is not None:
            return self.stopping.watched(row)[1]
        return row.get("val_loss", math.nan)

    def kind(self) -> Hashable:
        """Networks of one kind are computed together."""
        parts = [*self.data, *(self.validation or ())]
        shapes = [None if t is None else (tuple(t.shape), t.dtype) for t in parts]
        return architecture(self.model), str(shapes), id(self.optimizer)


def make_networks(
    model: Maker | Sequence[Maker | nn.Module],
    data: Sequence[Any],
    optimizer: OptimizerLike | Sequence[OptimizerLike] | None,
    seeds: Iterable[int] | None,
    lr: float | Sequence[float] | Tensor | HasArray | None,
    validation: Sequence[Any] | None,
    early: int | EarlyStopping | None,
) -> list[Network]:
    """The networks that arguments, each for all or a list with one for each, ask for."""
    given: dict[str, Any] = {
        "model": model,
        "data": data,
        "optimizer": optimizer,
        "lr": lr,
        "validation": validation,
    }
    lists = {k: list(v) for k, v in given.items() if _is_list(k, v)}
    if seeds is not None:
        lists["seeds"] = list(seeds)
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            f"fit_many: lists must have one entry for each network, got lengths {lengths}"
            if lengths
            else "fit_many: how many networks? Give seeds=range(n), or a list of data or rates"
        )
    count = next(iter(lengths.values()))
    if count == 0:
        raise ValueError("fit_many: the lists are empty, there is nothing to train")
    lists.setdefault("seeds", list(range(count)))
    _check_models(lists.get("model", [model]))
    known: dict[Any, Tensor] = {}
    return [
        _network(
            {k: lists[k][i] if k in lists else v for k, v in given.items()},
            lists["seeds"][i],
            early,
            known,
        )
        for i in range(count)
    ]


def _check_models(models: list[Any]) -> None:
    ready = [m for m in models if isinstance(m, nn.Module)]
    if len({id(m) for m in ready}) < len(ready) or (ready and len(models) == 1):
        raise ValueError(
            "fit_many: each network needs a module of its own; pass a function that makes one, "
            "such as lambda: models.MLP(2, [4], 1), or a list of different modules"
        )
    wrong = [m for m in models if not callable(m)]
    if wrong:
        raise TypeError(
            f"fit_many: model must be a function that makes a module, got {type(wrong[0]).__name__}"
        )


def _is_list(name: str, value: Any) -> bool:
    if name == "lr":
        return isinstance(value, (list, tuple, Tensor)) or hasattr(value, "__array__")
    return isinstance(value, list)


def _network(
    given: dict[str, Any], seed: int, early: int | EarlyStopping | None, known: dict[Any, Tensor]
) -> Network:
    with fork_rng():
        manual_seed(seed)
        made = given["model"]
        model = made if isinstance(made, nn.Module) else made()
        generator = default_generator.clone_state()
    if not isinstance(model, nn.Module):
        raise TypeError(f"fit_many: model() must return a module, got {type(model).__name__}")
    model.train()
    if isinstance(given["optimizer"], optim.Optimizer):
        raise TypeError(
            "fit_many: got an optimizer, which belongs to parameters already; give its name or a "
            "function that makes one, such as lambda p: optim.SGD(p, lr=0.1, momentum=0.9)"
        )
    lr = None if given["lr"] is None else float(given["lr"])
    if lr is not None and not lr >= 0:
        raise ValueError(f"fit_many: a learning rate must not be negative, got {lr}")
    validation = given["validation"]
    return Network(
        model,
        _parts("data", given["data"], model, known),
        None if validation is None else _parts("validation", validation, model, known),
        generator,
        lr,
        given["optimizer"],
        EarlyStopping(early) if isinstance(early, int) else copy.copy(early),
    )


def _parts(name: str, given: Any, model: nn.Module, known: dict[Any, Tensor]) -> Data:
    """Inputs, targets and weights as tensors; what networks share stays one tensor."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        shown = len(given) if isinstance(given, (tuple, list)) else type(given).__name__
        raise ValueError(
            f"fit_many: expected {name} as (x, y) or (x, y, sample_weight), or a list of such, got "
            f"{shown}"
        )
    dtype = floating_dtype(model)
    parts = []
    for i, part in enumerate((*given, None)[:3]):
        key = (id(part), dtype, i == 0)
        if part is not None and key not in known:
            known[key] = to_features([part], model)[0] if i == 0 else to_tensor(part, dtype)
        parts.append(None if part is None else known[key])
    sizes = [int(t.shape[0]) for t in parts if t is not None]
    if len(set(sizes)) != 1 or sizes[0] == 0:
        raise ValueError(f"fit_many: the parts of {name} must have one length, got {sizes}")
    return tuple(parts)  # type: ignore[return-value]
