"""NetworkClassifier: a network that tells classes apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from chainrule.estimators.base import FLOATING, NetworkEstimator, takes_batches
from chainrule.estimators.targets import Classes, Outputs, Target, class_target
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.sort import bincount
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype
from chainrule.typing import Array, ArrayLike, Features, Rows

__all__ = ["NetworkClassifier"]


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """A classifier with the interface of scikit-learn's ``MLPClassifier``.

    Targets may be classes, several labels at once (a matrix of zeros and ones), or several targets
    with classes of their own (a matrix).

    Args:
        loss: "log_loss", another name of a loss in ``chainrule.train``, or a function
            ``loss(output, target)`` of K columns of outputs and the class indices (for several
            labels: of the matrix); probabilities are the softmax of the outputs. To take sample
            weights it needs an argument ``reduction``, which is then "none".
        class_weight: "balanced", a dictionary from class to weight, or a list of dictionaries for
            several targets.

    For all other parameters see :class:`~chainrule.estimators.base.NetworkEstimator`.

    >>> from sklearn.datasets import load_iris
    >>> from chainrule.estimators import NetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NetworkClassifier((16,), solver="lbfgs", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    file_kind: ClassVar[str] = "NetworkClassifier"

    loss: Any = "log_loss"
    class_weight: Any = None

    # --- fitting ----------------------------------------------------------------------------------

    def fit(
        self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NetworkClassifier:
        """Fits the network to features X (n_samples, n_features) and targets y."""
        return self._fit(X, y, sample_weight)

    @available_if(takes_batches)
    def partial_fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: Rows | None = None,
    ) -> NetworkClassifier:
        """One epoch over these data, going on from where the network is.

        The first call needs all ``classes`` there will be, unless the targets are several labels.
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight {self.class_weight!r} is not supported for partial_fit, which does "
                "not see all the data. Pass a dictionary of weights."
            )
        known = getattr(self, "classes_", None)
        if known is None and classes is None and getattr(y, "ndim", 1) == 1:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if known is not None and classes is not None and list(known) != sorted(classes):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                f"{known!r}"
            )
        return self._fit(X, y, sample_weight, incremental=True, classes=classes)

    def _validated(self, X: Features, y: ArrayLike | None, reset: bool) -> tuple[Array, Array]:
        x, target = validate_data(
            self, X, y, multi_output=True, dtype=FLOATING, reset=reset, accept_sparse="csr"
        )
        if target.ndim == 2 and target.shape[1] == 1:
            target = column_or_1d(target, warn=True)
        return x, target

    def _target(self, x: Array, y: Array, classes: ArrayLike | None) -> Target:
        return class_target(y, self.loss, self.module is None, classes)

    def _start(self, X: Array, y: Array, classes: ArrayLike | None) -> None:
        super()._start(X, y, classes)
        self._note_target()

    def _note_target(self) -> None:
        self.classes_ = self._target_kind.classes

    def _check_target(self, y: Array) -> None:
        new = self._target_kind.unknown(y)
        if new:
            raise ValueError(
                f"`y` has classes not in `self.classes_`. `self.classes_` has {self.classes_}. "
                f"'y' also has {new}."
            )

    def _weighted(self, y: Array, target: Tensor, weight: Tensor | None) -> Tensor | None:
        if self.class_weight is None:
            return weight
        kind = self._target_kind
        if self.class_weight == "balanced" and isinstance(kind, Classes):
            index = target.reshape(-1).long()
            members = bincount(index, weight, minlength=len(kind.classes))
            present = int((members > 0).sum())
            own = (members.sum() / (present * members))[index]
        else:
            own = as_tensor(compute_sample_weight(self.class_weight, y))
        own = cast(own, floating_dtype(self.module_))
        return own if weight is None else own * weight

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Features) -> Array:
        """The classes of samples, or their labels (0 or 1 in each column)."""
        output = self._output(X)
        return self._target_kind.decode(output)

    def predict_proba(self, X: Features) -> Array | list[Array]:
        """The probability of each class, of each label, or a list of them for several targets."""
        output = self._output(X)
        return self._target_kind.probabilities(output)

    def predict_log_proba(self, X: Features) -> Array | list[Array]:
        """The logarithms of :meth:`predict_proba`, also where that is 0 to rounding."""
        output = self._output(X)
        return self._target_kind.log_probabilities(output)

    def decision_function(self, X: Features) -> Array | list[Array]:
        """The outputs of the network, logits; for two classes one, positive for the second."""
        output = self._output(X)
        return self._target_kind.margins(output)

    def score(self, X: Features, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of samples that are all right."""
        found = self.predict(X)
        if not isinstance(self._target_kind, Outputs):
            return super().score(X, y, sample_weight)
        y = check_array(y, dtype=None)
        hits = (found == y).all(axis=1)
        weight = self._checked_weight(sample_weight, hits)
        return float(hits.mean() if weight is None else (hits * weight).sum() / weight.sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
