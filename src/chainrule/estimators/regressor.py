"""NetworkRegressor: a network that predicts numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from chainrule.estimators.base import FLOATING, NetworkEstimator, takes_batches
from chainrule.estimators.targets import Numbers, Target
from chainrule.typing import Array, ArrayLike, Features

__all__ = ["NetworkRegressor"]


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """A regressor with the interface of scikit-learn's ``MLPRegressor``, of one or more numbers.

    Args:
        loss: "squared_error" (half the mean square), "poisson" (for counts: the network gives
            their logarithm), another name of a loss in ``chainrule.train``, or a function
            ``loss(output, target)`` of two matrices (n_samples, n_outputs). To take sample weights
            it needs an argument ``reduction``, which is then "none".

    For all other parameters see :class:`~chainrule.estimators.base.NetworkEstimator`.

    >>> from sklearn.datasets import make_regression
    >>> from chainrule.estimators import NetworkRegressor
    >>> X, y = make_regression(100, 4, random_state=0)
    >>> model = NetworkRegressor((16,), solver="lbfgs", random_state=0).fit(X, y / 100)
    >>> model.score(X, y / 100) > 0.99
    True
    """

    file_kind: ClassVar[str] = "NetworkRegressor"

    loss: Any = "squared_error"

    def fit(
        self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NetworkRegressor:
        """Fits the network to features X (n_samples, n_features) and numbers y."""
        return self._fit(X, y, sample_weight)

    @available_if(takes_batches)
    def partial_fit(
        self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NetworkRegressor:
        """One epoch over these data, going on from where the network is."""
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: Features) -> Array:
        """A number for each sample, or a row of numbers."""
        output = self._output(X)
        return self._target_kind.decode(output)

    def _validated(self, X: Features, y: ArrayLike | None, reset: bool) -> tuple[Array, Array]:
        return validate_data(
            self,
            X,
            y,
            multi_output=True,
            y_numeric=True,
            dtype=FLOATING,
            reset=reset,
            accept_sparse="csr",
        )

    def _target(self, x: Array, y: Array, classes: ArrayLike | None) -> Target:
        return Numbers(self.loss, 1 if y.ndim == 1 else y.shape[1], y.ndim == 1)

    def _check_target(self, y: Array) -> None:
        width = 1 if y.ndim == 1 else y.shape[1]
        if width != self.n_outputs_:
            raise ValueError(
                f"y has {width} outputs, but {type(self).__name__} was fitted with "
                f"{self.n_outputs_}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
