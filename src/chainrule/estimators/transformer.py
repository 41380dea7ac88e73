"""NetworkTransformer: features that a network learns."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from chainrule import nn
from chainrule.estimators.base import FLOATING, NetworkEstimator, takes_batches
from chainrule.estimators.checks import hidden_sizes
from chainrule.estimators.network import Bottleneck, dense
from chainrule.estimators.sparse_rows import SparseRows
from chainrule.estimators.targets import Numbers, Target, class_target
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import flatten
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype
from chainrule.typing import Array, ArrayLike, Features

__all__ = ["NetworkTransformer"]


def _reconstructs(estimator: NetworkTransformer) -> bool:
    """Whether features lead back to inputs: an AttributeError says why not."""
    if estimator.task != "reconstruction":
        raise AttributeError(
            f"only task='reconstruction' has a way back; this one has task={estimator.task!r}"
        )
    network = getattr(estimator, "module_", estimator.module)
    if isinstance(network, nn.Module) and (estimator.layer or not hasattr(network, "decode")):
        raise AttributeError(
            "a way back needs a module with the methods encode and decode, and layer=None"
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NetworkEstimator):
    """Features that a network finds: the code of an autoencoder, or a layer of a predictor.

    The network is hidden layers, ``n_components`` features, and then for the task "reconstruction"
    the hidden layers backward to the inputs, else one dense layer to the targets.

    Args:
        n_components: the number of features.
        task: "reconstruction" (of X, without y), "classification" or "regression".
        code_activation: of the features, by default "identity".
        loss: as for the regressor ("squared_error"), and for classification as for the classifier
            ("log_loss"); "auto" is the one of the two that fits.
        layer: with ``module``, the dotted name of the layer whose output (in one row for each
            sample) is the features; by default the module's method ``encode`` makes them.

    For all other parameters see :class:`~chainrule.estimators.base.NetworkEstimator`.

    >>> from sklearn.datasets import load_digits
    >>> from chainrule.estimators import NetworkTransformer
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = NetworkTransformer((32,), n_components=8, solver="lbfgs", max_iter=500, tol=0.05)
    >>> model.set_params(random_state=0).fit_transform(X / 16).shape
    (1797, 8)
    """

    file_kind: ClassVar[str] = "NetworkTransformer"

    n_components: int = 8
    task: str = "reconstruction"
    code_activation: Any = "identity"
    loss: Any = "auto"
    layer: str | None = None

    # --- fitting ----------------------------------------------------------------------------------

    def fit(
        self,
        X: Features,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NetworkTransformer:
        """Trains the network on X, and on targets y unless the task is reconstruction."""
        return self._fit(X, y, sample_weight)

    @available_if(takes_batches)
    def partial_fit(
        self,
        X: Features,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> NetworkTransformer:
        """One epoch over these data.

        For classification the first call tells all ``classes``, unless y has them all.
        """
        if classes is not None and self.task != "classification":
            raise ValueError(f"classes are for task='classification', not {self.task!r}")
        return self._fit(X, y, sample_weight, incremental=True, classes=classes)

    def _validated(self, X: Features, y: ArrayLike | None, reset: bool) -> tuple[Array, Array]:
        if self.task == "reconstruction":
            x = validate_data(self, X, dtype=FLOATING, reset=reset, accept_sparse="csr")
            return x, x
        if y is None:
            raise ValueError(
                f"{type(self).__name__} with task={self.task!r} requires y to be passed, but the "
                "target y is None."
            )
        x, target = validate_data(
            self,
            X,
            y,
            multi_output=True,
            y_numeric=self.task == "regression",
            dtype=FLOATING,
            reset=reset,
            accept_sparse="csr",
        )
        if self.task == "classification" and target.ndim == 2 and target.shape[1] == 1:
            target = column_or_1d(target, warn=True)
        return x, target

    def _target(self, x: Array, y: Array, classes: ArrayLike | None) -> Target:
        if self.task == "classification":
            loss = "log_loss" if self.loss == "auto" else self.loss
            return class_target(y, loss, self.module is None, classes)
        loss = "squared_error" if self.loss == "auto" else self.loss
        return Numbers(loss, 1 if y.ndim == 1 else y.shape[1], y.ndim == 1)

    def _network(self, in_features: int, target: Target) -> nn.Module:
        hidden = hidden_sizes(self.hidden_layer_sizes)
        options: dict[str, Any] = {"dropout": self.dropout, "norm": self.norm}
        encoder = dense(
            in_features,
            hidden,
            self.n_components,
            self.activation,
            output_activation=self.code_activation,
            **options,
        )
        back: Any = self.activation
        if isinstance(back, (list, tuple)):
            back = back[::-1]
        if self.task != "reconstruction":
            hidden, back = [], []
        decoder = dense(self.n_components, hidden[::-1], target.width, back, **options)
        return Bottleneck(encoder, decoder)

    def _start(self, X: Array, y: Array, classes: ArrayLike | None) -> None:
        if self.layer is not None and self.module is None:
            raise ValueError(f"layer={self.layer!r} names a layer of `module`, which is None")
        super()._start(X, y, classes)
        self._note_target()

    def _note_target(self) -> None:
        if self.task == "classification":
            self.classes_ = self._target_kind.classes
        sample = zeros(1, self.n_features_in_, dtype=floating_dtype(self.module_))
        self._n_features_out = int(self._applied(self._features, sample).shape[1])

    def _check_target(self, y: Array) -> None:
        if self.task == "classification" and self._target_kind.unknown(y):
            raise ValueError(
                f"`y` has classes not in `self.classes_`, {self.classes_}; tell all of them by "
                "`classes` on the first call to partial_fit"
            )

    # --- using ------------------------------------------------------------------------------------

    def transform(self, X: Features) -> Array:
        """The features of samples, (n_samples, n_components)."""
        x = self._input(X)
        return self._applied(self._features, x).numpy()

    @available_if(_reconstructs)
    def inverse_transform(self, X: Features) -> Array:
        """The inputs that features stand for."""
        check_is_fitted(self)
        code: Array = check_array(X, dtype=FLOATING, input_name="X")
        if code.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {code.shape[1]} features, but inverse_transform expects the "
                f"{self._n_features_out} that transform returns"
            )
        x = cast(as_tensor(code), floating_dtype(self.module_))
        return self._target_kind.decode(self._applied(self.module_.decode, x))

    @available_if(_reconstructs)
    def score(
        self,
        X: Features,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """R^2 of the reconstruction, the mean over the features; ``y`` is not used."""
        x = self._input(X)
        weight = self._checked_weight(sample_weight, x)
        weights = None if weight is None else as_tensor(weight)
        truth = x.dense() if isinstance(x, SparseRows) else x
        return self._target_kind.score(self._applied(self.module_, x), truth, weights)

    def _features(self, x: Tensor) -> Tensor:
        if self.layer is None:
            if not hasattr(self.module_, "encode"):
                raise ValueError(
                    f"module: {type(self.module_).__name__} has no method encode; say by `layer` "
                    "which layer's output the features are"
                )
            return flatten(self.module_.encode(x), 1)
        found: list[Tensor] = []
        try:
            layer = self.module_.get_submodule(self.layer)
        except AttributeError:
            names = [name for name, _ in self.module_.named_modules() if name]
            raise ValueError(
                f"layer: {self.layer!r} is not a layer of the module; it has {names}"
            ) from None
        me = threading.get_ident()  # another thread may use the module meanwhile

        def note(_: object, args: object, output: Tensor) -> None:
            if threading.get_ident() == me:
                found.append(output)

        handle = layer.register_forward_hook(note)
        try:
            self.module_(x)
        finally:
            handle.remove()
        return flatten(found[-1], 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.task != "reconstruction"
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = list(FLOATING)
        return tags
