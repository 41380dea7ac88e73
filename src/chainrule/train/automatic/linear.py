"""Linear models beside a network: one for each member, fitted at once on its own rows."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import eigh
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.elementwise.functions import sigmoid, softplus
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import one_hot
from chainrule.ops.layers.softmax import softmax
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import logsumexp, mean, sum
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.tensor import Tensor

__all__ = ["LinearMembers", "linear_members"]

L2 = (0.1, 1.0, 10.0, 100.0)  # of which the one is taken that predicts held-out rows best
MOST = 2_000_000  # outputs that are computed at once, of all members and penalties
# For each task: a bound of the loss's second derivative by the output, and the steps to be made.
CURVATURE = {"regression": (1.0, 15), "classification": (0.5, 40), "multilabel": (0.25, 40)}


class LinearMembers(NamedTuple):
    """Weights (M, D, K) and biases (M, 1, K) of linear models, and the penalty they have."""

    weight: Tensor
    bias: Tensor
    l2: float


@no_grad()
def linear_members(
    x: Tensor, y: Tensor, task: str, outputs: int, weight: Tensor
) -> LinearMembers | None:
    """Ridge, softmax or logistic regression for each member; None where the task has none.

    They minimize sum_n w[m, n] loss(x_n V + c, y_n) + l2 |V|^2 / 2 by steps of a Newton method
    whose Hessian is replaced by a bound (Boehning and Lindsay, 1988), in the basis in which that
    is diagonal, with Nesterov's momentum.

    Args:
        x: features (N, D).
        y: targets, as the encoder of the task gives them.
        task: "regression", "classification" or "multilabel".
        outputs: K.
        weight: of each row for each member (M, N), 0 where it is held out.
    """
    if task not in CURVATURE or not x.shape[1]:
        return None
    members = int(weight.shape[0])
    rows = max(500, MOST // (len(L2) * members * outputs))
    x, y, weight = x[:rows], y[:rows], weight[:, :rows]
    goal = y
    if task == "classification":
        goal = smoothed(cast(one_hot(y, outputs), x.dtype))
    center = mean(x, 0)
    x = x - center
    curvature, steps = CURVATURE[task]
    values, basis = eigh(cast(matmul(x.mT, x), dtypes.float64))
    values, basis = (cast(t, x.dtype) for t in (clamp(values, min=0), basis))
    z = matmul(x, basis)
    kept = unsqueeze(unsqueeze(weight.mT, 1), -1)  # (N, 1, M, 1)
    kept = kept / mean(clamp(kept, min=1e-30))  # a common factor is no reason for less penalty
    largest = max(1.0, float(kept.max()))
    goal = reshape(goal, (len(x), 1, 1, outputs))
    a, b = _descended(z, goal, kept, task, curvature * values * largest, steps)
    losses = _losses(_outputs(z, a, b), goal, task) * (kept == 0)
    best = int(sum(losses, (0, 2)).argmin())
    w = matmul(basis, a[:, best].movedim(0, 1))  # (M, D, K)
    return LinearMembers(w, unsqueeze(b[best], 1) - matmul(center, w).unsqueeze(1), L2[best])


def smoothed(goal: Tensor) -> Tensor:
    """Goals of N rows with one error more, spread over the classes: no class is sure."""
    share = 1 / len(goal)
    return goal * (1 - share) + share / goal.shape[-1]


def _outputs(z: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The outputs (N, penalties, M, K) for weights a (D, penalties, M, K)."""
    return reshape(matmul(z, reshape(a, (z.shape[1], -1))), (len(z), *a.shape[1:])) + b


def _descended(
    z: Tensor, goal: Tensor, kept: Tensor, task: str, hessian: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Weights (D, penalties, M, K) and biases (penalties, M, K) for all penalties and members."""
    shape = (len(L2), int(kept.shape[2]), int(goal.shape[-1]))
    l2 = reshape(tensor(L2, dtype=z.dtype), (-1, 1, 1))
    by = reshape(hessian, (-1, 1, 1, 1)) + l2
    count = float(kept.max()) * len(z) * CURVATURE[task][0]
    a = last = zeros(z.shape[1], *shape, dtype=z.dtype)
    b = last_b = zeros(*shape, dtype=z.dtype)
    for t in range(steps):
        momentum = 0.0 if task == "regression" else t / (t + 3)
        ahead, ahead_b = a + momentum * (a - last), b + momentum * (b - last_b)
        residual = (_predicted(_outputs(z, ahead, ahead_b), task) - goal) * kept
        g = reshape(matmul(z.mT, reshape(residual, (len(z), -1))), a.shape) + l2 * ahead
        a, last = ahead - g / by, a
        b, last_b = ahead_b - sum(residual, 0) / count, b
    return a, b


def _predicted(output: Tensor, task: str) -> Tensor:
    if task == "classification":
        return softmax(output, -1)
    return sigmoid(output) if task == "multilabel" else output


def _losses(output: Tensor, goal: Tensor, task: str) -> Tensor:
    """The loss of each row (N, penalties, M, 1)."""
    if task == "classification":
        return logsumexp(output, -1, keepdim=True) - sum(output * goal, -1, keepdim=True)
    if task == "multilabel":
        return sum(softplus(output) - goal * output, -1, keepdim=True)
    return sum((output - goal) ** 2, -1, keepdim=True)
