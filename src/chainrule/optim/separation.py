"""A hyperplane between two classes: whether there is one, and the perceptron that looks for it.

Write b_n for the inputs times their labels -1 and 1. Some w has w . b_n > 0 for all n, or else
nonnegative multiples of the b_n, not all zero, add up to zero (Gordan); some w has w . b_n >= 0 for
all n and not always 0, or else positive multiples do (Stiemke). Nonnegative least squares finds the
multiples, or leaves a residual that is such a w.
"""

from __future__ import annotations


from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import lstsq, svd
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.functions import relu, sqrt
from chainrule.ops.elementwise.logic import eq, ne, where
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import argmax, max, min
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.creation.sampling import randint, randperm
from chainrule.ops.shape.stacking import cat
from chainrule.optim.linear import Data, FitReport, LinearFit, parted, told
from chainrule.optim.optimizer import check_range
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = ["perceptron", "separability", "separability_of_rows"]

_SMALL = 1e-9


@no_grad()
def separability(x: Tensor, y: Tensor, bias: bool = True) -> str:
    """How a hyperplane (through 0 without bias) divides the classes y = -1 and 1 of points x.

    "complete" if it has the classes on its two sides; "quasi" if it can only be had with points of
    some class lying on it; "none" if the classes overlap. The perceptron stops for "complete" alone
    and logistic regression has a maximum of the likelihood for "none" alone.

    >>> from chainrule import optim, tensor
    >>> x = tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> optim.separability(x, tensor([-1, 1, 1, 1])), optim.separability(x, tensor([-1, 1, 1, -1]))
    ('complete', 'none')
    """
    data = Data("separability", x, y, (1,))
    check_signs("separability", data.y)
    return separability_of_rows(data.augmented(bias) * data.y[:, None])


def check_signs(op: str, y: Tensor) -> None:
    """Raises ValueError for labels other than -1 and 1."""
    wrong = y[ne(y * y, 1)]
    if wrong.numel():
        hint = "; use 2 * y - 1 for labels 0 and 1" if bool(eq(y * (y - 1), 0).all()) else ""
        raise ValueError(f"{op}: the labels y must be -1 and 1, found {float(wrong[0])}{hint}")


def separability_of_rows(b: Tensor) -> str:
    """Whether some w has w . b_n > 0 for all rows ("complete"), or >= 0 and not all 0 ("quasi")."""
    u, s, _ = svd(b, full_matrices=False)
    u = u[:, s > s[0] * 1e-12] if float(s[0]) else u[:, :0]
    if not u.shape[1]:
        return "none"
    # Neither the basis nor the lengths of the rows matter.
    length = sqrt(sum(u * u, 1, keepdim=True))
    rows = u / where(length > 0, length, 1.0)
    n, p = rows.shape
    one = ones(1, n, dtype=rows.dtype, device=rows.device)
    target = cat(
        [
            zeros(p, dtype=rows.dtype, device=rows.device),
            ones(1, dtype=rows.dtype, device=rows.device),
        ]
    )
    residual = nonnegative_residual(cat([rows.mT, one]), target)
    if float(min(matmul(rows, -residual[:-1]))) > _SMALL * float(residual[-1]):
        return "complete"
    residual = nonnegative_residual(rows.mT, -sum(rows, 0))
    margins = matmul(rows, -residual)
    largest = float(max(margins))
    return "quasi" if largest > _SMALL * n and float(min(margins)) > -1e-6 * largest else "none"


def nonnegative_residual(a: Tensor, b: Tensor) -> Tensor:
    """b - a x for the x >= 0 that makes it smallest (Lawson and Hanson).

    The columns of ``a`` in use are independent, so that only small systems are solved.
    """
    used: list[int] = []
    x: list[float] = []
    residual = b
    for _ in range(3 * a.shape[1] + 30):
        slope = matmul(residual, a)
        if used:
            slope = slope.index_fill(0, tensor(used, dtype=dtypes.int64), -1.0)
        j = int(argmax(slope))
        if float(slope[j]) <= _SMALL * _size(b) or _size(residual) <= 1e-12 * _size(b):
            break
        used, x = [*used, j], [*x, 0.0]
        used, x = _feasible(a, b, used, x)
        if j not in used:  # it came in by rounding alone
            break
        residual = b - matmul(a[:, used], tensor(x, dtype=b.dtype, device=b.device))
    return residual


def _size(v: Tensor) -> float:
    return float(sqrt(sum(v * v)))


def _feasible(
    a: Tensor, b: Tensor, used: list[int], x: list[float]
) -> tuple[list[int], list[float]]:
    """The least-squares multiples of the columns in use, less those that would become negative."""
    while used:
        wanted = lstsq(a[:, used], b).solution.tolist()
        if all(w > 0 for w in wanted):
            return used, wanted
        pairs = list(zip(x, wanted, strict=True))
        t = 1.0
        for old, new in pairs:
            if new <= 0:
                t = sorted([t, old / (old - new) if old > new else 0.0])[0]
        moved = [old + t * (new - old) for old, new in pairs]
        keep = [i for i, (_, new) in enumerate(pairs) if moved[i] > 1e-14 or new > 0]
        if len(keep) == len(used):  # the step was of rounding size: drop the smallest
            keep.remove(sorted(keep, key=lambda i: moved[i])[0])
        used, x = [used[i] for i in keep], [moved[i] for i in keep]
    return used, x


# --- the perceptron -------------------------------------------------------------------------------


class _Pocket:
    """The weights with the fewest mistakes so far."""

    def __init__(self, b: Tensor, w: Tensor):
        self.b, self.w = b, w
        self.mistakes = self.count(w)

    def count(self, w: Tensor) -> int:
        return int(sum(matmul(self.b, w) <= 0))

    def offer(self, w: Tensor) -> None:
        mistakes = self.count(w)
        if mistakes < self.mistakes:
            self.w, self.mistakes = w, mistakes


def _pass(b: Tensor, w: Tensor, lr: float, pocket: _Pocket | None) -> tuple[Tensor, int]:
    """One example after the other: w <- w + lr b_n where w . b_n <= 0."""
    i = updates = 0
    while i < b.shape[0]:
        # All that follow are tried at once, up to the next mistake.
        wrong = (matmul(b[i:], w) <= 0).nonzero()
        if not wrong.numel():
            break
        i += int(wrong[0, 0])
        w = w + lr * b[i]
        i, updates = i + 1, updates + 1
        if pocket is not None:
            pocket.offer(w)
    return w, updates


def _order(n: int, draws: bool, generator: Random) -> Tensor:
    """The examples of a pass: all in a random order, or as many drawn with replacement."""
    return randint(n, (n,), generator=generator) if draws else randperm(n, generator=generator)


@no_grad()
def perceptron(
    x: Tensor,
    y: Tensor,
    lr: float = 1.0,
    max_iter: int = 1000,
    *,
    online: bool = True,
    pocket: bool = False,
    bias: bool = True,
    shuffle: bool | None = None,
    generator: Random = None,
) -> LinearFit:
    """Rosenblatt's rule for labels y = -1 and 1: w <- w + lr y x for each mistake, from w = 0.

    A point on the border, w . x = 0, counts as a mistake; so the rule leaves w = 0. If a hyperplane
    separates the classes it stops after at most (R / margin)^2 updates, else it never would. That
    is decided after ten passes: the rule goes on only if it can succeed, or to fill the pocket.

    Args:
        x: inputs (N, D).
        y: labels (N,).
        lr: the learning rate; from w = 0 it changes only the length of w.
        max_iter: passes over the data at most.
        online: an update after each mistake; otherwise after a pass, for all mistakes together.
        pocket: keep, and return, the weights with the fewest mistakes on all data (Gallant, 1990,
            with a ratchet).
        bias: whether there is an offset; without, the border goes through 0.
        shuffle: whether each pass has a random order of its own, or with a pocket, where this is
            the default, is of N examples drawn at random: a pass over all of them, in any order,
            may never meet good weights.

    >>> from chainrule import optim, problems
    >>> p = problems.boolean("or", signed=True)
    >>> fit = optim.perceptron(p.inputs, p.targets[:, 0])
    >>> fit.report.mistakes, fit.report.reason
    (0, 'every example is on its side of the border')
    """
    check_range("perceptron", closed=False, lr=lr)
    check_range("perceptron", 1, max_iter=max_iter)
    data = Data("perceptron", x, y, (1,))
    check_signs("perceptron", data.y)
    b = data.augmented(bias) * data.y[:, None]
    w = zeros(b.shape[1], dtype=dtypes.float64)
    kept = _Pocket(b, w) if pocket else None
    shuffled = pocket if shuffle is None else shuffle
    passes = updates = 0
    divided = ""
    while passes < max_iter:
        if online:
            order = _order(b.shape[0], pocket, generator) if shuffled else None
            w, changes = _pass(b if order is None else b[order], w, lr, kept)
        else:
            wrong = b[matmul(b, w) <= 0]
            w, changes = w + lr * sum(wrong, 0), int(wrong.shape[0] > 0)
            if kept is not None:
                kept.offer(w)
        passes, updates = passes + 1, updates + changes
        if not changes and (kept is None or not kept.mistakes):
            break
        if passes == 10 or passes == max_iter:
            divided = divided or separability_of_rows(b)
            if divided != "complete" and not pocket:
                break
    w = kept.w if kept is not None else w
    mistakes = int(sum(matmul(b, w) <= 0))
    if not mistakes:
        reason = "every example is on its side of the border"
    elif divided == "complete":
        reason = _more_passes(max_iter, mistakes)
    else:
        reason = _never_stops(passes, mistakes, b.shape[0], pocket)
    loss = float(mean(relu(-matmul(b, w))))
    report = FitReport(passes, not mistakes, reason, loss, updates=updates, mistakes=mistakes)
    weight, offset = parted(w, bias)
    return told("perceptron", data.fit(weight, offset, report))


def _more_passes(max_iter: int, mistakes: int) -> str:
    return (
        f"reached max_iter = {max_iter} with {mistakes} mistakes; the classes are separable, more "
        "passes will succeed"
    )


def _never_stops(passes: int, mistakes: int, examples: int, pocket: bool) -> str:
    hint = "" if pocket else ", use pocket=True for the best weights met"
    return (
        f"the classes are not linearly separable: the rule never stops; after {passes} passes "
        f"{mistakes} of {examples} examples are mistakes{hint}"
    )
