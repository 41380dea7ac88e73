"""Many runs with different settings: all of a grid, or random ones; in parallel, resumable."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chainrule.files import write_atomically
from chainrule.ops.creation.sampling import rand, randint
from chainrule.random import Generator
from chainrule.train.history import History

__all__ = ["grid", "log_uniform", "random_settings", "run_parallel", "sweep", "uniform"]

Setting = dict[str, Any]
Draw = Callable[[Generator], Any]


def grid(space: Mapping[str, Iterable[Any]]) -> list[Setting]:
    """All combinations.

    >>> grid({"lr": [0.1, 0.01], "hidden": [8]})
    [{'lr': 0.1, 'hidden': 8}, {'lr': 0.01, 'hidden': 8}]
    """
    columns = {name: list(values) for name, values in space.items()}
    empty = [name for name, values in columns.items() if not values]
    if not columns or empty:
        raise ValueError(f"grid: needs values for each name, got none for {empty or 'any'}")
    return [
        dict(zip(columns, values, strict=True)) for values in itertools.product(*columns.values())
    ]


def uniform(low: float, high: float) -> Draw:
    """Draws from [low, high), for :func:`random_settings`."""
    return lambda generator: low + (high - low) * float(rand((), generator=generator))


def log_uniform(low: float, high: float) -> Draw:
    """Draws whose logarithm is uniform: for learning rates and penalties."""
    if not 0 < low < high:
        raise ValueError(f"log_uniform: needs 0 < low < high, got {low} and {high}")
    inside = uniform(math.log(low), math.log(high))
    return lambda generator: math.exp(inside(generator))


def random_settings(
    space: Mapping[str, Sequence[Any] | Draw], trials: int, seed: int = 0
) -> list[Setting]:
    """Settings drawn at random: from lists, or by :func:`uniform` and :func:`log_uniform`."""
    if trials < 1 or not space:
        raise ValueError(f"random_settings: needs a space and trials >= 1, got {trials}")
    generator = Generator().manual_seed(seed)

    def draw(values: Any) -> Any:
        if callable(values):
            return values(generator)
        return values[int(randint(len(values), (), generator=generator))]

    return [{name: draw(values) for name, values in space.items()} for _ in range(trials)]


def run_parallel(tasks: Sequence[Callable[[], Any]], n_jobs: int = 1) -> Iterable[Any]:
    """The results of some calls in their order, with ``n_jobs`` processes (by joblib) if not 1."""
    if n_jobs == 1:
        return (task() for task in tasks)
    try:
        import joblib
    except ImportError:
        raise ImportError(
            "running in parallel needs joblib: pip install joblib; or n_jobs=1"
        ) from None
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    return parallel(joblib.delayed(task)() for task in tasks)


def sweep(
    run: Callable[..., Any],
    settings: Iterable[Setting],
    *,
    n_jobs: int = 1,
    many: bool = False,
    path: str | os.PathLike[str] | None = None,
) -> History:
    """Runs ``run(setting) -> results`` for all settings; a table with a row for each.

    Args:
        run: trains with a setting and returns numbers, such as {"val_loss": 0.3}.
        settings: from :func:`grid` or :func:`random_settings`, or any dictionaries.
        n_jobs: how many processes; more than one need joblib (-1: one for each processor).
        many: ``run`` takes a list of settings and returns a list of results, such as those of
            :func:`fit_many`, which trains small networks faster together.
        path: a file of results. Settings that it already holds are not run again: an interrupted
            sweep goes on where it stopped.

    >>> from chainrule import train
    >>> table = train.sweep(lambda s: {"loss": s["lr"] ** 2}, train.grid({"lr": [0.1, 0.5]}))
    >>> table.best("loss")
    {'lr': 0.1, 'loss': 0.010000000000000002}
    """
    wanted = [dict(s) for s in settings]
    if not wanted:
        raise ValueError("sweep: there are no settings to run")
    done = _known(path)
    left = [s for s in wanted if _key(s) not in done]
    if many:
        results: Iterable[Any] = _all_at_once(run, left, n_jobs)
    else:
        results = run_parallel([_Task(run, s) for s in left], n_jobs)
    for setting, result in zip(left, results, strict=True):
        done[_key(setting)] = {**setting, **result}
        if path is not None:
            lines = [json.dumps({"setting": k, "row": row}) for k, row in done.items()]
            write_atomically(Path(path), ("\n".join(lines) + "\n").encode())
    return History([done[_key(s)] for s in wanted])


def _all_at_once(run: Callable[..., Any], left: list[Setting], n_jobs: int) -> list[Any]:
    """The results of a function of all settings."""
    if n_jobs != 1:
        raise ValueError(f"sweep: many=True is one job, got n_jobs={n_jobs}")
    results = list(run([dict(s) for s in left])) if left else []
    if len(results) != len(left) or not all(isinstance(r, Mapping) for r in results):
        raise TypeError(
            f"sweep: with many=True the function must return a list of {len(left)} dictionaries, "
            f"one for each setting, got {len(results)} results"
        )
    return results


class _Task:
    """One call that can be sent to another process."""

    def __init__(self, run: Callable[[Setting], Mapping[str, Any]], setting: Setting):
        self.run, self.setting = run, setting

    def __call__(self) -> dict[str, Any]:
        result = self.run(dict(self.setting))
        if not isinstance(result, Mapping):
            raise TypeError(
                "sweep: the function must return a dictionary of results, got "
                f"{type(result).__name__}"
            )
        return dict(result)


def _key(setting: Setting) -> str:
    try:
        return json.dumps(setting, sort_keys=True, default=repr)
    except TypeError as error:
        raise TypeError(f"sweep: the setting {setting} cannot be written down: {error}") from None


def _known(path: str | os.PathLike[str] | None) -> dict[str, dict[str, Any]]:
    """The finished runs of a file, by their settings."""
    if path is None or not Path(path).exists():
        return {}
    try:
        rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines() if line]
        return {row["setting"]: row["row"] for row in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"sweep: {path} is not a file of results ({error}); give another path, or remove it"
        ) from None
