"""One record of PyTorch's optimizer database in both libraries: the same problem, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from parity.database.difference import difference
from parity.database.translate import function, of_chainrule
from torch.testing._internal.common_optimizers import (
    OptimizerErrorEnum,
    OptimizerInfo,
    optim_db,
)

import chainrule
from chainrule import optim

__all__ = ["ASPECTS", "OPTIMIZERS", "dtypes", "exists"]

OPTIMIZERS: dict[str, OptimizerInfo] = {info.name: info for info in optim_db}
STEPS = {"LBFGS": 3}


def dtypes(info: OptimizerInfo) -> list[str]:
    """The dtypes of the parameters that are compared."""
    return ["float64", "float32", *(["complex128"] if info.supports_complex else [])]


def bounded(h: Any) -> Any:
    """An activation without poles in the complex plane."""
    return h / (1 + h.abs() ** 2) ** 0.5


class Run:
    """A few steps of one library on a linear regression; the parameters after each of them."""

    def __init__(self, library: Any, name: str, kwargs: dict[str, Any], dtype: str, groups: bool):
        r = np.random.default_rng(5)
        self.library = library
        shapes = [(5, 4), (3, 5)] if name == "Muon" else [(5, 4), (5,), (3, 5), (3,)]
        self.parameters = [self._tensor(r, s, dtype).requires_grad_() for s in shapes]
        self.x, self.y = self._tensor(r, (7, 4), dtype), self._tensor(r, (7, 3), dtype)
        given: list[Any] = self.parameters
        if groups:
            given = [{"params": given[:1]}, {"params": given[1:], "lr": 0.003}]
        self.optimizer = getattr(library.optim, name)(given, **kwargs)
        self.scheduler: Any = None

    def _tensor(self, r: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
        a = r.normal(size=shape)
        if dtype.startswith("complex"):
            a = a + 1j * r.normal(size=shape)
        a = a.astype(dtype)
        return torch.from_numpy(a) if self.library is torch else chainrule.as_tensor(a)

    def loss(self) -> Any:
        """The mean square of the error of two layers, real also for complex numbers."""
        self.optimizer.zero_grad()
        w, *more = self.parameters
        if len(more) == 1:
            h = bounded(self.x @ w.T) @ more[0].T
        else:
            h = bounded(self.x @ w.T + more[0]) @ more[1].T + more[2]
        loss = ((h - self.y).abs() ** 2).mean()
        loss.backward()
        return loss

    def history(self) -> Iterator[list[Any]]:
        """The parameters after each step."""
        for _ in range(STEPS.get(type(self.optimizer).__name__, 8)):
            loss = self.optimizer.step(self.loss)
            if isinstance(self.scheduler, self.library.optim.lr_scheduler.ReduceLROnPlateau):
                self.scheduler.step(float(loss.detach()))
            elif self.scheduler is not None:
                self.scheduler.step()
            yield [p.detach().clone() for p in self.parameters]


def _inputs(info: OptimizerInfo) -> list[tuple[str, dict[str, Any]]]:
    return [(i.desc, i.kwargs) for i in info.optim_inputs_func(device="cpu")]


def _compare(
    info: OptimizerInfo,
    dtype: str,
    kwargs: dict[str, Any],
    groups: bool = False,
    schedule: Callable[..., Any] | None = None,
) -> str:
    try:
        theirs = Run(torch, info.name, kwargs, dtype, groups)
        ours = Run(chainrule, info.name, of_chainrule(kwargs), dtype, groups)
        if schedule is not None:
            theirs.scheduler = schedule(theirs.optimizer)
            ours.scheduler = function(schedule, "")(ours.optimizer)
        runs = zip(
            ours.history(),
            theirs.history(),
            _nudged(info, kwargs, dtype, groups, schedule),
            strict=True,
        )
        for n, (a, b, c) in enumerate(runs):
            # Where rounding grows from step to step, PyTorch differs from itself as much.
            spread = max(float((x - y).abs().max()) for x, y in zip(b, c, strict=True))
            found = difference(a, b, False, atol=10 * spread)
            if found:
                return f"after step {n + 1}: {found}"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def _nudged(
    info: OptimizerInfo,
    kwargs: dict[str, Any],
    dtype: str,
    groups: bool,
    schedule: Callable[..., Any] | None,
) -> Iterator[list[Any]]:
    """PyTorch's run from parameters that differ by the rounding of a few operations."""
    run = Run(torch, info.name, kwargs, dtype, groups)
    if schedule is not None:
        run.scheduler = schedule(run.optimizer)
    with torch.no_grad():
        for p in run.parameters:
            p.mul_(1 + 16 * torch.finfo(p.dtype).eps)
    return run.history()


def exists(info: OptimizerInfo) -> bool:
    """Whether chainrule has the optimizer; that of sparse gradients is compared with its own."""
    return hasattr(optim, info.name) and not info.only_supports_sparse_grads


def steps(info: OptimizerInfo, dtype: str) -> Iterator[str]:
    """The parameters after each step, for all settings of the record, with and without groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for desc, kwargs in _inputs(info):
            for groups in (False, True) if info.supports_param_groups else (False,):
                found = _compare(info, dtype, kwargs, groups)
                if found:
                    yield f"{desc} {kwargs}{' groups' if groups else ''}: {found}"


def schedules(info: OptimizerInfo, dtype: str) -> Iterator[str]:
    """The same with the learning-rate schedules of the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, makers in enumerate(info.scheduler_inputs):
            for make in makers:
                for desc, kwargs in _inputs(info)[:2]:
                    found = _compare(info, dtype, kwargs, schedule=make)
                    if found:
                        yield f"schedule {n} of {desc}: {found}"


def state(info: OptimizerInfo, dtype: str) -> Iterator[str]:
    """The keys of the state and of the groups, and that a saved state continues the run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for desc, kwargs in _inputs(info):
            theirs = Run(torch, info.name, kwargs, dtype, False)
            ours = Run(chainrule, info.name, of_chainrule(kwargs), dtype, False)
            a, b = ((list(run.history()), run.optimizer.state_dict())[1] for run in (ours, theirs))
            if sorted(map(str, a["state"])) != sorted(map(str, b["state"])):
                yield f"{desc}: state of {list(a['state'])} for {list(b['state'])}"
            for key in set(a["state"]) & set(b["state"]):
                # PyTorch keeps the scratch list of LBFGS's inner loop with the state.
                left, right = set(a["state"][key]), set(b["state"][key]) - {"al"}
                if left != right:
                    yield f"{desc}: state {sorted(map(str, left ^ right))} on one side only"
                    break
            missing = set(b["param_groups"][0]) - set(a["param_groups"][0])
            if missing:
                yield f"{desc}: no {sorted(missing)} in the groups"


def errors(info: OptimizerInfo, dtype: str) -> Iterator[str]:
    """What PyTorch refuses is refused, with an exception that the same ``except`` catches."""
    for case in info.optim_error_inputs_func(device="cpu", dtype=getattr(torch, dtype)):
        given = case.optimizer_error_input
        params = given.params
        if params is None:
            params = [torch.ones(2, 2, dtype=getattr(torch, dtype), requires_grad=True)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error" if case.error_type is UserWarning else "ignore")
                made = getattr(optim, info.name)(
                    _same_objects(params), **of_chainrule(given.kwargs)
                )
                if case.error_on is OptimizerErrorEnum.STEP_ERROR:
                    made.step()
            found = f"accepted; PyTorch: {case.error_type.__name__} {case.error_regex}"
        except case.error_type:
            continue
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}; PyTorch: {case.error_type.__name__}"
        yield f"{given.desc}: {found}"


def _same_objects(params: Any, made: dict[int, Any] | None = None) -> Any:
    """Translated, where a tensor that stands twice stays one."""
    made = {} if made is None else made
    if isinstance(params, torch.Tensor):
        if id(params) not in made:
            made[id(params)] = of_chainrule(params, True)
            if params.grad is not None:
                made[id(params)].grad = of_chainrule(params.grad)
        return made[id(params)]
    if isinstance(params, dict):
        return {k: _same_objects(v, made) for k, v in params.items()}
    if isinstance(params, (list, tuple)):
        return type(params)(_same_objects(v, made) for v in params)
    return of_chainrule(params)


ASPECTS: dict[str, Callable[[OptimizerInfo, str], Iterator[str]]] = {
    "steps": steps,
    "schedules": schedules,
    "state": state,
    "errors": errors,
}
