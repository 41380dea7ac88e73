"""Entropies of distributions over finitely many outcomes, in any base.

Probabilities along ``dim`` (by default the last dimension) add up to 1. Tables of two or more
variables have a dimension for each. All functions are differentiable by the probabilities; at an
outcome of probability 0 the slope of an entropy is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.graph import Box
from chainrule.ops.elementwise.functions import log, xlogy
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Dims

__all__ = [
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "joint_entropy",
    "kl_divergence",
    "log_base",
    "mutual_information",
    "self_information",
]


def log_base(op: str, base: float) -> float:
    """ln base: what nats are divided by."""
    if not 0 < base < math.inf or base == 1:
        raise ValueError(f"{op}: base must be a positive number other than 1, got {base}")
    return math.log(base)


def _floating(op: str, p: ArrayLike) -> Tensor:
    t = p if isinstance(p, Tensor) else as_tensor(p)
    if t.dtype.is_complex:
        raise TypeError(f"{op}: probabilities are real numbers, got {t.dtype}")
    return t if t.dtype.is_floating_point else cast(t, dtypes.get_default_dtype())


def _is_plain(t: Tensor) -> bool:
    """Whether it holds numbers to look at: not while a transformation runs through it."""
    return not isinstance(t.array, Box)


def _distribution(op: str, p: ArrayLike, dim: Dims) -> Tensor:
    """Probabilities that are not negative and add up to 1 over some dimensions."""
    t = _floating(op, p)
    if t.ndim == 0:
        raise ValueError(f"{op}: expected probabilities along a dimension, got a single number")
    if _is_plain(t):
        values = t.detach()
        if not bool((values >= 0).all()):
            raise ValueError(f"{op}: probabilities must not be negative or NaN")
        off = float((sum(values, dim) - 1).abs().max()) if values.numel() else 1.0
        if off > 1e-4:
            raise ValueError(
                f"{op}: probabilities must add up to 1 over dimension {dim}, they miss it by "
                f"{off:.3g}; divide them by their sum"
            )
    return t


def _all_dims(t: Tensor) -> tuple[int, ...]:
    return tuple(range(t.ndim))


def self_information(p: ArrayLike, base: float = math.e) -> Tensor:
    """-log_b p: the surprise at an event of probability p, elementwise.

    It is 0 at p = 1, infinite at p = 0, and adds up for independent events.

    >>> from chainrule import information, tensor
    >>> information.self_information(tensor([1.0, 0.5, 0.125]), base=2)
    tensor([0., 1., 3.])
    """
    scale = log_base("self_information", base)
    t = _floating("self_information", p)
    if _is_plain(t) and not bool(((t.detach() >= 0) & (t.detach() <= 1)).all()):
        raise ValueError("self_information: a probability lies between 0 and 1")
    return 0.0 - log(t) / scale


def entropy(p: ArrayLike, base: float = math.e, dim: int = -1) -> Tensor:
    """H = -sum p log_b p: the mean self-information of an outcome.

    >>> from chainrule import information, tensor
    >>> information.entropy(tensor([0.5, 0.25, 0.25]), base=2)
    tensor(1.5000)
    """
    scale = log_base("entropy", base)
    t = _distribution("entropy", p, dim)
    return -sum(xlogy(t, t), dim) / scale


def joint_entropy(joint: ArrayLike, base: float = math.e) -> Tensor:
    """H(X, Y, ...) of a table of probabilities, one dimension for each variable."""
    scale = log_base("joint_entropy", base)
    t = _distribution("joint_entropy", joint, None)
    return -sum(xlogy(t, t)) / scale


def conditional_entropy(
    joint: ArrayLike, given: int | Sequence[int] = 0, base: float = math.e
) -> Tensor:
    """H(Y|X) = E_x[H(Y|x)]: what is left to learn once the variables ``given`` are known.

    By default X is the variable of the rows, dimension 0. It is not negative, and
    H(X, Y) = H(X) + H(Y|X).

    >>> from chainrule import information, tensor
    >>> information.conditional_entropy(tensor([[0.5, 0.0], [0.25, 0.25]]), base=2)
    tensor(0.5000)
    """
    scale = log_base("conditional_entropy", base)
    t = _distribution("conditional_entropy", joint, None)
    rest = _others("conditional_entropy", t, given)
    known = sum(t, rest, keepdim=True)
    return (sum(xlogy(known, known)) - sum(xlogy(t, t))) / scale


def _others(op: str, t: Tensor, dims: int | Sequence[int]) -> tuple[int, ...]:
    """The dimensions of a table other than some, of which both must be there."""
    chosen = [dims] if isinstance(dims, int) else list(dims)
    wrong = [d for d in chosen if not -t.ndim <= d < t.ndim]
    if wrong:
        raise IndexError(f"{op}: a table of {t.ndim} variables has no dimension {wrong[0]}")
    taken = {d % t.ndim for d in chosen}
    rest = tuple(d for d in _all_dims(t) if d not in taken)
    if not rest or not taken:
        raise ValueError(
            f"{op}: expected a table of two variables or more, some given and some not; got shape "
            f"{tuple(t.shape)} and the dimensions {sorted(taken)}"
        )
    return rest


def cross_entropy(p: ArrayLike, q: ArrayLike, base: float = math.e, dim: int = -1) -> Tensor:
    """-sum p log_b q: the mean surprise of who believes in q while p is true.

    It is the entropy of p and the divergence of q from p, added. Infinite where q is 0 and p not.
    For logits and labels as in training see ``nn.functional.cross_entropy``.
    """
    scale = log_base("cross_entropy", base)
    a, b = _pair("cross_entropy", p, q, dim)
    return -sum(xlogy(a, b), dim) / scale


def kl_divergence(p: ArrayLike, q: ArrayLike, base: float = math.e, dim: int = -1) -> Tensor:
    """D(p || q) = sum p log_b (p / q): not negative, and zero only where p and q are the same.

    Infinite if an outcome is possible under p and not under q.

    >>> from chainrule import information, tensor
    >>> information.kl_divergence(tensor([1.0, 0.0]), tensor([0.5, 0.5]), base=2)
    tensor(1.)
    >>> information.kl_divergence(tensor([0.5, 0.5]), tensor([1.0, 0.0]), base=2)
    tensor(inf)
    """
    scale = log_base("kl_divergence", base)
    a, b = _pair("kl_divergence", p, q, dim)
    return sum(xlogy(a, a) - xlogy(a, b), dim) / scale


def _pair(op: str, p: ArrayLike, q: ArrayLike, dim: int) -> tuple[Tensor, Tensor]:
    a, b = _distribution(op, p, dim), _distribution(op, q, dim)
    if a.shape[dim] != b.shape[dim]:
        raise RuntimeError(
            f"{op}: expected two distributions over the same outcomes, got {a.shape[dim]} and "
            f"{b.shape[dim]} of them"
        )
    return a, b


def mutual_information(
    joint: ArrayLike, first: int | Sequence[int] = 0, base: float = math.e
) -> Tensor:
    """I(X; Y) = H(Y) - H(Y|X) = H(X) - H(X|Y) = D(p(x, y) || p(x) p(y)).

    X are the variables of the dimensions ``first``, Y all others. It is 0 exactly if they are
    independent, and at most H(X), which it is if Y determines X.

    >>> from chainrule import information, tensor
    >>> information.mutual_information(tensor([[0.5, 0.0], [0.0, 0.5]]), base=2)
    tensor(1.)
    """
    scale = log_base("mutual_information", base)
    t = _distribution("mutual_information", joint, None)
    rest = _others("mutual_information", t, first)
    own = tuple(d for d in _all_dims(t) if d not in rest)
    x, y = sum(t, rest), sum(t, own)
    return (sum(xlogy(t, t)) - sum(xlogy(x, x)) - sum(xlogy(y, y))) / scale
