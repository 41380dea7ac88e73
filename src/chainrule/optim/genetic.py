"""A genetic algorithm: many sets of parameters compete, and the better ones have children."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from chainrule.autograd.modes import no_grad
from chainrule.backend.dtypes import float64
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import gather
from chainrule.ops.reduce.order import argmin
from chainrule.ops.reduce.reductions import std
from chainrule.ops.creation.sampling import rand, randint, randn
from chainrule.ops.shape.views import squeeze, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.ops.reduce.sort import argsort
from chainrule.optim.minimizer import Callback, Minimizer, Report
from chainrule.optim.objective import Objective
from chainrule.optim.optimizer import NotFiniteError
from chainrule.optim.settings import NOT_NEGATIVE, UNIT, Interval
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Params, Random

__all__ = ["GeneticAlgorithm"]


class GeneticAlgorithm(Minimizer[Objective]):
    """Evolution of a population of parameter vectors; uses the loss alone, no gradient.

    The first individual is the parameters as they are, the others lie about them at random. One
    generation (one ``step``):

    1. Every individual is evaluated, by one call of the closure. The parameters become the best,
       which may be what they were: the loss never grows.
    2. The ``elite`` best go over to the next generation unchanged. For each other place two parents
       are chosen, each the best of ``tournament`` individuals drawn at random.
    3. With probability ``crossover`` the child takes every number from either parent, evenly; else
       it is a copy of the first. Then each number changes with probability ``mutation`` by a normal
       one of deviation ``strength decay^generation``.

    In numbers, the child c of a and b: c <- where(u < 1/2, a, b), or a with probability
    1 - crossover; c <- c + where(v < mutation, strength decay^generation n, 0), with u and v even
    in [0, 1) and n normal. Holland, 1975; Goldberg, 1989.

    All are evaluated anew each time, so the closure may take another batch at every step. ``run``
    makes many generations; ``report`` has their number and that of the evaluations.

    Args:
        params: the parameters: one group, of one real dtype. Those that do not require grad are
            left alone.
        population: the number of individuals (default 50).
        tournament: the size of a tournament: 1 chooses parents blindly (default 3).
        crossover: the probability that a child has two parents (default 0.9).
        mutation: the probability that a number of a child changes (default 0.2).
        strength: the deviation of a mutation (default 0.5).
        decay: the factor of the strength from one generation to the next (default 1.0).
        elite: how many survive, at least 1 (default 1).
        spread: the deviation of the first population from the parameters (default 1.0).
        tolerance_change: converged if no number deviates by more than this among the individuals
            (default 1e-9).
        generator: where randomness comes from; the default generator without one.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.zeros(2, requires_grad=True)
    >>> optimizer = optim.GeneticAlgorithm(
    ...     [w], population=30, decay=0.9, generator=chainrule.Generator().manual_seed(0)
    ... )
    >>> report = optimizer.run(lambda: ((w - chainrule.tensor([1.0, -2.0])) ** 2).sum(), 60)
    >>> report.loss < 1e-3, report.iterations, report.evaluations
    (True, 60, 1800)
    """

    ranges: ClassVar = {
        "crossover": UNIT,
        "mutation": UNIT,
        "strength": NOT_NEGATIVE,
        "spread": NOT_NEGATIVE,
        "decay": Interval(0, 1, "(]"),
        "population": Interval(2),
        "tournament": Interval(1),
        "elite": Interval(1),
    }

    def __init__(
        self,
        params: Params,
        population: int = 50,
        tournament: int = 3,
        crossover: float = 0.9,
        mutation: float = 0.2,
        strength: float = 0.5,
        decay: float = 1.0,
        elite: int = 1,
        spread: float = 1.0,
        tolerance_change: float = 1e-9,
        generator: Random = None,
    ):
        if generator is not None and not isinstance(generator, Generator):
            raise TypeError(
                "GeneticAlgorithm: generator must be a chainrule.Generator, got "
                f"{type(generator).__name__}"
            )
        self.generator = generator
        defaults = {
            "population": population,
            "tournament": tournament,
            "crossover": crossover,
            "mutation": mutation,
            "strength": strength,
            "decay": decay,
            "elite": elite,
            "spread": spread,
        }
        super().__init__(params, defaults, 0.0, tolerance_change)
        for settings in (self.defaults, *self.param_groups):
            del settings["tolerance_grad"]  # there are no gradients here

    def check_settings(self, settings: dict[str, Any]) -> None:
        super().check_settings(settings)
        for key in ("population", "tournament", "elite"):
            if not isinstance(settings[key], int):
                raise ValueError(
                    f"GeneticAlgorithm: invalid {key}: {settings[key]}; it must be an integer"
                )
        if settings["elite"] >= settings["population"]:
            raise ValueError(
                f"GeneticAlgorithm: an elite of {settings['elite']} leaves no place for children "
                f"in a population of {settings['population']}"
            )

    # --- generations ------------------------------------------------------------------------------

    def _run(self, f: Objective, max_iter: int, callback: Callback | None = None) -> float:
        x, done, reason, converged = f.vector(), 0, "", False
        start = loss = math.inf
        individuals = self._gathered(x)
        try:
            while done < max_iter and not reason:
                losses = [f.value(individuals[i]) for i in range(len(individuals))]
                start = losses[0] if done == 0 else start
                x, loss = self._best(individuals, losses)
                done += 1
                if callback is not None:
                    f.move_to(x)
                    reason = "stopped by the callback" if callback(done, loss) is True else ""
                individuals = self._next(individuals, losses)
                converged = self._is_one_point(individuals)
                if converged:
                    reason = "the individuals differ by less than tolerance_change"
        finally:
            f.move_to(x)
        reason = reason or f"reached max_iter = {max_iter}"
        self.report = Report(loss, done, f.evaluations, 0, 0, converged, reason)
        return start

    def _gathered(self, x: Tensor) -> Tensor:
        """The population, one row each; the first is the parameters as they are now."""
        group = self.param_groups[0]
        shape = (group["population"] - 1, x.numel())
        others = self.memory.get("population")
        if others is None or tuple(others.shape) != (shape[0] + 1, shape[1]):
            noise = randn(*shape, generator=self.generator, dtype=x.dtype, device=x.device)
            return cat([unsqueeze(x, 0), x + group["spread"] * noise])
        return cat([unsqueeze(x, 0), others[1:]])

    def _best(self, individuals: Tensor, losses: list[float]) -> tuple[Tensor, float]:
        """The best individual; the first of equals, so that the parameters move to a lower loss."""
        loss = min(losses)
        if loss == math.inf:
            raise NotFiniteError(
                f"GeneticAlgorithm: the loss of all {len(losses)} individuals is not finite; no "
                "parameter was changed. Start from other values, or with a smaller spread"
            )
        return individuals[losses.index(loss)], loss

    def _is_one_point(self, individuals: Tensor) -> bool:
        return float(std(individuals, 0).max()) <= self.param_groups[0]["tolerance_change"]

    def _next(self, individuals: Tensor, losses: list[float]) -> Tensor:
        """The next generation, the best individual first."""
        group, generation = self.param_groups[0], self.memory.get("generation", 0)
        fitness = tensor(losses, dtype=float64)
        best = argsort(fitness, stable=True)[: group["elite"]]
        count, size = len(losses) - group["elite"], individuals.shape[1]
        draw: dict[str, Any] = {"generator": self.generator, "dtype": individuals.dtype}
        with no_grad():
            first, second = (individuals[self._chosen(fitness, count)] for _ in range(2))
            crossed = rand(count, 1, **draw) < group["crossover"]
            children = where(crossed & (rand(count, size, **draw) < 0.5), second, first)
            change = group["strength"] * group["decay"] ** generation * randn(count, size, **draw)
            hit = rand(count, size, **draw) < group["mutation"]
            children = children + where(hit, change, zeros_like(change))
            population = cat([individuals[best], children])
        self.memory.update(population=population, generation=generation + 1)
        return population

    def _chosen(self, fitness: Tensor, count: int) -> Tensor:
        """The winners of ``count`` tournaments."""
        shape = (count, self.param_groups[0]["tournament"])
        entrants = randint(0, len(fitness), shape, generator=self.generator)
        winners = unsqueeze(argmin(fitness[entrants], 1), 1)
        return squeeze(gather(entrants, 1, winners), 1)

    # --- files ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Settings, population and, if the optimizer has one of its own, the generator's state."""
        if self.generator is not None:
            self.memory["generator"] = self.generator.get_state()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        if self.generator is not None and "generator" in self.memory:
            self.generator.set_state(self.memory["generator"])
