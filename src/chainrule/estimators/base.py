"""What the estimators share: their parameters, and how a network is fitted and used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from chainrule import nn
from chainrule.autograd.modes import inference_mode
from chainrule.backend import dtypes
from chainrule.data import DataLoader
from chainrule.estimators.checks import check_parameters, hidden_sizes, warn_of_scales
from chainrule.estimators.monitor import Data, Monitor, split_off
from chainrule.estimators.network import (
    L2Penalty,
    built,
    decays,
    dense,
    has_batch_norm,
    is_stochastic,
    output_of,
    solver_optimizer,
)
from chainrule.estimators.saving import parts_of, restore
from chainrule.estimators.sparse_rows import RowsDataset, Samples, is_sparse, samples, some
from chainrule.estimators.targets import Target
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import cat
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor
from chainrule.train import DivergedError, History, Trainer
from chainrule.train.batches import floating_dtype
from chainrule.typing import Array, ArrayLike, Features

__all__ = ["FLOATING", "NetworkEstimator", "takes_batches"]

FLOATING = ("float64", "float32")
_ROWS = 4096  # how many samples are predicted at once


def takes_batches(estimator: NetworkEstimator) -> bool:
    """Whether ``partial_fit`` exists: an AttributeError says why it does not."""
    if not is_stochastic(estimator.solver):
        raise AttributeError(
            f"partial_fit is only available for stochastic optimizers. {estimator.solver} is not "
            "stochastic."
        )
    if estimator.early_stopping:
        raise AttributeError("partial_fit does not support early_stopping=True")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(BaseEstimator):
    """Parameters with the names and meanings of scikit-learn's ``MLPClassifier``, and more.

    Args:
        hidden_layer_sizes: the widths of the hidden layers.
        activation: its name in ``chainrule.nn`` ("relu", "logistic", "gelu", ...), a module or a
            function; or a list with one for each hidden layer.
        solver: the optimizer: its name in ``chainrule.optim`` ("adam", "sgd", "lbfgs", ...), its
            class, or a function that makes it for some parameters. Those that search along lines
            see all the data in each iteration.
        alpha: strength of the L2 penalty alpha / (2 B) ||W||^2, where B is the weight of a batch.
        batch_size: samples in a batch; "auto" is 200 at most.
        learning_rate: "constant"; "invscaling", learning_rate_init / t^power_t after t samples;
            "adaptive", divided by 5 whenever nothing gets better; or a function that makes a
            schedule of ``chainrule.optim.lr_scheduler``, which steps each epoch.
        learning_rate_init: by default the optimizer's own (0.001 for "adam" and "sgd").
        power_t: see ``learning_rate``.
        max_iter: the most epochs.
        shuffle: whether each epoch has an order of its own.
        random_state: for the initial weights, the order of the data, dropout and the split.
        tol: how much better the loss, or the score on the data held out, has to get ...
        n_iter_no_change: ... within so many epochs; else training ends.
        verbose: whether to print a line for each epoch.
        warm_start: whether ``fit`` goes on from the weights that are there.
        momentum: of optimizers that have it; 0.9 for "sgd".
        nesterovs_momentum: likewise; True for "sgd".
        early_stopping: whether to hold data out, to stop by the score on it, and to end with the
            weights that scored best (of equal accuracies, with the lowest loss on that data). Which
            samples are held out follows from the number of rows, so that a sample of weight 2 and
            two equal rows are not the same; ``partial_fit`` does not exist.
        validation_fraction: how much of the data is held out, at least two samples.
        beta_1: of optimizers that have it.
        beta_2: likewise.
        epsilon: likewise.
        dropout: the probability of dropping a hidden unit.
        norm: "batch" or "layer" normalization before each activation, or None.
        module: a network to use instead: a ``chainrule.nn.Module``, of which a copy is trained, or
            a function (or class) that makes one for (n_features, n_outputs).
        callbacks: of ``chainrule.train``.
        device: where to train, such as "cuda"; the network that comes out is on the CPU.

    After ``fit``: ``module_`` is the network, ``history_`` the table of the training; ``loss_``,
    ``best_loss_``, ``loss_curve_``, ``validation_scores_``, ``best_validation_score_``,
    ``n_iter_``, ``t_``, ``coefs_``, ``intercepts_``, ``out_activation_``, ``n_layers_``,
    ``n_outputs_``, ``n_features_in_`` and ``feature_names_in_`` are as in scikit-learn.
    """

    hidden_layer_sizes: Any = field(default=(100,), kw_only=False)
    activation: Any = "relu"
    solver: Any = "adam"
    alpha: float = 0.0001
    batch_size: int | str = "auto"
    learning_rate: Any = "constant"
    learning_rate_init: float | None = None
    power_t: float = 0.5
    max_iter: int = 200
    shuffle: bool = True
    random_state: Any = None
    tol: float = 1e-4
    verbose: bool = False
    warm_start: bool = False
    momentum: float | None = None
    nesterovs_momentum: bool | None = None
    early_stopping: bool = False
    validation_fraction: float = 0.1
    beta_1: float | None = None
    beta_2: float | None = None
    epsilon: float | None = None
    n_iter_no_change: int = 10
    dropout: float = 0.0
    norm: str | None = None
    module: Any = None
    callbacks: Any = ()
    device: Any = None

    # --- what a subclass says ---------------------------------------------------------------------

    def _validated(self, X: Features, y: ArrayLike | None, reset: bool) -> tuple[Array, Array]:
        """X and y as arrays, after scikit-learn's checks."""
        raise NotImplementedError

    def _target(self, x: Array, y: Array, classes: ArrayLike | None) -> Target:
        """The kind of target that y is."""
        raise NotImplementedError

    def _check_target(self, y: Array) -> None:
        """Raises ValueError if y does not fit the target of an earlier fit."""

    def _network(self, in_features: int, target: Target) -> nn.Module:
        return dense(
            in_features,
            hidden_sizes(self.hidden_layer_sizes),
            target.width,
            self.activation,
            dropout=self.dropout,
            norm=self.norm,
        )

    def _note_target(self) -> None:
        """The attributes that follow from the target and the network."""

    def _weighted(self, y: Array, target: Tensor, weight: Tensor | None) -> Tensor | None:
        """The weights of the samples, with those of their classes."""
        return weight

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(
        self,
        X: Features,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        incremental: bool = False,
        classes: ArrayLike | None = None,
    ) -> Self:
        check_parameters(type(self).__name__, self.get_params(deep=False))
        hidden_sizes(self.hidden_layer_sizes)
        fresh = not hasattr(self, "module_") or not (self.warm_start or incremental)
        x, target = self._validated(X, y, fresh)
        if is_sparse(x) and not is_stochastic(self.solver):
            raise ValueError(
                f"solver={self.solver!r} sees all samples at once, so that sparse X would become "
                "dense; pass X.toarray() if that fits into memory, or a solver that takes batches"
            )
        weight = self._checked_weight(sample_weight, x)
        if fresh:
            self._random = check_random_state(self.random_state)
            if self.module is None:
                warn_of_scales(type(self).__name__, x, stacklevel=4)
        seed = int(self._random.randint(2**31 - 1))
        with fork_rng():
            manual_seed(seed)
            if fresh:
                self._start(x, target, classes)
            else:
                self._check_target(target)
            if weight is not None and not weight.all():
                kept = weight > 0  # a sample without weight is no sample
                x, target, weight = x[kept], target[kept], weight[kept]
            data = self._tensors(x, target, weight)
            self._train(data, seed, fresh, incremental)
        return self

    def _checked_weight(self, given: ArrayLike | None, X: Array | Samples) -> Array | None:
        if given is None:
            return None
        weight = check_array(
            given, dtype=FLOATING, ensure_2d=False, input_name="sample_weight", copy=False
        )
        if weight.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array")
        check_consistent_length(X, weight)
        if (weight < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`")
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weight

    def _start(self, X: Array, y: Array, classes: ArrayLike | None) -> None:
        """Makes a network for the data."""
        target = self._target(X, y, classes)
        dtype = dtypes.from_array_dtype(X.dtype)
        features = X.shape[1]
        if self.module is None:
            network = self._network(features, target).to(dtype)
        else:
            network = built(self.module, features, target.width, dtype)
            target = target.adopt(int(output_of(network, samples(X[:1], dtype)[:1]).shape[1]))
        self.module_: Any = network
        self._target_kind: Any = target
        self.n_outputs_, self.out_activation_ = target.width, target.out_activation
        self.history_ = History()
        self._optimizer: Any = None
        self._saved_optimizer: Any = None
        self._schedule: Any = None
        self._monitor = Monitor(target)

    def _tensors(self, X: Array, y: Array, weight: Array | None) -> Data:
        dtype = floating_dtype(self.module_)
        target = self._target_kind.encode(y, dtype)
        weights = None if weight is None else cast(as_tensor(weight), dtype)
        return samples(X, dtype), target, self._weighted(y, target, weights)

    def _split(self, data: Data, seed: int) -> tuple[Data, Data | None]:
        """The data to train on, and that to hold out."""
        if not self.early_stopping:
            return data, None
        target: Any = data[1]
        labels = target.reshape(-1).tolist() if self._target_kind.stratified else None
        parts = split_off(int(data[0].shape[0]), self.validation_fraction, seed, labels)
        indices = [as_tensor(list(part)) for part in parts]
        first, second = [[None if t is None else some(t, i) for t in data] for i in indices]
        return tuple(first), tuple(second)  # type: ignore[return-value]

    def _train(self, data: Data, seed: int, fresh: bool, incremental: bool) -> None:
        training, held_out = self._split(data, seed)
        n = int(training[0].shape[0])
        size = self._batch_size(n)
        monitor, penalty = self._monitor, self._penalty(training, size)
        self._make_optimizer(penalty, keep=incremental)
        in_optimizer = decays(self.solver)
        monitor.begin(self, held_out, n, penalty if in_optimizer else None)
        trainer = Trainer(
            self.module_,
            self._target_kind.loss,
            self._optimizer,
            schedule=self._schedule,
            penalties=[penalty] if penalty.weights and self.alpha and not in_optimizer else [],
            callbacks=[monitor, *self.callbacks],
            progress=False,
            device=self.device,
        )
        trainer.history, trainer.epoch = self.history_, len(self.history_)
        before = trainer.epoch
        parts = [part for part in training if part is not None]
        loader = DataLoader(
            RowsDataset(*parts),
            batch_size=size,
            shuffle=self.shuffle and size < n,
            drop_last=n % size == 1 and n > 1 and has_batch_norm(self.module_),
        )
        try:
            epochs = 1 if incremental else self.max_iter
            trainer.fit(loader, epochs=before + epochs, restore_best=False)
        except DivergedError as error:
            error.add_note(
                "Scale the data (sklearn.preprocessing.StandardScaler), or lower learning_rate_init"
            )
            raise
        finally:
            monitor.end()
            self.module_.eval()
            self.module_.zero_grad()
            if self.device is not None:
                self.module_.to("cpu")
        self._finish(trainer, before, n, incremental)

    def _batch_size(self, n: int) -> int:
        if not is_stochastic(self.solver):
            return n
        if self.batch_size == "auto":
            return min(200, n)
        if self.batch_size > n:  # type: ignore[operator]
            warnings.warn(
                f"Got `batch_size` {self.batch_size} larger than the sample size {n}. It is going "
                "to be clipped",
                stacklevel=4,
            )
        return min(int(self.batch_size), n)

    def _make_optimizer(self, penalty: L2Penalty, keep: bool) -> None:
        parameters: list[Any] = [p for p in self.module_.parameters() if p.requires_grad]
        if decays(self.solver):
            parameters = penalty.groups(self.module_)
        if self._optimizer is None or not keep:
            self._new_optimizer(parameters)
            if keep and self._saved_optimizer is not None:  # of a file
                self._optimizer.load_state_dict(self._saved_optimizer)
            self._saved_optimizer = None
        if keep:
            for group, new in zip(self._optimizer.param_groups, parameters, strict=False):
                if isinstance(new, dict) and "weight_decay" in new:
                    group["weight_decay"] = new["weight_decay"]

    def _new_optimizer(self, parameters: list[Any]) -> None:
        names = (
            "learning_rate_init",
            "momentum",
            "nesterovs_momentum",
            "beta_1",
            "beta_2",
            "epsilon",
            "tol",
        )
        given = {name: getattr(self, name) for name in names}
        self._optimizer = solver_optimizer(self.solver, parameters, **given)
        group = self._optimizer.param_groups[0]
        if self.learning_rate != "constant" and "lr" not in group:
            raise ValueError(
                f"learning_rate={self.learning_rate!r} cannot be used with solver={self.solver!r}, "
                "which has no learning rate"
            )
        self._monitor.start_rate = group.get("lr", 0.0)
        made = callable(self.learning_rate)
        self._schedule = self.learning_rate(self._optimizer) if made else None

    def _penalty(self, data: Data, size: int) -> L2Penalty:
        x, _, weight = data
        mean_weight = 1.0 if weight is None else float(sum(weight.double())) / int(x.shape[0])
        return L2Penalty(self.module_, self.alpha / (size * mean_weight))

    def _finish(self, trainer: Trainer, before: int, n: int, incremental: bool) -> None:
        self._note_fit(trainer.epoch - before, self.early_stopping)
        ending = trainer.history.ending
        if ending == "interrupted":
            warnings.warn("Training interrupted by user.", stacklevel=4)
        elif ending == "finished" and not incremental:
            warnings.warn(
                f"Maximum iterations ({self.max_iter}) reached and the optimization hasn't "
                "converged yet.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _note_fit(self, epochs: int, stopping: bool) -> None:
        """The attributes that tell of the last fit, and of the network."""
        monitor, target = self._monitor, self._target_kind
        self.n_iter_ = epochs
        self.t_ = monitor.samples
        self.loss_curve_ = monitor.losses
        self.loss_ = monitor.losses[-1] if monitor.losses else None
        self.best_loss_ = None if stopping else monitor.best_loss
        self.validation_scores_ = monitor.scores if stopping else None
        self.best_validation_score_ = monitor.best_score if stopping else None
        self.n_layers_ = 1 + len(self._linear())
        self.n_outputs_, self.out_activation_ = target.width, target.out_activation

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # of a solver that there is not
            tags.input_tags.sparse = is_stochastic(self.solver)
        return tags

    # --- files ------------------------------------------------------------------------------------

    def file_parts(self) -> dict[str, Any]:
        """What a file of ``chainrule.save`` holds of it."""
        return parts_of(self)

    @classmethod
    def from_file_parts(cls, parts: dict[str, Any]) -> Self:
        """An estimator of what a file holds, after it was checked."""
        estimator = cls()
        restore(estimator, parts)
        return estimator

    # --- using ------------------------------------------------------------------------------------

    def _input(self, X: Features) -> Samples:
        """Checked features."""
        check_is_fitted(self)
        x: Any = validate_data(self, X, reset=False, dtype=FLOATING, accept_sparse="csr")
        return samples(x, floating_dtype(self.module_))

    def _applied(self, function: Callable[[Tensor], Tensor], x: Samples) -> Tensor:
        """A function of the rows of x, some thousand at a time."""
        with inference_mode():
            parts = [function(x[i : i + _ROWS]) for i in range(0, int(x.shape[0]), _ROWS)]
            return clone(parts[0] if len(parts) == 1 else cat(parts))

    def _output(self, X: Features) -> Tensor:
        """The outputs of the network."""
        x = self._input(X)
        return self._applied(self.module_, x)

    def _linear(self) -> list[nn.Linear]:
        return [m for m in self.module_.modules() if isinstance(m, nn.Linear)]

    @property
    def coefs_(self) -> list[Array]:
        """The weights of the dense layers, each (inputs, outputs)."""
        return [layer.weight.detach().mT.numpy() for layer in self._linear()]

    @property
    def intercepts_(self) -> list[Array]:
        """The biases of the dense layers."""
        return [m.bias.detach().numpy() for m in self._linear() if m.bias is not None]
