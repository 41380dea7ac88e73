"""Optimizers, schedules, line searches and second-order methods."""

from __future__ import annotations

from typing import Any

from chainrule.absent import absent
from chainrule.optim import lr_scheduler, swa_utils, theory
from chainrule.optim.adam import Adam, AdamW, SparseAdam
from chainrule.optim.adam_variants import Adamax, NAdam, RAdam
from chainrule.optim.adaptive import Adadelta, Adagrad, RMSprop
from chainrule.optim.adaptive_rates import DeltaBarDelta, DeltaDelta
from chainrule.optim.descent import BFGS, ConjugateGradient, SteepestDescent
from chainrule.optim.gauss_newton import GaussNewton, LevenbergMarquardt
from chainrule.optim.genetic import GeneticAlgorithm
from chainrule.optim.hessian_free import HessianFree
from chainrule.optim.kalman import ExtendedKalmanFilter
from chainrule.optim.lbfgs import LBFGS
from chainrule.optim.linear import (
    FitReport,
    LinearFit,
    delta_rule,
    least_squares,
    least_squares_hessian,
    ridge,
)
from chainrule.optim.linear_classes import (
    logistic_hessian,
    logistic_regression,
    softmax_hessian,
    softmax_regression,
)
from chainrule.optim.local_rules import Hebbian, hebbian_change
from chainrule.optim.matrices import Adafactor, Muon
from chainrule.optim.minimize import minimize
from chainrule.optim.minimizer import Minimizer, Report
from chainrule.optim.momentum import AveragedMomentum, Lion, SGDW
from chainrule.optim.newton import DampedNewton, Newton, SaddleFreeNewton
from chainrule.optim.optimizer import NotFiniteError, Optimizer
from chainrule.optim.quickprop import Quickprop
from chainrule.optim.rate_search import (
    LogarithmicSearch,
    RangeTest,
    learning_rate_range_test,
    logarithmic_search,
)
from chainrule.optim.rprop import Rprop
from chainrule.optim.rprop_variants import IRpropMinus, IRpropPlus, RpropMinus, RpropPlus
from chainrule.optim.separation import perceptron, separability
from chainrule.optim.sgd import ASGD, SGD
from chainrule.optim.sparse import lasso, lasso_limit

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "AveragedMomentum",
    "BFGS",
    "ConjugateGradient",
    "DampedNewton",
    "DeltaBarDelta",
    "DeltaDelta",
    "ExtendedKalmanFilter",
    "FitReport",
    "GaussNewton",
    "GeneticAlgorithm",
    "Hebbian",
    "HessianFree",
    "IRpropMinus",
    "IRpropPlus",
    "LBFGS",
    "LevenbergMarquardt",
    "LinearFit",
    "Lion",
    "LogarithmicSearch",
    "Minimizer",
    "Muon",
    "NAdam",
    "Newton",
    "NotFiniteError",
    "Optimizer",
    "Quickprop",
    "RAdam",
    "RMSprop",
    "RangeTest",
    "Report",
    "Rprop",
    "RpropMinus",
    "RpropPlus",
    "SGD",
    "SGDW",
    "SaddleFreeNewton",
    "SparseAdam",
    "SteepestDescent",
    "delta_rule",
    "hebbian_change",
    "learning_rate_range_test",
    "lasso",
    "lasso_limit",
    "least_squares",
    "least_squares_hessian",
    "logarithmic_search",
    "logistic_hessian",
    "logistic_regression",
    "lr_scheduler",
    "minimize",
    "perceptron",
    "ridge",
    "separability",
    "softmax_hessian",
    "softmax_regression",
    "swa_utils",
    "theory",
]

ABSENT = {
    "swap_in_optimizer_params_and_state": (
        "it belongs to the inside of PyTorch; load_state_dict puts another state in"
    ),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
