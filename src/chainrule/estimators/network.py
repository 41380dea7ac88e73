"""The network and the optimizer that the parameters of an estimator describe."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend.dtypes import dtype
from chainrule.models import MLP
from chainrule.models.mlp import Activation
from chainrule.ops.elementwise.functions import square
from chainrule.ops.reduce.reductions import sum
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.names import make_optimizer, optimizer_class
from chainrule.tensor import Tensor
from chainrule.train.batches import floating_dtype
from chainrule.typing import Params

__all__ = [
    "Bottleneck",
    "L2Penalty",
    "activations",
    "built",
    "decays",
    "dense",
    "has_batch_norm",
    "is_stochastic",
    "output_of",
    "solver_optimizer",
]

Solver = str | Callable[..., optim.Optimizer]
_RENAMED = {"logistic": "sigmoid"}  # scikit-learn's names


def activations(given: Activation | Sequence[Activation], count: int) -> list[Activation]:
    """An activation for each hidden layer, each with parameters of its own if it has any."""
    each = (
        list(given)
        if isinstance(given, Sequence) and not isinstance(given, str)
        else [given] * count
    )
    if len(each) != count:
        raise ValueError(
            f"activation must have one entry for each of the {count} hidden layers, got {len(each)}"
        )
    return [
        _RENAMED.get(f, f)
        if isinstance(f, str)
        else (copy.deepcopy(f) if isinstance(f, nn.Module) else f)
        for f in each
    ]


def dense(
    in_features: int,
    hidden: list[int],
    out_features: int,
    activation: Activation | Sequence[Activation],
    *,
    dropout: float,
    norm: str | None,
    output_activation: Activation | None = None,
) -> MLP:
    """Dense layers that start as scikit-learn's do: uniform in +-sqrt(6 / (fan_in + fan_out))."""
    last = None if output_activation is None else activations(output_activation, 1)[0]
    network = MLP(
        in_features,
        hidden,
        out_features,
        activations(activation, len(hidden)),
        dropout=dropout,
        norm=norm,
        output_activation=last,
    )
    factor = 2.0 if activation in ("logistic", "sigmoid") else 6.0
    for layer in network:
        if isinstance(layer, nn.Linear):
            bound = math.sqrt(factor / (layer.in_features + layer.out_features))
            with no_grad():
                layer.weight.uniform_(-bound, bound)
                layer.get_parameter("bias").uniform_(-bound, bound)
    return network


class Bottleneck(nn.Module):
    """A network in two parts: ``decode(encode(x))``, the code between them being features."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, input: Tensor) -> Tensor:
        """The features."""
        return self.encoder(input)

    def decode(self, code: Tensor) -> Tensor:
        """The outputs for features."""
        return self.decoder(code)

    def forward(self, input: Tensor) -> Tensor:
        return self.decoder(self.encoder(input))


def built(
    module: nn.Module | Callable[[int, int], nn.Module],
    in_features: int,
    out_features: int,
    wanted: dtype,
) -> nn.Module:
    """A copy of the user's module, or what the function makes for so many inputs and outputs."""
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    made = module(in_features, out_features)
    if not isinstance(made, nn.Module):
        raise TypeError(
            f"module: {getattr(module, '__name__', module)} returned {type(made).__name__}; it "
            "must return a chainrule.nn.Module for (n_features, n_outputs)"
        )
    return made.to(wanted)


def output_of(network: nn.Module, x: Tensor) -> Tensor:
    """What a network makes of a sample: to see its width, and to start its lazy layers."""
    network.eval()
    with no_grad():
        output = network(x[:1].to(floating_dtype(network)))
    if not isinstance(output, Tensor) or output.ndim != 2:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"module: expected an output of shape (n_samples, n_outputs) for one sample of "
            f"{x.shape[1]} features, got {shape}"
        )
    return output


def has_batch_norm(network: nn.Module) -> bool:
    """Whether a batch of one sample cannot be trained on."""
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    return any([isinstance(m, kinds) for m in network.modules()])


class L2Penalty:
    """strength / 2 times the sum of the squares of all weights (not of biases)."""

    name = "penalty"

    def __init__(self, network: nn.Module, strength: float):
        self.weights = [p for p in network.parameters() if p.ndim > 1 and p.requires_grad]
        self.strength = strength

    def __call__(self, network: nn.Module) -> Tensor:
        first, *rest = [sum(square(w)) for w in self.weights]
        for part in rest:
            first = first + part
        return first * (self.strength / 2)

    def groups(self, network: nn.Module) -> list[dict[str, Any]]:
        """The parameters with the weight decay that is the gradient of this penalty."""
        chosen = {id(w) for w in self.weights}
        others = [p for p in network.parameters() if p.requires_grad and id(p) not in chosen]
        decayed = {"params": self.weights, "weight_decay": self.strength}
        return [group for group in (decayed, {"params": others}) if group["params"]]


# --- optimizers -----------------------------------------------------------------------------------


def _resolved(solver: Solver) -> Callable[..., optim.Optimizer]:
    """The class or function that makes the optimizer."""
    if not isinstance(solver, str):
        return solver
    try:
        return optimizer_class(solver)
    except ValueError as error:
        raise ValueError(
            "The 'solver' parameter must be the name of an optimizer, a class of chainrule.optim, "
            f"or a function that makes an optimizer. Got {solver!r} instead: {error}"
        ) from None


def decays(solver: Solver) -> bool:
    """Whether the optimizer's weight decay is the gradient of an L2 penalty, without its cost."""
    return _resolved(solver) in (optim.SGD, optim.Adam)


def is_stochastic(solver: Solver) -> bool:
    """Whether the optimizer takes batches; else it sees all the data at each step."""
    made = _resolved(solver)
    made = getattr(made, "func", made)  # of a functools.partial
    return not (isinstance(made, type) and issubclass(made, Minimizer))


def solver_optimizer(solver: Solver, parameters: Params, **given: float | None) -> optim.Optimizer:
    """The optimizer with those of the settings that are not None.

    Args:
        solver: its name, class, or a function of the parameters.
        parameters: what it changes, or groups of that.
        given: ``learning_rate_init``, ``momentum``, ``nesterovs_momentum``, ``beta_1``, ``beta_2``,
            ``epsilon``, ``tol``.
    """
    make = _resolved(solver)
    known = inspect.signature(make).parameters
    options: dict[str, Any] = {}
    if make is optim.SGD and solver is not optim.SGD:  # by name: as scikit-learn's
        momentum = 0.9 if given["momentum"] is None else given["momentum"]
        nesterov = given["nesterovs_momentum"]
        options |= {
            "momentum": momentum,
            "nesterov": momentum > 0 if nesterov is None else nesterov,
        }
    if make is optim.LBFGS and solver is not optim.LBFGS:
        # One iteration is one epoch; ten updates remembered, as scikit-learn's does.
        options |= {
            "max_iter": 1,
            "max_eval": 25,
            "history_size": 10,
            "line_search_fn": "strong_wolfe",
        }
    if "tolerance_grad" in known or "tolerances" in known:
        options["tolerance_grad"] = given["tol"]
    betas = (given["beta_1"], given["beta_2"])
    wanted: dict[str, tuple[str, Any]] = {
        "lr": ("learning_rate_init", given["learning_rate_init"]),
        "momentum": ("momentum", given["momentum"]),
        "nesterov": ("nesterovs_momentum", given["nesterovs_momentum"]),
        "eps": ("epsilon", given["epsilon"]),
        "betas": ("beta_1 and beta_2", None if betas == (None, None) else betas),
    }
    for key, (name, value) in wanted.items():
        if value is None:
            continue
        if key not in known:
            raise ValueError(f"solver {solver!r} does not have the setting of {name}={value!r}")
        if key == "betas":
            default = known[key].default
            value = tuple(d if b is None else b for b, d in zip(betas, default, strict=True))
        options[key] = value
    return make_optimizer("solver", make, parameters, **options)
