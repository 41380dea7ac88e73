"""When a fit ends, and the curves it leaves: scikit-learn's rules as a callback of the Trainer."""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from chainrule.autograd.modes import no_grad
from chainrule.estimators.network import L2Penalty
from chainrule.estimators.sparse_rows import Samples, SparseRows
from chainrule.estimators.targets import Target
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.stacking import cat
from chainrule.optim.lr_scheduler.base import write_rate
from chainrule.optim.minimizer import Minimizer
from chainrule.tensor import Tensor
from chainrule.train import Callback, Trainer

if TYPE_CHECKING:
    from chainrule.estimators.base import NetworkEstimator

__all__ = ["Monitor", "split_off"]

Data = tuple[Samples, Samples, Tensor | None]  # inputs, targets, weights of the samples
ROWS = 1024  # of sparse samples that are scored at a time


def split_off(
    n: int, fraction: float, seed: int, labels: list[Any] | None
) -> tuple[list[int], list[int]]:
    """The samples to train on and those to hold out, at least two.

    Both have all classes in their proportions, if there are enough samples of each; else at least
    those to train on have all.
    """
    count = max(2, math.ceil(n * fraction))
    sizes = Counter(labels or [])
    if labels is None or (min(sizes.values()) > 1 and len(sizes) <= min(count, n - count)):
        _check_left(n, n - count)
        parts = train_test_split(range(n), test_size=count, random_state=seed, stratify=labels)
        return parts[0], parts[1]
    order = check_random_state(seed).permutation(n).tolist()
    first = set({labels[i]: i for i in reversed(order)}.values())  # one of each class
    rest = [i for i in order if i not in first]
    _check_left(n, len(rest) - 1)
    return [*sorted(first), *rest[count:]], rest[:count]


def _check_left(n: int, left: int) -> None:
    if left < 1:
        raise ValueError(
            f"The validation set is too small: with n_samples={n}, early_stopping=True cannot hold "
            "out two samples and train on the rest. Increase the size of your dataset."
        )


def _outputs(trainer: Trainer, x: Samples) -> Tensor:
    if isinstance(x, Tensor):
        return trainer.predict(x)
    starts = range(0, len(x), ROWS)
    return cat([trainer.predict(x[i : i + ROWS]) for i in starts])


class Monitor(Callback):
    """Watches the loss, or the score on data held out, and stops when neither gets better.

    The best weights by that score are put back at the end. ``losses``, ``scores``, ``best_loss``
    and ``best_score`` go on over several fits of one network.

    Args:
        target: the kind of target, which scores outputs.
    """

    smallest_rate = 1e-6  # of "adaptive"

    def __init__(self, target: Target):
        self.target = target
        self.losses: list[float] = []
        self.scores: list[float] = []
        self.best_loss, self.best_score = math.inf, -math.inf
        self.loss_at_best = math.inf  # on the data held out
        self.samples = 0  # seen in all epochs
        self.start_rate = 0.0
        self.waited = 0
        self.best: dict[str, Any] | None = None
        self.held_out: Data | None = None
        self.penalty: L2Penalty | None = None

    def begin(
        self,
        parameters: NetworkEstimator,
        held_out: Data | None,
        per_epoch: int,
        penalty: L2Penalty | None,
    ) -> None:
        """Starts to watch a fit.

        Args:
            parameters: the estimator, whose parameters say when to end.
            held_out: the data to score, if there are any.
            per_epoch: how many samples the others are.
            penalty: where the optimizer adds its gradient and the loss does not have it.
        """
        self.penalty = penalty if penalty is not None and penalty.weights else None
        self.tol, self.patience = parameters.tol, parameters.n_iter_no_change
        self.adaptive = parameters.learning_rate == "adaptive"
        self.decay = parameters.power_t if parameters.learning_rate == "invscaling" else None
        self.verbose = parameters.verbose
        self.held_out, self.per_epoch = held_out, per_epoch

    def end(self) -> None:
        """Lets go of the data."""
        self.held_out = self.penalty = None

    def on_epoch_end(self, trainer: Trainer) -> None:
        row = trainer.history[-1]
        if self.penalty is not None:
            with no_grad():
                row["penalty"] = float(self.penalty(trainer.model))
        self.losses.append(row["loss"] + row.get("penalty", 0.0))
        self.samples += self.per_epoch
        better = self._score(trainer, row) if self.held_out is not None else self._loss(trainer)
        self.waited = 0 if better else self.waited + 1
        if self.verbose:
            self._write(len(self.losses))
        if self.decay is not None:
            self._set_rate(trainer, self.start_rate / (self.samples + 1) ** self.decay)
        if isinstance(trainer.optimizer, Minimizer):
            self._end_minimization(trainer, trainer.optimizer)
        if self.waited > self.patience:
            self._end(trainer)

    def on_fit_end(self, trainer: Trainer) -> None:
        if self.best is not None:
            trainer.model.load_state_dict(self.best)
            self.best = None

    def _loss(self, trainer: Trainer) -> bool:
        """Whether the loss is better than the best by ``tol``."""
        loss = self.losses[-1]
        better = loss <= self.best_loss - self.tol
        self.best_loss = min(loss, self.best_loss)
        return better or isinstance(trainer.optimizer, Minimizer)  # which knows when to end

    def _score(self, trainer: Trainer, row: dict[str, Any]) -> bool:
        """Whether the score on the data held out is; keeps the weights that have the best.

        The share of right answers is the same for many weights: at equal shares, up to ``tol``, the
        loss decides.
        """
        x, target, weight = self.held_out  # type: ignore[misc]
        output = _outputs(trainer, x)
        if isinstance(target, SparseRows):
            target = target.dense()
        row["val_loss"] = loss = float(trainer.loss(output, target, weight))
        row["val_score"] = score = self.target.score(output, target, weight)
        self.scores.append(score)
        gain, best = score - self.best_score, score > self.best_score
        if self.target.counts and (gain == 0 or abs(gain) < self.tol):
            gain, best = self.loss_at_best - loss, loss < self.loss_at_best
        self.best_score = max(score, self.best_score)
        if best:
            self.loss_at_best = loss
            self.best = {
                k: clone(v) if isinstance(v, Tensor) else v
                for k, v in trainer.model.state_dict().items()
            }
        return gain >= self.tol

    def _end(self, trainer: Trainer) -> None:
        """Nothing got better for too long."""
        rate = trainer.optimizer.param_groups[0].get("lr")
        if self.adaptive and rate is not None and rate > self.smallest_rate:
            self._set_rate(trainer, rate / 5)
            self.waited = 0
            return
        what = "Training loss" if self.held_out is None else "Validation score"
        trainer.stop(
            f"{what} did not improve more than tol={self.tol:f} for {self.patience} consecutive "
            "epochs."
        )

    def _end_minimization(self, trainer: Trainer, optimizer: Minimizer) -> None:
        """A method that sees all the data at once has converged, or finds no way down."""
        report = optimizer.report
        if report is None:
            return
        if report.converged or report.iterations == 0:
            trainer.stop(report.reason)
        elif len(self.losses) > 1:
            fall, size = self.losses[-2] - self.losses[-1], max(1.0, abs(self.losses[-1]))
            if 0 <= fall <= 1e-9 * size:
                trainer.stop("the loss no longer falls")

    def _set_rate(self, trainer: Trainer, rate: float) -> None:
        for group in trainer.optimizer.param_groups:
            write_rate(group, rate)

    def _write(self, iteration: int) -> None:
        sys.stdout.write(f"Iteration {iteration}, loss = {self.losses[-1]:.8f}\n")
        if self.held_out is not None:
            sys.stdout.write(f"Validation score: {self.scores[-1]:f}\n")
