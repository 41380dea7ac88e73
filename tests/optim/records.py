"""One record per optimizer and set of options: the tests that hold for all run over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "ON_THEIR_OWN", "Case", "TORCH_CASES"]


@dataclass(frozen=True)
class Case:
    """``optim.<name>(params, **options)``.

    ``group`` has the settings in which the second of two groups of parameters differs (None: the
    optimizer takes one group). ``torch`` says whether PyTorch has the same class with these
    options; it is then compared step by step. ``needs`` is what a step works from: "gradient" (no
    closure), "loss" (a closure that calls backward and returns the loss), "graph" (a closure that
    returns the loss and leaves its graph), "residuals" (a closure that returns the vector whose
    squares are summed). ``descends`` says whether a bowl's loss must fall in 40 steps, ``resumes``
    whether a run that is saved and loaded goes on as if it had not been (no random numbers).
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    group: dict[str, Any] | None = field(default_factory=lambda: {"lr": 0.03})
    torch: bool = False
    needs: str = "gradient"
    descends: bool = True
    resumes: bool = True

    @property
    def label(self) -> str:
        return "-".join([self.name, *[f"{k}={v}" for k, v in self.options.items()]])

    def make(self, optim: Any, params: Any, **more: Any) -> Any:
        """The optimizer of chainrule.optim or torch.optim; ``more`` overrides options."""
        return getattr(optim, self.name)(params, **{**self.options, **more})

    def make_groups(self, optim: Any, first: Sequence[Any], second: Sequence[Any]) -> Any:
        """The optimizer of two groups, of which the second has settings of its own."""
        if self.group is None:
            return self.make(optim, [*first, *second])
        return self.make(optim, [{"params": first}, {"params": second, **self.group}])


def _like_torch(name: str, *options: dict[str, Any], **group: Any) -> list[Case]:
    return [
        Case(name, o, group or {"lr": 0.03}, True, descends=not o.get("maximize")) for o in options
    ]


TORCH_CASES: list[Case] = [
    *_like_torch(
        "SGD",
        {"lr": 0.05},
        {"lr": 0.02, "momentum": 0.9},
        {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1},
        {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"lr": 0.02, "momentum": 0.5, "maximize": True},
        lr=0.03,
        weight_decay=0.2,
    ),
    *_like_torch(
        "ASGD",
        {"lr": 0.05},
        {"lr": 0.05, "lambd": 0.01, "alpha": 0.6, "t0": 12},
        {"lr": 0.05, "weight_decay": 0.1, "t0": 0},
        {"lr": 0.02, "maximize": True},
        lr=0.03,
        t0=5,
    ),
    *_like_torch(
        "Adagrad",
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.05, "eps": 1e-3},
        {"lr": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
        {"lr": 0.05, "maximize": True},
        lr=0.03,
        lr_decay=0.1,
    ),
    *_like_torch(
        "Adadelta",
        {},
        {"lr": 0.7, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1},
        {"maximize": True},
        rho=0.95,
    ),
    *_like_torch(
        "RMSprop",
        {"lr": 0.02},
        {"lr": 0.02, "alpha": 0.9, "eps": 1e-4, "weight_decay": 0.1},
        {"lr": 0.01, "momentum": 0.8},
        {"lr": 0.02, "centered": True},
        {"lr": 0.01, "centered": True, "momentum": 0.7, "weight_decay": 0.1},
        {"lr": 0.01, "maximize": True},
        lr=0.01,
        alpha=0.95,
    ),
    *_like_torch(
        "Adam",
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3},
        {"lr": 0.05, "amsgrad": True},
        {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.02, "maximize": True},
        lr=0.03,
        betas=(0.7, 0.99),
    ),
    *_like_torch(
        "AdamW",
        {"lr": 0.05},
        {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True},
        {"lr": 0.02, "maximize": True},
        weight_decay=0.2,
    ),
    *_like_torch(
        "Adamax",
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1},
        {"lr": 0.02, "maximize": True},
        lr=0.03,
        betas=(0.7, 0.9),
    ),
    *_like_torch(
        "NAdam",
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.9), "momentum_decay": 0.1, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.02, "maximize": True},
        momentum_decay=0.05,
    ),
    *_like_torch(
        "RAdam",
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.8, 0.6), "weight_decay": 0.1},  # never rectified
        {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.02, "maximize": True},
        lr=0.03,
        betas=(0.7, 0.9),
    ),
    *_like_torch(
        "Rprop",
        {},
        {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.3)},
        {"maximize": True},
        etas=(0.6, 1.1),
    ),
]

# What PyTorch does not have, or (LBFGS) has as one group with a closure.
BEYOND_TORCH: list[Case] = [
    Case("SparseAdam", {"lr": 0.05}),  # PyTorch's refuses dense gradients: test_sparse_gradients
    Case("SparseAdam", {"lr": 0.02, "betas": (0.8, 0.9), "eps": 1e-3}, {"betas": (0.7, 0.99)}),
    Case("Adagrad", {"lr": 0.1, "eps": 1e-8, "eps_in_root": True}),
    Case("RMSprop", {"lr": 0.02, "eps_in_root": True}),
    Case("Adam", {"lr": 0.05, "eps_in_root": True}),
    Case("SGDW", {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.1}),
    Case("AveragedMomentum", {"lr": 0.05}),
    Case("Lion", {"lr": 0.02, "weight_decay": 0.1}),
    Case("DeltaDelta", {"lr": 0.02}),
    Case("DeltaBarDelta", {"lr": 0.02}),
    Case("Quickprop", {"lr": 0.01}),
    Case("Quickprop", {"lr": 0.01, "gradient_term": False, "weight_decay": 0.1}),
    Case("RpropMinus"),
    Case("RpropPlus"),
    Case("IRpropMinus"),
    Case("IRpropPlus", needs="loss"),
    Case("LBFGS", {"max_iter": 2}, None, needs="loss"),
    Case("LBFGS", {"max_iter": 2, "line_search_fn": "strong_wolfe"}, None, needs="loss"),
    Case("BFGS", {}, None, needs="loss"),
    Case("SteepestDescent", {}, None, needs="loss"),
    Case("ConjugateGradient", {}, None, needs="loss"),
    Case("Newton", {}, None, needs="graph"),
    Case("DampedNewton", {}, None, needs="graph"),
    Case("SaddleFreeNewton", {}, None, needs="graph"),
    Case("HessianFree", {}, None, needs="graph"),
    Case("GaussNewton", {}, None, needs="residuals"),
    Case("LevenbergMarquardt", {}, None, needs="residuals"),
    Case("GeneticAlgorithm", {"population": 20}, None, needs="loss", resumes=False),
]

# Steps that work from something else than a loss, or not element by element: where their tests are.
ON_THEIR_OWN = {
    "Adafactor": "test_matrices",
    "ExtendedKalmanFilter": "test_kalman",
    "Hebbian": "test_local_rules",
    "Muon": "test_matrices",
}

CASES: list[Case] = [*TORCH_CASES, *BEYOND_TORCH]
