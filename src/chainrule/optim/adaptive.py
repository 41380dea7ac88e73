"""A rate for each weight from the squares of its gradients: Adagrad, RMSprop, Adadelta."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from chainrule.ops.elementwise.complex_numbers import complex
from chainrule.ops.creation.patterns import full_like
from chainrule.ops.elementwise.functions import maximum, sqrt
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.rules import decayed, fused, root
from chainrule.optim.settings import NOT_NEGATIVE, UNIT, Capturable, Fused, Interval
from chainrule.tensor import Tensor
from chainrule.typing import Params, Rates, Value

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class Adagrad(Optimizer):
    """Adagrad: the gradient over the root of the sum of all its squares, this one's included.

    g <- g + weight_decay p; s <- s + g^2;
    p <- p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)

    Duchi, Hazan and Singer, 2011.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-2).
        lr_decay: how fast the learning rate falls (default 0).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        initial_accumulator_value: what the sum of squares starts from (default 0).
        eps: keeps the denominator from zero (default 1e-10).
        maximize: whether to climb.
        eps_in_root: whether to divide by sqrt(s + eps) instead.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    implementation_keys = ("foreach", "differentiable", "fused")
    ranges: ClassVar[dict[str, Interval]] = dict.fromkeys(
        ("lr_decay", "weight_decay", "initial_accumulator_value", "eps"), NOT_NEGATIVE
    )

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        eps_in_root: bool = False,
        **implementation: Unpack[Fused],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "maximize": maximize,
                **({"eps_in_root": True} if eps_in_root else {}),
            },
            implementation,
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:  # at once, as in PyTorch, whose files have the state of all
            self._make_state(group, p, self.states(group))

    def takes_rows(self, group: dict[str, Any]) -> bool:
        return not group["weight_decay"]

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def new_state(self, name: str, p: Tensor, group: dict[str, Any]) -> Tensor:
        start = group["initial_accumulator_value"]
        if p.dtype.is_complex:
            part = full_like(p.detach().real, start)
            return complex(part, part)
        return full_like(p.detach(), start)

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        names = ("weight_decay", "eps", "maximize")
        return {
            **{name: group[name] for name in names},
            "slowdown": 1 + (step - 1) * group["lr_decay"],
            "eps_in_root": group.get("eps_in_root", False),
        }

    @staticmethod
    @fused("adagrad")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        s: Value,
        *,
        weight_decay: float,
        eps: float,
        slowdown: float,
        maximize: bool,
        eps_in_root: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        s = s + g * g
        return p - lr / slowdown * g / root(s, eps, eps_in_root), s


class RMSprop(Optimizer):
    """RMSprop: the gradient over the root of the running mean of its square.

    g <- g + weight_decay p; v <- alpha v + (1 - alpha) g^2; d <- g / (sqrt(v) + eps);
    p <- p - lr d, or with momentum b <- momentum b + d; p <- p - lr b

    With ``centered`` the variance v - m^2 takes the place of v, where m is the running mean of g.
    Tieleman and Hinton, 2012; Graves, 2013 (centered).

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate: a number, or tensors that fit the parameters (default 1e-2).
        alpha: how much of the mean is kept (default 0.99).
        eps: keeps the denominator from zero (default 1e-8).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        momentum: how much of the last direction is kept (default 0).
        centered: whether to divide by the standard deviation.
        maximize: whether to climb.
        eps_in_root: whether to divide by sqrt(v + eps) instead.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    implementation_keys = ("foreach", "capturable", "differentiable")
    ranges: ClassVar[dict[str, Interval]] = {
        "alpha": UNIT,
        **dict.fromkeys(("eps", "weight_decay", "momentum"), NOT_NEGATIVE),
    }

    def __init__(
        self,
        params: Params,
        lr: Rates = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        eps_in_root: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "maximize": maximize,
                **({"eps_in_root": True} if eps_in_root else {}),
            },
            implementation,
        )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        buffer = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *buffer, *(("grad_avg",) if group["centered"] else ()))

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        names = ("alpha", "eps", "weight_decay", "momentum", "centered", "maximize")
        options = {name: group[name] for name in names}
        return {**options, "eps_in_root": group.get("eps_in_root", False)}

    @staticmethod
    @fused("rmsprop")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        v: Value,
        *rest: Value,
        alpha: float,
        eps: float,
        weight_decay: float,
        momentum: float,
        centered: bool,
        maximize: bool,
        eps_in_root: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        v = alpha * v + (1 - alpha) * (g * g)
        spread, means = v, []
        if centered:
            m = alpha * rest[-1] + (1 - alpha) * g
            # Of gradients that stay equal, rounding could make the variance negative.
            spread, means = maximum(v - m * m, 0.0), [m]
        d = g / root(spread, eps, eps_in_root)
        if not momentum:
            return p - lr * d, v, *means
        b = momentum * rest[0] + d
        return p - lr * b, v, b, *means


class Adadelta(Optimizer):
    """Adadelta: steps in the parameter's units, from running means of both squares.

    g <- g + weight_decay p; v <- rho v + (1 - rho) g^2; d <- sqrt(u + eps) / sqrt(v + eps) g;
    u <- rho u + (1 - rho) d^2; p <- p - lr d

    The ratio of the roots estimates the inverse of the curvature. Zeiler, 2012.

    Args:
        params: the parameters, or groups of them.
        lr: what multiplies the step: a number, or tensors that fit the parameters (default 1.0).
        rho: how much of the means is kept (default 0.9).
        eps: starts the steps, and keeps the denominator from zero (default 1e-6).
        weight_decay: the strength of the penalty ||p||^2 / 2 (default 0).
        maximize: whether to climb.

    >>> import chainrule
    >>> from chainrule import optim
    >>> w = chainrule.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adadelta([w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> 1 - w.item()
    0.00316...
    """

    implementation_keys = ("foreach", "capturable", "differentiable")
    ranges: ClassVar[dict[str, Interval]] = {
        "rho": UNIT,
        "eps": NOT_NEGATIVE,
        "weight_decay": NOT_NEGATIVE,
    }

    def __init__(
        self,
        params: Params,
        lr: Rates = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **implementation: Unpack[Capturable],
    ):
        super().__init__(
            params,
            {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
            implementation,
        )

    def states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def constants(self, group: dict[str, Any], step: int, **scalars: float) -> dict[str, Any]:
        return {name: group[name] for name in ("rho", "eps", "weight_decay", "maximize")}

    @staticmethod
    @fused("adadelta")
    def rule(
        p: Value,
        g: Value,
        lr: Value | float,
        v: Value,
        u: Value,
        *,
        rho: float,
        eps: float,
        weight_decay: float,
        maximize: bool,
    ) -> tuple[Value, ...]:
        g = decayed(p, g, weight_decay, maximize)
        v = rho * v + (1 - rho) * (g * g)
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * (d * d)
        return p - lr * d, v, u
