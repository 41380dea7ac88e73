"""One record of PyTorch's module database in both libraries, with the same parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from parity.database.difference import difference
from parity.database.sides import tensors_in
from parity.database.translate import Missing, of_chainrule
from torch.testing._internal.common_modules import (
    ModuleErrorEnum,
    ModuleInfo,
    ModuleInput,
    module_db,
)

import chainrule
from chainrule import nn

__all__ = ["ASPECTS", "MODULES", "dtypes", "exists"]

MODULES: dict[str, ModuleInfo] = {info.name.removeprefix("nn."): info for info in module_db}
RANDOM = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"}
RANDOM |= {"RReLU", "FractionalMaxPool2d", "FractionalMaxPool3d"}


def dtypes(info: ModuleInfo) -> list[str]:
    """The dtypes that are compared."""
    names = {str(d).removeprefix("torch.") for d in info.supported_dtypes("cpu")}
    return [d for d in ("float64", "float32", "complex128") if d in names]


class Pair:
    """A module of each library with equal parameters and buffers, and equal inputs."""

    def __init__(self, info: ModuleInfo, given: ModuleInput, dtype: str, training: bool):
        made, call = given.constructor_input, given.forward_input
        kind = getattr(torch, dtype)
        torch.manual_seed(0)
        self.theirs = info.module_cls(*made.args, **made.kwargs).to(kind).train(training)
        ours = getattr(nn, info.module_cls.__name__)
        args, kwargs = of_chainrule(made.args), of_chainrule(made.kwargs)
        self.ours = ours(*args, **kwargs).to(getattr(chainrule, dtype)).train(training)
        self.args, self.kwargs = call.args, call.kwargs
        if any(isinstance(p, torch.nn.UninitializedParameter) for p in self.theirs.parameters()):
            self._materialize()
        state = {k: of_chainrule(v) for k, v in self.theirs.state_dict().items()}
        self.missing = self.ours.load_state_dict(state)

    def _materialize(self) -> None:
        """A first call gives lazy parameters their shapes, in copies of the modules."""
        with torch.no_grad(), chainrule.no_grad():
            self.theirs(*self.args, **self.kwargs)
            self.ours(*of_chainrule(self.args), **of_chainrule(self.kwargs))

    def call(self, requires_grad: bool) -> tuple[tuple[Any, list[Any]], tuple[Any, list[Any]]]:
        """The results of both, each with the tensors that can be differentiated by."""
        args, kwargs = _copied(self.args), _copied(self.kwargs)
        our_args = of_chainrule(args, requires_grad)
        our_kwargs = of_chainrule(kwargs, requires_grad)
        theirs = [t for t in tensors_in((args, kwargs), torch.Tensor) if t.requires_grad]
        ours = [t for t in tensors_in((our_args, our_kwargs), chainrule.Tensor) if t.requires_grad]
        if isinstance(self.theirs, torch.nn.CTCLoss):
            # PyTorch's gradient is the one by what log_softmax is given.
            args = (args[0].log_softmax(-1), *args[1:])
            our_args = (our_args[0].log_softmax(-1), *our_args[1:])
        return (
            (self.theirs(*args, **kwargs), [*theirs, *self.theirs.parameters()]),
            (self.ours(*our_args, **our_kwargs), [*ours, *self.ours.parameters()]),
        )


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(_copied(v) for v in value)
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return value


def _each(
    info: ModuleInfo, dtype: str, requires_grad: bool, compare: Callable[[Pair], str]
) -> Iterator[str]:
    for training in (True, False) if info.train_and_eval_differ else (True,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            inputs = info.module_inputs_func(
                info, "cpu", getattr(torch, dtype), requires_grad, training=training
            )
        for n, given in enumerate(inputs):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = compare(Pair(info, given, dtype, training))
            except Missing:
                continue
            except Exception as error:  # noqa: BLE001
                found = f"{type(error).__name__}: {error}"
            if found:
                mode = "training" if training else "evaluation"
                made = given.constructor_input
                yield f"[{n}] {mode}, {made.args} {made.kwargs}: {found}"


def _drawn(info: ModuleInfo, pair: Pair) -> bool:
    return info.module_cls.__name__ in RANDOM and pair.theirs.training


def exists(info: ModuleInfo) -> bool:
    """Whether chainrule has the layer."""
    return hasattr(nn, info.module_cls.__name__)


def values(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """The results, and the buffers that the call has changed."""

    def compare(pair: Pair) -> str:
        (theirs, _), (ours, _) = pair.call(False)
        found = difference(_plain(ours), _plain(theirs), False, not _drawn(info, pair))
        buffers = [dict(m.named_buffers()) for m in (pair.ours, pair.theirs)]
        if list(buffers[0]) != list(buffers[1]):
            return f"buffers {list(buffers[0])} for {list(buffers[1])}"
        return found or difference(list(buffers[0].values()), list(buffers[1].values()), False)

    yield from _each(info, dtype, False, compare)


def _plain(result: Any) -> Any:
    """Named tuples as tuples, so that only what they hold is compared."""
    return tuple(result) if isinstance(result, tuple) else result


def _slopes(library: Any, outputs: list[Any], by: list[Any], seed: int, graph: bool) -> list[Any]:
    r = np.random.default_rng(seed)
    weights = []
    for y in outputs:
        w = r.normal(size=tuple(y.shape))
        kind = str(y.dtype).rpartition(".")[2]
        w = np.asarray(w + 1j * r.normal(size=w.shape) if "complex" in kind else w).astype(kind)
        weights.append(torch.from_numpy(w) if library is torch else chainrule.as_tensor(w))
    kept = [(y, w) for y, w in zip(outputs, weights, strict=True) if y.requires_grad]
    return list(
        library.autograd.grad(
            [y for y, _ in kept],
            by,
            [w for _, w in kept],
            create_graph=graph,
            materialize_grads=True,
        )
    )


def gradients(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """The gradients of a weighted sum of the results by the inputs and the parameters."""
    yield from _derivatives(info, dtype, 1)


def second_order(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """The gradients of a weighted sum of those gradients."""
    if info.supports_gradgrad:
        yield from _derivatives(info, dtype, 2)


def _derivatives(info: ModuleInfo, dtype: str, order: int) -> Iterator[str]:
    def along(library: Any, result: Any, by: list[Any]) -> list[Any]:
        outputs = [y for y in tensors_in(result, library.Tensor) if y.requires_grad]
        slopes = _slopes(library, outputs, by, 1, order == 2)
        if order == 1:
            return slopes
        if not any(s.requires_grad for s in slopes):
            return [0 * v.detach() for v in by]
        return _slopes(library, slopes, by, 2, False)

    def compare(pair: Pair) -> str:
        if _drawn(info, pair):
            return ""
        (theirs, by), (ours, our_by) = pair.call(True)
        if not by or not any(t.requires_grad for t in tensors_in(theirs, torch.Tensor)):
            return ""
        try:
            expected = along(torch, theirs, by)
        except RuntimeError:
            return ""
        return difference(along(chainrule, ours, our_by), expected, False)

    yield from _each(info, dtype, True, compare)


def state(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """The state_dict in both directions, and what ``print`` shows."""

    def compare(pair: Pair) -> str:
        ours, theirs = pair.ours.state_dict(), pair.theirs.state_dict()
        if list(ours) != list(theirs):
            return f"keys {list(ours)} for {list(theirs)}"
        found = difference(list(ours.values()), list(theirs.values()), False)
        if found:
            return found
        pair.theirs.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in ours.items()})
        # A linear layer that its quantization would skip has another name in PyTorch.
        shown = repr(pair.theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
        if repr(pair.ours) != shown:
            return f"{pair.ours!r} for {pair.theirs!r}"
        return ""

    yield from _each(info, dtype, False, compare)


def signatures(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """The names, order and defaults of the constructor's parameters."""
    del dtype
    theirs = inspect.signature(info.module_cls).parameters
    ours = inspect.signature(getattr(nn, info.module_cls.__name__)).parameters
    positional = [p.name for p in theirs.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    mine = [p.name for p in ours.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if mine[: len(positional)] != positional and "args" not in theirs:
        yield f"parameters {mine} for {positional}"
    for name in set(theirs) & set(ours):
        a, b = ours[name].default, theirs[name].default
        if str(a).rpartition(".")[2] != str(b).rpartition(".")[2] and not callable(b):
            yield f"{name}={a!r} for {b!r}"


def errors(info: ModuleInfo, dtype: str) -> Iterator[str]:
    """What PyTorch refuses is refused, with an exception that the same ``except`` catches."""
    if info.module_error_inputs_func is None:
        return
    kind = getattr(torch, dtype)
    for n, case in enumerate(
        info.module_error_inputs_func(info, "cpu", kind, False, training=True)
    ):
        made = case.module_error_input.constructor_input
        call = case.module_error_input.forward_input
        try:
            module = getattr(nn, info.module_cls.__name__)(
                *of_chainrule(made.args), **of_chainrule(made.kwargs)
            ).to(getattr(chainrule, dtype))
            if case.error_on is ModuleErrorEnum.FORWARD_ERROR:
                module(*of_chainrule(call.args), **of_chainrule(call.kwargs))
            found = f"accepted; PyTorch: {case.error_type.__name__} {case.error_regex}"
        except case.error_type:
            continue
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}; PyTorch: {case.error_type.__name__}"
        yield f"[{n}] {made.args} {made.kwargs}: {found}"


ASPECTS: dict[str, Callable[[ModuleInfo, str], Iterator[str]]] = {
    "values": values,
    "gradients": gradients,
    "second_order": second_order,
    "state": state,
    "signatures": signatures,
    "errors": errors,
}
