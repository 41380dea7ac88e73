"""What the families share: parameters of one shape and type, probabilities and logits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd.modes import enable_grad
from chainrule.backend import K
from chainrule.backend.limits import finfo
from chainrule.ops.core.promotion import promote, to_floating
from chainrule.ops.creation.patterns import arange, full, tril_indices
from chainrule.ops.creation.sampling import draw, stream
from chainrule.ops.shape.padding import pad
from chainrule.ops.shape.rearrange import broadcast_tensors
from chainrule.tensor import Tensor
from chainrule.typing import Array, ArrayDType, Shape

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

EULER = 0.5772156649015329  # the Euler-Mascheroni constant
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

D = TypeVar("D")


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """The numbers and tensors as tensors of one shape and one floating type.

    >>> import chainrule
    >>> from chainrule.distributions.utils import broadcast_all
    >>> broadcast_all(1, chainrule.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise ValueError(
                f"distributions: parameters must be tensors or numbers, got {type(value).__name__}"
            )
    found = [to_floating(x) for x in promote(*values)]
    places = {x.device for x in values if isinstance(x, Tensor)}
    if len(places) == 1:  # numbers go to where the tensors are
        (place,) = places
        found = [x.to(place) for x in found]
    return tuple(broadcast_tensors(*found))


def exactly_one(family: str, **given: Tensor | float | None) -> tuple[str, Any]:
    """The name and the value of the one parameter that was given of several."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        got = " and ".join(name for name, _ in found) or "none of them"
        raise ValueError(f"{family}: expected exactly one of {', '.join(given)}, got {got}")
    return found[0]


class lazy_property(Generic[D]):
    """An attribute that is computed when first asked for, with its history, and then kept.

    >>> from chainrule.distributions.utils import lazy_property
    >>> class Circle:
    ...     radius = 2.0
    ...
    ...     @lazy_property
    ...     def area(self) -> float:
    ...         return 3 * self.radius**2
    >>> Circle().area
    12.0
    """

    def __init__(self, compute: Callable[[Any], D]):
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, cls: type) -> lazy_property[D]: ...
    @overload
    def __get__(self, owner: object, cls: type) -> D: ...
    def __get__(self, owner: object | None, cls: type) -> lazy_property[D] | D:
        if owner is None:
            return self
        with enable_grad():
            value = self.compute(owner)
        owner.__dict__[self.name] = value
        return value


def sum_rightmost(x: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions, none of them if ``dims`` is 0."""
    return x.reshape(*x.shape[: x.ndim - dims], -1).sum(-1) if dims > 0 else x


# --- limits of a type -----------------------------------------------------------------------------


def eps_of(x: Tensor) -> float:
    """The distance from 1 to the next number of the tensor's type."""
    return finfo(x.dtype).eps


def tiny_of(x: Tensor) -> float:
    """The smallest positive number of the tensor's type with full precision."""
    return finfo(x.dtype).tiny


def _dtype(x: Tensor) -> ArrayDType:
    return x.array.dtype


def standard_exponential(shape: Shape, like: Tensor) -> Tensor:
    """Random numbers with the density exp(-x), of the type of a tensor; never 0."""
    return _drawn(K.random_exponential, shape, like).clamp_min(tiny_of(like))


def standard_cauchy(shape: Shape, like: Tensor) -> Tensor:
    """Random numbers with the density 1 / (pi (1 + x^2)), of the type of a tensor."""
    return _drawn(K.random_cauchy, shape, like)


def _drawn(kernel: Callable[..., Array], shape: Shape, like: Tensor) -> Tensor:
    g, dtype = stream("sample", None), _dtype(like)
    return placed_like(like, draw(tuple(shape), lambda shape: kernel(g, shape, dtype)))


# --- probabilities and logits ---------------------------------------------------------------------


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved inside (0, 1) by a rounding error, so that their logits are finite.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.utils import clamp_probs
    >>> clamp_probs(tensor([0.0, 0.5])).log()
    tensor([-15.9424,  -0.6931])
    """
    eps = eps_of(probs)
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """softmax(logits) over the last dimension, or of two values the probability of 1.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.utils import logits_to_probs
    >>> logits_to_probs(tensor([0.0, 0.0])), logits_to_probs(tensor(0.0), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor(0.5000))
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """log(probs), or of two values log(probs / (1 - probs)); finite, see :func:`clamp_probs`.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.utils import probs_to_logits
    >>> probs_to_logits(tensor([0.5, 0.75]), is_binary=True)
    tensor([0.0000, 1.0986])
    """
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


# --- triangular matrices --------------------------------------------------------------------------


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices (..., D, D), up to the diagonal ``diag``, row by row.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag ({diag}) must lie in [{-n}, {n - 1}]")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The lower triangular matrices with these entries: the inverse of :func:`tril_matrix_to_vec`.

    >>> from chainrule import tensor
    >>> from chainrule.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    length = vec.shape[-1]
    n = next(n for n in itertools.count(max(-diag, diag + 1)) if _entries(n, diag) >= length)
    rows, columns = tril_indices(n, n, diag)
    if len(rows) != length:
        raise ValueError(f"vec_to_tril_matrix: {length} numbers fill no triangle (diag={diag})")
    where = full((n, n), length)  # the others take the zero behind the numbers
    where[rows, columns] = arange(length)
    return pad(vec, (0, 1))[..., where]


def _entries(n: int, diag: int) -> int:
    """How many entries a matrix (n, n) has on and below a diagonal."""
    return sum(min(max(row + 1 + diag, 0), n) for row in range(n))
