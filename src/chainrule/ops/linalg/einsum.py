"""Sums of products by index names: einsum and tensordot.

Every operand is reduced to distinct labels (diagonals taken, lonely labels summed), then operands
are multiplied two at a time: as a product of matrices over the labels that both have and nobody
needs afterwards, or elementwise if there are none. Derivatives and vmap follow from those steps.
"""

from __future__ import annotations

import functools
import math
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.elementwise.functions import mul
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import canonical_dim, permute, reshape
from chainrule.typing import Sizes, V
from chainrule.tensor import Tensor

__all__ = ["einsum", "tensordot"]

METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

_LETTERS = string.ascii_uppercase + string.ascii_lowercase

Label = Any  # a letter; a negative int for a dimension under the ellipsis; an int in tensordot
Row = tuple[Label, ...]  # the labels of one operand


def einsum(*args: str | Tensor | Sequence[Any]) -> Tensor:
    """Multiplies the operands and sums over the indices that the output does not name.

    ``einsum(equation, *operands)``, or ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` with numbers for
    indices. An index that occurs twice in one operand takes its diagonal, ``...`` stands for
    dimensions that are broadcast, and without ``->`` the output has, in alphabetical order, the
    indices that occur once.

    >>> import chainrule
    >>> x, y = chainrule.ones(2, 3), chainrule.ones(3, 4)
    >>> chainrule.einsum("ij,jk->ik", x, y).shape
    chainrule.Size([2, 4])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum: must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    equation, given = (args[0], args[1:]) if isinstance(args[0], str) else _from_lists(args)
    operands = list(given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given)
    return _plan(equation, tuple([tuple(x.shape) for x in operands]))(operands)


@functools.lru_cache(maxsize=256)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
    labels, output = _parse(equation, shapes)
    return _Plan(labels, shapes, output)


# --- the equation ---------------------------------------------------------------------------------


def _from_lists(args: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The form with lists of numbers, as an equation and its operands."""

    def text(subscripts: Sequence[Any]) -> str:
        for i in subscripts:
            if i is not Ellipsis and not 0 <= i < 52:
                raise ValueError(
                    f"einsum: subscript {i} in a subscript list is not within the range [0, 52)"
                )
        return "".join("..." if i is Ellipsis else _LETTERS[i] for i in subscripts)

    count = len(args) // 2
    equation = ",".join(text(s) for s in args[1 : 2 * count : 2])
    if len(args) % 2:
        equation += "->" + text(args[-1])
    return equation, tuple(args[0 : 2 * count : 2])


def _error(equation: str, message: str) -> RuntimeError:
    return RuntimeError(f"einsum: {message} (equation {equation!r})")


def _subscripts(equation: str, text: str, where: str) -> list[str]:
    """The letters of one term; ``"..."`` for its ellipsis."""
    before, dots, after = text.partition("...")
    letters = [*before, *[dots] * bool(dots), *after]
    for letter in letters:
        if letter == ".":
            raise _error(equation, f"found '.' in {where} that is not part of any ellipsis")
        if letter != "..." and letter not in _LETTERS:
            raise _error(equation, f"invalid subscript {letter!r} in {where}; must be in [a-zA-Z]")
    return letters


def _parse(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Row], Row]:
    """The labels of each operand's dimensions and of the output's."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        which = "fewer" if len(terms) > len(shapes) else "more"
        raise _error(
            equation,
            f"{which} operands were provided than specified: {len(shapes)} for {len(terms)} terms",
        )
    labels = []
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        letters = _subscripts(equation, term, f"operand {i}")
        hidden = len(shape) - len(letters) + 1
        if hidden < 0 if "..." in letters else hidden != 1:
            raise _error(
                equation,
                f"the number of subscripts ({len(letters)}) does not match the number of "
                f"dimensions ({len(shape)}) of operand {i}, of shape {shape}",
            )
        labels.append(_unfold(letters, hidden))
    # Hidden dimensions are counted from the last, so that they line up as in broadcasting.
    hidden = max([-min([x for x in row if isinstance(x, int)], default=0) for row in labels])
    if arrow:
        output = _unfold(_subscripts(equation, right, "the output"), hidden)
    else:
        counts = Counter(x for row in labels for x in row if isinstance(x, str))
        output = (*range(-hidden, 0), *sorted(x for x, count in counts.items() if count == 1))
    for x in output:
        if output.count(x) > 1:
            raise _error(equation, f"output subscript {x} appears more than once in the output")
        if not any(x in row for row in labels):
            raise _error(equation, f"output subscript {x} does not appear in any input operand")
    return labels, output


def _unfold(letters: Sequence[str], hidden: int) -> Row:
    """The letters with the ellipsis as that many numbered labels."""
    return tuple(y for x in letters for y in (range(-hidden, 0) if x == "..." else [x]))


# --- the computation ------------------------------------------------------------------------------


class _Plan:
    """What to do with operands of known shapes: steps, and the labels and shapes that they lead to.

    A plan depends on nothing but labels and shapes, so it is made once and remembered.
    """

    def __init__(self, labels: Sequence[Row], shapes: Sequence[tuple[int, ...]], output: Row):
        self.steps: list[tuple[Callable[..., Any], int, Any]] = []
        self.rows, self.shapes, self.output = list(labels), list(shapes), output
        self.sizes = _sizes(labels, shapes)
        for i in range(len(self.rows)):
            self.make_distinct(i)
        for i in range(len(self.rows)):
            self.sum_lonely(i)
        while len(self.rows) > 1:
            self.contract(*self.cheapest())
        self.arrange(0, output)

    def __call__(self, operands: list[Any]) -> Any:
        for function, i, argument in self.steps:
            if function is matmul or function is mul:
                y = operands.pop(argument)
                operands[i] = function(operands[i], y)
            else:
                operands[i] = function(operands[i], argument)
        return operands[0]

    def change(self, i: int, row: Row, step: Callable[..., Any], argument: Any) -> None:
        """Notes a step that leaves operand i with these labels."""
        self.steps.append((step, i, argument))
        self.rows[i] = row
        self.shapes[i] = tuple([self.sizes[label] for label in row])

    def arrange(self, i: int, order: Row) -> None:
        """The dimensions in another order."""
        row = self.rows[i]
        if row != order:
            self.change(i, order, permute, tuple([row.index(label) for label in order]))

    def reshape(self, i: int, shape: tuple[int, ...]) -> None:
        """Another shape, whatever the labels."""
        if self.shapes[i] != shape:
            self.steps.append((reshape, i, shape))
            self.shapes[i] = shape

    def make_distinct(self, i: int) -> None:
        """Each label once, and none that the operand is constant along (size 1)."""
        row, shape = self.rows[i], self.shapes[i]
        for label in [label for label, count in Counter(row).items() for _ in range(count - 1)]:
            first = row.index(label)
            second = row.index(label, first + 1)
            self.steps.append((_diagonal, i, (first, second)))
            n = shape[first]
            row = (*row[:first], *row[first + 1 : second], *row[second + 1 :], label)
            shape = (*shape[:first], *shape[first + 1 : second], *shape[second + 1 :], n)
        kept = tuple(x for x, n in zip(row, shape, strict=True) if n == self.sizes[x])
        self.rows[i], self.shapes[i] = kept, shape
        self.reshape(i, tuple(self.sizes[label] for label in kept))

    def sum_lonely(self, i: int) -> None:
        """Sums over the labels that nobody else has."""
        needed = {*self.output}.union(*self.rows[:i], *self.rows[i + 1 :])
        lonely = tuple(d for d, label in enumerate(self.rows[i]) if label not in needed)
        if lonely:
            self.change(i, tuple(x for x in self.rows[i] if x in needed), sum, lonely)

    def cheapest(self) -> tuple[int, int]:
        """The pair to multiply next: with the fewest products, then with the smallest result."""

        def cost(pair: tuple[int, int]) -> tuple[int, int]:
            rest = [row for k, row in enumerate(self.rows) if k not in pair]
            union = {*self.rows[pair[0]], *self.rows[pair[1]]}
            kept = union & {*self.output}.union(*rest)
            return math.prod([self.sizes[x] for x in union]), math.prod(
                [self.sizes[x] for x in kept]
            )

        count = len(self.rows)
        return min([(i, j) for j in range(count) for i in range(j)], key=cost)

    def contract(self, i: int, j: int) -> None:
        """Multiplies two operands, and sums over the labels that both have and nobody needs."""
        x, y = self.rows[i], self.rows[j]
        rest = [row for k, row in enumerate(self.rows) if k not in (i, j)]
        needed = {*self.output}.union(*rest)
        batch = tuple(label for label in x if label in y and label in needed)
        summed = tuple(label for label in x if label in y and label not in needed)
        only_x = tuple(label for label in x if label not in y)
        only_y = tuple(label for label in y if label not in x)
        self.arrange(i, batch + only_x + summed)
        self.arrange(j, batch + summed + only_y)
        b, n, m, k = ([self.sizes[x] for x in row] for row in (batch, only_x, only_y, summed))
        if summed:
            self.reshape(i, (*b, math.prod(n), math.prod(k)))
            self.reshape(j, (*b, math.prod(k), math.prod(m)))
            self.shapes[i] = (*b, math.prod(n), math.prod(m))
        else:
            self.reshape(i, (*b, *n, *[1] * len(m)))
            self.reshape(j, (*b, *[1] * len(n), *m))
            self.shapes[i] = (*b, *n, *m)
        self.steps.append((matmul if summed else mul, i, j))
        self.rows[i] = batch + only_x + only_y
        self.reshape(i, (*b, *n, *m))
        del self.rows[j], self.shapes[j]


def _diagonal(x: V, dims: tuple[int, int]) -> V:
    return diagonal(x, 0, *dims)


def _sizes(labels: Sequence[Row], shapes: Sequence[tuple[int, ...]]) -> dict[Label, int]:
    """The size of each label, after checking that they fit."""
    sizes: dict[Label, int] = {}
    for i, (row, shape) in enumerate(zip(labels, shapes, strict=True)):
        own: dict[Label, int] = {}
        for label, n in zip(row, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum: subscript {label} is repeated for operand {i} (shape {shape}) but "
                    f"the sizes don't match, {n} != {own[label]}"
                )
            before = sizes.get(label, 1)
            if n not in (1, before) and before != 1:
                raise RuntimeError(
                    f"einsum: subscript {label} has size {n} for operand {i} (shape {shape}), "
                    f"which does not broadcast with previously seen size {before}"
                )
            sizes[label] = n if before == 1 else before
    return sizes


def tensordot(a: V, b: V, dims: int | Sequence[Sizes] = 2) -> V:
    """The products of two tensors summed over pairs of dimensions.

    ``dims`` is a pair of lists of dimensions of ``a`` and ``b``, or the number of last dimensions
    of ``a`` and first dimensions of ``b``.
    """
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot: expects dims >= 0 and at most the number of dimensions, but got "
                f"dims={dims} for shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        dims = list(range(-dims, 0)), list(range(dims))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(first) != len(second):
        raise RuntimeError(
            f"tensordot: both dimension lists should have same length, got {first} and {second}"
        )
    # Dimensions of ``a`` are labeled 0, 1, ... and the others of ``b`` after them.
    row_a = list(range(a.ndim))
    row_b = list(range(a.ndim, a.ndim + b.ndim))
    for i, j in zip(first, second, strict=True):
        d = canonical_dim("tensordot", i, a.ndim) + a.ndim
        e = canonical_dim("tensordot", j, b.ndim) + b.ndim
        if a.shape[d] != b.shape[e] and 1 not in (a.shape[d], b.shape[e]):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[d]} "
                f"in dim {i} and second has size {b.shape[e]} in dim {j}"
            )
        row_b[e] = row_a[d]
    shared = {*row_a} & {*row_b}
    output = tuple(x for x in row_a + row_b if x not in shared)
    return _Plan((tuple(row_a), tuple(row_b)), (tuple(a.shape), tuple(b.shape)), output)([a, b])
