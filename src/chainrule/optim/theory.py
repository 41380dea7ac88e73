"""What theory says about learning rates and momentum, as small functions.

A loss has curvatures between alpha and beta if all eigenvalues of its Hessian lie there; beta is
also the Lipschitz constant of its gradient, and kappa = beta / alpha the condition number. The
bounds hold for convex losses; near a minimum every smooth loss is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, overload

from chainrule.autograd.func import grad_and_value
from chainrule.ops.creation.patterns import zeros_like
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.linalg.matrices import vector_norm
from chainrule.ops.creation.sampling import randn_like
from chainrule.ops.reduce.order import max as max_of, min as min_of
from chainrule.ops.reduce.reductions import sum as sum_of
from chainrule.ops.shape.stacking import stack
from chainrule.optim.optimizer import check_range
from chainrule.optim.second_derivatives import SecondOrderObjective
from chainrule.tensor import Tensor
from chainrule.typing import Random, Rate

__all__ = [
    "Motion",
    "OptimalMomentum",
    "damped_motion",
    "descent_expansion",
    "descent_rate",
    "distance_rate",
    "euler_inequality",
    "free_decay",
    "lipschitz_estimate",
    "loss_bound",
    "noise_scale",
    "optimal_momentum",
    "step_bound",
]


# --- learning rates -------------------------------------------------------------------------------


def step_bound(lipschitz: float) -> float:
    """2 / beta: gradient descent falls at every step if 0 < lr < 2 / beta.

    From f(w - lr g) <= f(w) - lr (1 - lr beta / 2) ||g||^2. At 2 / beta itself it may swing for
    ever.

    >>> from chainrule.optim.theory import step_bound
    >>> step_bound(10.0)
    0.2
    """
    check_range("step_bound", lipschitz=lipschitz, closed=False)
    return 2 / lipschitz


def lipschitz_estimate(
    closure: Callable[[], Tensor],
    params: Iterable[Tensor],
    iterations: int = 100,
    tolerance: float = 1e-4,
    generator: Random = None,
) -> float:
    """The largest curvature |eigenvalue| of the loss where the parameters are, by power iteration.

    v <- H v / ||H v|| turns toward the eigenvector of the largest eigenvalue, and ||H v|| toward
    its size, from below; stopped when that changes by less than a part of ``tolerance``. For a
    quadratic loss it is the Lipschitz constant of the gradient, else that of a neighborhood.

    >>> import chainrule
    >>> from chainrule.optim.theory import lipschitz_estimate, step_bound
    >>> w = chainrule.tensor([1.0, 1.0], requires_grad=True)
    >>> beta = lipschitz_estimate(lambda: w[0] ** 2 + 5 * w[1] ** 2, [w])
    >>> round(beta, 3), round(step_bound(beta), 3)
    (10.0, 0.2)
    """
    check_range("lipschitz_estimate", 1, iterations=iterations)
    f = SecondOrderObjective(list(params), closure, "lipschitz_estimate")
    v = randn_like(f.vector(), generator=generator)
    size = 0.0
    for _ in range(iterations):
        v = f.hessian_product(v / vector_norm(v))
        before, size = size, float(vector_norm(v))
        if size == 0 or abs(size - before) <= tolerance * size:
            break
    return size


# --- why descent, and where it ends ---------------------------------------------------------------


def descent_expansion(
    f: Callable[[Tensor], Tensor], point: Tensor, lr: float
) -> tuple[float, float]:
    """A loss one step against its gradient, and Taylor's f(w) - lr |g|^2 for it: (there, model).

    They differ by o(lr), so a step that is small enough descends wherever g is not 0, and the
    direction -g / |g| is the one of steepest descent.

    >>> import chainrule
    >>> from chainrule.optim.theory import descent_expansion
    >>> start = chainrule.tensor([3.0, 4.0])
    >>> there, model = descent_expansion(lambda w: (w**2).sum() / 2, start, lr=0.01)
    >>> round(there, 4), round(model, 4)
    (12.2513, 12.25)
    """
    check_range("descent_expansion", lr=lr)
    slope, value = grad_and_value(f)(point)
    there = float(f(point - lr * slope))
    return there, float(value - lr * sum_of(slope * slope))


def euler_inequality(
    f: Callable[[Tensor], Tensor], point: Tensor, others: Tensor
) -> tuple[bool, float]:
    """Whether <grad f(x), y - x> >= 0 for all points y, and the least of these products.

    Every minimizer x of f on a convex set fulfills it for all y of the set: no direction into the
    set leads downhill. Inside of the set that means that the gradient is 0; at its border the
    gradient may point inwards. For a convex f it is sufficient, too.

    Args:
        f: a number, of a point (D,).
        point: x, (D,).
        others: points y of the set, (N, D).

    >>> import chainrule
    >>> from chainrule.optim.theory import euler_inequality
    >>> square = chainrule.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> corner = chainrule.tensor([1.0, 1.0])  # the nearest to (2, 3) in the unit square
    >>> euler_inequality(lambda w: ((w - chainrule.tensor([2.0, 3.0]))**2).sum(), corner, square)
    (True, 0.0)
    """
    slope, _ = grad_and_value(f)(point)
    products = sum_of((others - point) * slope, -1)
    least = float(min_of(products))
    size = float(vector_norm(slope)) * float(max_of(vector_norm(others - point, dim=-1)))
    return least >= -1e-6 * size, least


# --- rates of convergence -------------------------------------------------------------------------


def _check_condition(name: str, condition_number: float) -> None:
    check_range(name, 1.0, condition_number=condition_number)


def descent_rate(condition_number: float) -> float:
    """(kappa - 1) / (kappa + 1): what is left of the distance to the minimum after one step.

    For gradient descent on a quadratic with its best rate, 2 / (alpha + beta).

    >>> from chainrule.optim.theory import descent_rate
    >>> round(descent_rate(100), 4)
    0.9802
    """
    _check_condition("descent_rate", condition_number)
    return (condition_number - 1) / (condition_number + 1)


def distance_rate(condition_number: float) -> float:
    """sqrt(1 / (1 + 1 / kappa)), the rho of ||w_k - w*|| <= rho^k ||w_0 - w*||.

    Equal to sqrt(beta / (alpha + beta)). For gradient descent with lr = 1 / beta on any strongly
    convex loss; a quadratic does better, see :func:`descent_rate`.

    >>> from chainrule.optim.theory import distance_rate
    >>> round(distance_rate(100), 4)
    0.995
    """
    _check_condition("distance_rate", condition_number)
    return math.sqrt(1 / (1 + 1 / condition_number))


def loss_bound(lipschitz: float, distance: float, steps: int) -> float:
    """How far above its minimum the loss can be after k steps: A / (k + 1), A = beta distance^2.

    ``distance`` is ||w_0 - w*||. For gradient descent with lr = 1 / beta on a convex loss, strongly
    convex or not.

    >>> from chainrule.optim.theory import loss_bound
    >>> loss_bound(lipschitz=2.0, distance=3.0, steps=8)
    2.0
    """
    check_range("loss_bound", lipschitz=lipschitz, distance=distance, steps=steps)
    return lipschitz * distance**2 / (steps + 1)


class OptimalMomentum(NamedTuple):
    """Settings for :class:`~chainrule.optim.SGD`, and the factor by which each step nears."""

    lr: float
    momentum: float
    rate: float


def optimal_momentum(
    condition_number: float, lipschitz: float = 1.0, nesterov: bool = False
) -> OptimalMomentum:
    """The best learning rate and momentum for a quadratic, from its condition number kappa.

    With q = (sqrt(kappa) - 1) / (sqrt(kappa) + 1): the heavy ball (SGD with momentum) has momentum
    q^2, lr = (1 + q)^2 / beta and the rate q; Nesterov's momentum is q, with lr = 1 / beta and the
    rate 1 - 1 / sqrt(kappa). Both are rates in the long run: at first a step does less, because two
    roots of the recursion coincide.

    >>> from chainrule.optim.theory import descent_rate, optimal_momentum
    >>> lr, momentum, rate = optimal_momentum(100)
    >>> round(momentum, 3), round(rate, 3), round(descent_rate(100), 3)
    (0.669, 0.818, 0.98)
    """
    _check_condition("optimal_momentum", condition_number)
    check_range("optimal_momentum", lipschitz=lipschitz, closed=False)
    root = math.sqrt(condition_number)
    q = (root - 1) / (root + 1)
    if nesterov:
        return OptimalMomentum(1 / lipschitz, q, 1 - 1 / root)
    return OptimalMomentum((1 + q) ** 2 / lipschitz, q * q, q)


# --- momentum as motion ---------------------------------------------------------------------------


class Motion(NamedTuple):
    """A path w(t) with its velocity w'(t), along dimension 0 for each time."""

    times: Tensor
    positions: Tensor
    velocities: Tensor


def damped_motion(
    gradient: Callable[[Tensor], Tensor],
    position: Tensor,
    velocity: Tensor | None = None,
    *,
    lr: float,
    momentum: float,
    duration: float,
    steps: int = 1000,
) -> Motion:
    """The motion w'' = -(1 - momentum) w' - lr (1 - momentum) g(w) that momentum follows.

    A particle of mass 1 in the potential lr (1 - momentum) f with friction 1 - momentum: averaged
    momentum, dw <- momentum dw - lr (1 - momentum) g, for small steps, one of them in each unit of
    time. Integrated by the classical method of Runge and Kutta.

    Args:
        gradient: of the loss, a function of the position.
        position: where the motion starts, at time 0.
        velocity: of the start; zero if not given.
        lr: the learning rate.
        momentum: in [0, 1).
        duration: the time, in steps of the optimizer.
        steps: of the integration.

    >>> import chainrule
    >>> from chainrule.optim.theory import damped_motion
    >>> start = chainrule.tensor([1.0], dtype=chainrule.float64)
    >>> path = damped_motion(lambda w: w, start, lr=1.0, momentum=0.9, duration=100.0)  # of a bowl
    >>> abs(path.positions[-1].item()) < 0.01
    True
    """
    check_range("damped_motion", lr=lr, duration=duration)
    check_range("damped_motion", 0.0, 1.0, momentum=momentum)
    check_range("damped_motion", 1, steps=steps)
    h, friction = duration / steps, 1 - momentum

    def change(w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return v, -friction * v - lr * friction * gradient(w)

    w, v = position, zeros_like(position) if velocity is None else velocity
    path = [(w, v)]
    for _ in range(steps):
        w, v = _runge_kutta(change, w, v, h)
        path.append((w, v))
    times = tensor([i * h for i in range(steps + 1)], dtype=position.dtype, device=position.device)
    return Motion(times, stack([w for w, _ in path]), stack([v for _, v in path]))


def _runge_kutta(
    change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], w: Tensor, v: Tensor, h: float
) -> tuple[Tensor, Tensor]:
    w1, v1 = change(w, v)
    w2, v2 = change(w + h / 2 * w1, v + h / 2 * v1)
    w3, v3 = change(w + h / 2 * w2, v + h / 2 * v2)
    w4, v4 = change(w + h * w3, v + h * v3)
    return w + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4), v + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


@overload
def free_decay(velocity: float, momentum: float, t: float, t0: float = 0.0) -> float: ...
@overload
def free_decay(velocity: Tensor, momentum: float, t: Rate, t0: float = 0.0) -> Tensor: ...
@overload
def free_decay(velocity: float, momentum: float, t: Tensor, t0: float = 0.0) -> Tensor: ...
def free_decay(velocity: Rate, momentum: float, t: Rate, t0: float = 0.0) -> Rate:
    """w'(t) = w'(t0) exp(-(1 - momentum) (t - t0)): the velocity where the gradient is zero.

    >>> from chainrule.optim.theory import free_decay
    >>> round(free_decay(1.0, 0.9, 25.0, t0=5.0), 4)
    0.1353
    """
    check_range("free_decay", 0.0, 1.0, momentum=momentum)
    elapsed = -(1 - momentum) * (t - t0)
    return velocity * (exp(elapsed) if isinstance(elapsed, Tensor) else math.exp(elapsed))


# --- the noise of stochastic gradients ------------------------------------------------------------


def noise_scale(lr: float, batch_size: int, n: int | None = None) -> float:
    """The temperature lr / (2 batch_size) of stochastic gradient descent.

    The weights end in the distribution that minimizes E[f] - T H: the lower the temperature T, the
    less the entropy H counts against the loss (for noise that is alike in all directions). With the
    size ``n`` of the data, batches are drawn without replacement: T (1 - batch_size / n).

    >>> from chainrule.optim.theory import noise_scale
    >>> noise_scale(0.1, 5), noise_scale(0.1, 5, n=10)
    (0.01, 0.005)
    """
    check_range("noise_scale", lr=lr)
    check_range("noise_scale", 1, batch_size=batch_size)
    if n is not None and n < batch_size:
        raise ValueError(
            f"noise_scale: a batch of {batch_size} cannot be drawn without replacement from {n}"
        )
    share = 1.0 if n is None else 1 - batch_size / n
    return lr / (2 * batch_size) * share
