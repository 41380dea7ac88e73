"""Linear models beside a network: one for each member, fitted at once on its own rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import eigh, qr
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange, eye, ones, zeros
from chainrule.ops.elementwise.functions import exp, maximum, sigmoid, softplus
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import one_hot
from chainrule.ops.layers.softmax import softmax
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import amax
from chainrule.ops.reduce.reductions import logsumexp, mean, sum
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.tensor import Tensor

__all__ = ["LinearMembers", "linear_members"]

L2 = (0.1, 1.0, 10.0, 100.0)  # of which the one is taken that predicts held-out rows best
MOST = 2_000_000  # outputs that are computed at once, of all members and penalties
WIDTH = 0.1  # in which the kink of the loss of quantiles is bent, in deviations of the target
FARTHEST = 20.0  # the logarithm of a count, in means, at most


class _Kind(NamedTuple):
    """What the models of a task minimize, and how.

    ``residual`` is the derivative of the loss by the output, ``curvature`` a bound of the second
    one; ``losses`` are those of the rows (N, penalties, M, 1).
    """

    steps: int
    curvature: Callable[[Tensor], Tensor | float]
    residual: Callable[[Tensor, Tensor], Tensor]
    losses: Callable[[Tensor, Tensor], Tensor]


def _of_quantiles(q: Tensor) -> _Kind:
    def losses(output: Tensor, goal: Tensor) -> Tensor:
        d = goal - output
        return sum(maximum(q * d, (q - 1) * d), -1, keepdim=True)

    return _Kind(
        60,
        lambda output: 0.25 / WIDTH,
        lambda output, goal: sigmoid((output - goal) / WIDTH) - q,
        losses,
    )


KINDS = {
    "regression": _Kind(
        15,
        lambda output: 1.0,
        lambda output, goal: output - goal,
        lambda output, goal: sum((output - goal) ** 2, -1, keepdim=True),
    ),
    "classification": _Kind(
        40,
        lambda output: 0.5,
        lambda output, goal: softmax(output, -1) - goal,
        lambda output, goal: (
            logsumexp(output, -1, keepdim=True) - sum(output * goal, -1, keepdim=True)
        ),
    ),
    "multilabel": _Kind(
        40,
        lambda output: 0.25,
        lambda output, goal: sigmoid(output) - goal,
        lambda output, goal: sum(softplus(output) - goal * output, -1, keepdim=True),
    ),
    # The second derivative has no bound: that of the outputs of each model as they are is taken.
    "count": _Kind(
        60,
        lambda output: exp(clamp(amax(output, (0, 3), keepdim=True), 0.0, FARTHEST)),
        lambda output, goal: exp(clamp(output, max=FARTHEST)) - goal,
        lambda output, goal: sum(
            exp(clamp(output, max=FARTHEST)) - goal * output, -1, keepdim=True
        ),
    ),
}
KINDS["ordinal"] = KINDS["multilabel"]  # of the answers to whether a rank is above another
APART = 30.0  # how much more the slopes of ranks are held together than they are held small


class LinearMembers(NamedTuple):
    """Weights (M, D, K) and biases (M, 1, K) of linear models, and the penalty they have."""

    weight: Tensor
    bias: Tensor
    l2: float


@no_grad()
def linear_members(
    x: Tensor,
    y: Tensor,
    task: str,
    outputs: int,
    weight: Tensor,
    quantiles: Sequence[float] = (),
) -> LinearMembers | None:
    """Ridge, softmax, logistic, Poisson or quantile regression for each member; None without x.

    They minimize sum_n w[m, n] loss(x_n V + c, y_n) + l2 |V|^2 / 2 by steps of a Newton method
    whose Hessian is replaced by a bound (Boehning and Lindsay, 1988), in the basis in which that
    is diagonal, with Nesterov's momentum.

    Args:
        x: features (N, D).
        y: targets, as the encoder of the task gives them.
        task: see :class:`~chainrule.data.TargetEncoder`.
        outputs: K.
        weight: of each row for each member (M, N), 0 where it is held out.
        quantiles: which they are, for the task of that name.
    """
    if not x.shape[1]:
        return None
    kind = _of_quantiles(tensor(list(quantiles))) if task == "quantile" else KINDS[task]
    members = int(weight.shape[0])
    rows = max(500, MOST // (len(L2) * members * outputs))
    x, y, weight = x[:rows], y[:rows], weight[:, :rows]
    goal = y
    if task == "classification":
        goal = smoothed(cast(one_hot(y, outputs), x.dtype))
    elif task == "ordinal":
        goal = cast(unsqueeze(y, -1) > arange(outputs), x.dtype)
    center = mean(x, 0)
    x = x - center
    values, basis = eigh(cast(matmul(x.mT, x), dtypes.float64))
    values, basis = (cast(t, x.dtype) for t in (clamp(values, min=0), basis))
    z = matmul(x, basis)
    kept = unsqueeze(unsqueeze(weight.mT, 1), -1)  # (N, 1, M, 1)
    kept = kept / mean(clamp(kept, min=1e-30))  # a common factor is no reason for less penalty
    largest = max(1.0, float(kept.max()))
    goal = reshape(goal, (len(x), 1, 1, -1))
    directions = _directions(task, outputs, x)
    a, b = _descended(z, goal, kept, kind, values * largest, directions)
    losses = kind.losses(_outputs(z, a, b), goal) * (kept == 0)
    best = int(sum(losses, (0, 2)).argmin())
    w = matmul(basis, a[:, best].movedim(0, 1))  # (M, D, K)
    return LinearMembers(w, unsqueeze(b[best], 1) - matmul(center, w).unsqueeze(1), L2[best])


class _Directions(NamedTuple):
    """Directions of the outputs, the columns of ``turn``; and how much each is penalized (K,)."""

    turn: Tensor | None
    penalty: Tensor

    def into(self, weights: Tensor) -> Tensor:
        """Weights (..., K) by output as those by direction."""
        return weights if self.turn is None else matmul(weights, self.turn)

    def out_of(self, weights: Tensor) -> Tensor:
        """Weights (..., K) by direction as those by output."""
        return weights if self.turn is None else matmul(weights, self.turn.mT)


def _directions(task: str, outputs: int, like: Tensor) -> _Directions:
    """The outputs themselves; for ranks, their mean and what differs from it.

    A slope is nearly the same for all thresholds of ranks, as in a model of proportional odds.
    """
    penalty = ones(outputs, dtype=like.dtype, device=like.device)
    if task != "ordinal" or outputs == 1:
        return _Directions(None, penalty)
    start = eye(outputs, dtype=like.dtype, device=like.device)
    start[:, 0] = 1.0
    penalty[1:] = APART
    return _Directions(qr(start)[0], penalty)


def smoothed(goal: Tensor) -> Tensor:
    """Goals of N rows with one error more, spread over the classes: no class is sure."""
    share = 1 / len(goal)
    return goal * (1 - share) + share / goal.shape[-1]


def _outputs(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The outputs (N, penalties, M, K) for weights a (D, penalties, M, K)."""
    return reshape(matmul(z, reshape(a, (z.shape[1], -1))), (len(z), *a.shape[1:])) + b


def _descended(
    z: Tensor,
    goal: Tensor,
    kept: Tensor,
    kind: _Kind,
    hessian: Tensor,
    by: _Directions,
) -> tuple[Tensor, Tensor]:
    """Weights (D, penalties, M, K) and biases (penalties, M, K) for all penalties and members."""
    shape = (len(L2), int(kept.shape[2]), len(by.penalty))
    l2 = reshape(tensor(L2, dtype=z.dtype, device=z.device), (-1, 1, 1)) * by.penalty
    hessian = reshape(hessian, (-1, 1, 1, 1))
    count = float(kept.max()) * len(z)
    a = last = zeros(z.shape[1], *shape, dtype=z.dtype, device=z.device)
    b = last_b = zeros(*shape, dtype=z.dtype, device=z.device)
    for t in range(kind.steps):
        momentum = 0.0 if kind is KINDS["regression"] else t / (t + 3)
        ahead, ahead_b = a + momentum * (a - last), b + momentum * (b - last_b)
        output = _outputs(z, by.out_of(ahead), ahead_b)
        residual, curvature = kind.residual(output, goal) * kept, kind.curvature(output)
        g = by.into(reshape(matmul(z.mT, reshape(residual, (len(z), -1))), a.shape)) + l2 * ahead
        a, last = ahead - g / (curvature * hessian + l2), a
        step = sum(residual, 0, keepdim=True) / (count * curvature)
        b, last_b = ahead_b - step[0], b
    return by.out_of(a), b
