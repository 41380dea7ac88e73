"""scikit-learn estimators: networks with ``fit``, ``predict`` and ``transform``."""

from __future__ import annotations

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "chainrule.estimators needs scikit-learn; install it with: pip install 'chainrule[sklearn]'"
    ) from error

from chainrule.estimators.classifier import NetworkClassifier
from chainrule.estimators.regressor import NetworkRegressor
from chainrule.estimators.transformer import NetworkTransformer

__all__ = ["NetworkClassifier", "NetworkRegressor", "NetworkTransformer"]
