"""Tables of vectors: a row for each integer, or the sum, mean or maximum of several rows."""

from __future__ import annotations

from typing import Any, Self

from chainrule.autograd.modes import no_grad
from chainrule.nn.init.tensors import normal_
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.patterns import arange, empty, ones, zeros
from chainrule.ops.elementwise.logic import eq, ne, where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.bags import bag_rows
from chainrule.ops.index.reading import check_range, choose, index_select, integer_index, one_hot
from chainrule.ops.reduce.order import amax
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.reduce.reductions import sum as total
from chainrule.ops.index.replacing import index_add
from chainrule.ops.index.scatter import scatter_reduce
from chainrule.ops.shape.views import expand, reshape, unsqueeze
from chainrule.ops.reduce.sort import bincount, searchsorted, unique
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["Embedding", "EmbeddingBag", "embedding", "embedding_bag", "one_hot"]


# --- one row for each integer ---------------------------------------------------------------------


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """y = weight[x], the rows of ``weight`` (num_embeddings, D) that ``input`` x (*) names: (*, D).

    Row ``padding_idx`` gets no gradient. Rows in use whose norm exceeds ``max_norm`` are first
    shortened to it, in place. ``scale_grad_by_freq`` divides a row's gradient by how often it is
    named. With ``sparse`` the gradient of a weight that is a leaf is a sparse tensor of the rows in
    use, for ``optim.SGD``, ``Adagrad`` and ``SparseAdam``.

    >>> import chainrule
    >>> from chainrule.nn.functional import embedding
    >>> embedding(chainrule.tensor([2, 0]), chainrule.eye(3))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    input = _indices("embedding", input, weight)
    padding_idx = _row("embedding", "padding_idx", padding_idx, weight.shape[0])
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    out = _chosen_rows(weight, input) if sparse else choose(weight, -2, input, "embedding")
    if scale_grad_by_freq:
        fixed = out.detach()
        out = fixed + (out - fixed) / unsqueeze(_frequency(input, weight), -1)
    if padding_idx is not None:
        out = where(unsqueeze(eq(input, padding_idx), -1), out.detach(), out)
    return out


def _chosen_rows(weight: Tensor, input: Tensor) -> Tensor:
    from chainrule.sparse.rows import sparse_rows  # late: few networks have sparse gradients

    check_range("embedding", input, weight.shape[0], 0)
    return sparse_rows(weight, input)


def _indices(op: str, input: Tensor, weight: Tensor) -> Tensor:
    if weight.ndim != 2:
        raise RuntimeError(f"{op}: 'weight' must be 2-D, got shape {tuple(weight.shape)}")
    return integer_index(op, input, among=weight)


def _row(op: str, name: str, row: int | None, rows: int) -> int | None:
    """A row's number counted from the front."""
    if row is not None and not -rows <= row < max(rows, 1):
        raise AssertionError(f"{op}: {name} must be within the {rows} embeddings, got {row}")
    return row if row is None or row >= 0 else row + rows


def _shorten_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Brings the rows in use to at most a norm, as PyTorch: with 1e-7 in the denominator."""
    with no_grad():
        rows = unique(input)
        used = index_select(weight, 0, rows)
        norm = used.norm(norm_type, dim=1, keepdim=True)
        kept = where(norm > max_norm, used * (max_norm / (norm + 1e-7)), used)
        weight.index_copy_(0, rows, kept)


def _frequency(input: Tensor, weight: Tensor) -> Tensor:
    """How often the input names each of its integers."""
    counts = bincount(reshape(input, (-1,)), minlength=weight.shape[0])
    return cast(choose(counts, -1, input, "embedding"), weight.dtype)


class _Table(Module):
    """What Embedding and EmbeddingBag share: the weight and where its padding is."""

    weight: Parameter
    padding_idx: int | None

    def _make(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Tensor | None,
        freeze: bool,
        device: Device | None,
        dtype: DType | None,
    ) -> None:
        name = type(self).__name__
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _row(name, "padding_idx", padding_idx, num_embeddings)
        shape = (num_embeddings, embedding_dim)
        if weight is not None:
            if tuple(weight.shape) != shape:
                raise AssertionError(
                    f"{name}: shape of weight {tuple(weight.shape)} does not match num_embeddings "
                    f"and embedding_dim {shape}"
                )
            self.weight = Parameter(weight, requires_grad=not freeze)
        else:
            self.weight = Parameter(empty(shape, device=device, dtype=dtype))
            self.weight.requires_grad = not freeze
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weight from N(0, 1), with zeros in the row of the padding."""
        normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, *args: Any, **settings: Any
    ) -> Self:
        """A layer with this table of vectors, which is not learned if ``freeze``; the arguments
        after that are the layer's.

        >>> from chainrule import eye, nn
        >>> nn.Embedding.from_pretrained(eye(3), padding_idx=0)
        Embedding(3, 3, padding_idx=0)
        """
        if embeddings.ndim != 2:
            raise AssertionError(
                f"{cls.__name__}: embeddings are expected to be 2-dimensional, got shape "
                f"{tuple(embeddings.shape)}"
            )
        make: Any = cls
        layer = make(*embeddings.shape, *args, _weight=embeddings, **settings)
        layer.weight.requires_grad_(not freeze)
        return layer

    def _shown(self, **also: Any) -> str:
        """The settings that differ from PyTorch's defaults."""
        shown = [str(self.num_embeddings), str(self.embedding_dim)]
        return ", ".join([*shown, *[f"{k}={v}" for k, v in also.items() if v is not None]])


class Embedding(_Table):
    """A learned vector for each integer below ``num_embeddings``: y = weight[x].

    Shape: integers (*) -> (*, embedding_dim).

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: size of each.
        padding_idx: a row that stays as it is (zeros at first).
        max_norm: vectors longer than this are shortened when they are used.
        norm_type: the p of the p-norm for max_norm.
        scale_grad_by_freq: divide a row's gradient by how often it is used in the batch.
        sparse: whether the gradient of the weight is sparse, an entry for each row in use.

    >>> from chainrule import nn, tensor
    >>> nn.Embedding(10, 3)(tensor([[1, 2], [4, 5]])).shape
    chainrule.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        return self._shown(
            padding_idx=self.padding_idx,
            max_norm=self.max_norm,
            norm_type=self.norm_type if self.norm_type != 2 else None,
            scale_grad_by_freq=self.scale_grad_by_freq or None,
            sparse=self.sparse or None,
        )


# --- bags of integers -----------------------------------------------------------------------------


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of ``weight`` that each bag of integers names.

    y[n] = sum over l of per_sample_weights[n, l] * weight[x[n, l]], or their mean or maximum

    ``input`` (N, L) holds N bags of L integers; or it is (L) and bag n begins at ``offsets[n]``
    (with ``include_last_offset`` the last offset is where the last bag ends). The weights count in
    a sum alone and have the shape of ``input``. ``padding_idx`` is left out of every bag. An empty
    bag gives zeros.

    Shape: input (N, L), weight (num_embeddings, D) -> (N, D).

    >>> import chainrule
    >>> from chainrule.nn.functional import embedding_bag
    >>> x, offsets = chainrule.tensor([0, 1, 1, 2]), chainrule.tensor([0, 2])
    >>> embedding_bag(x, chainrule.eye(3), offsets, mode="sum")
    tensor([[1., 1., 0.],
            [0., 1., 1.]])
    """
    _check_bag(input, weight, offsets, mode, per_sample_weights, scale_grad_by_freq)
    input = _indices("embedding_bag", input, weight)
    padding_idx = _row("embedding_bag", "padding_idx", padding_idx, weight.shape[0])
    if not sparse and not scale_grad_by_freq:
        if max_norm is not None:
            _shorten_rows(weight, input, max_norm, norm_type)
            max_norm = None
        starts = None if offsets is None else integer_index("embedding_bag", offsets)
        out = bag_rows(
            weight, input, starts, per_sample_weights, mode, padding_idx, include_last_offset
        )
        if out is not None:
            return out
    if offsets is None and padding_idx is None and input.shape[1]:
        rows = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
        if per_sample_weights is not None:
            rows = rows * unsqueeze(per_sample_weights, -1)
        return _OF_ROWS[mode](rows, 1)
    bags, bag = _bags(input, offsets, include_last_offset)
    flat = reshape(input, (-1,))
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    kept = None if padding_idx is None else ne(flat, padding_idx)
    if include_last_offset:  # what follows the last offset is in no bag
        within = bag < bags
        kept, bag = within if kept is None else kept & within, where(within, bag, 0)
    return _pooled(rows, bag, bags, mode, per_sample_weights, kept)


_OF_ROWS: dict[str, Any] = {"sum": total, "mean": mean, "max": amax}


def _check_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    mode: str,
    weights: Tensor | None,
    scale_grad_by_freq: bool,
) -> None:
    op = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{op}: mode has to be one of sum, mean or max, got {mode!r}")
    if weight.ndim != 2:
        raise ValueError(f"{op}: weight has to be a 2D Tensor, got shape {tuple(weight.shape)}")
    if input.ndim not in (1, 2):
        raise ValueError(
            f"{op}: input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            f"{op}: if input is 2D, then offsets has to be None, as its rows are the bags; got "
            f"offsets {offsets!r}"
        )
    if input.ndim == 1 and (offsets is None or offsets.ndim != 1):
        raise ValueError(f"{op}: offsets has to be a 1D Tensor if input is 1D, got {offsets!r}")
    if weights is not None and weights.shape != input.shape:
        raise ValueError(
            f"{op}: per_sample_weights {tuple(weights.shape)} must have the same shape as input "
            f"{tuple(input.shape)}"
        )
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            f"{op}: per_sample_weights is only supported for mode='sum', got mode={mode!r}"
        )
    if scale_grad_by_freq and mode == "max":
        raise ValueError(f"{op}: max mode does not support scaling the gradient by the frequency")


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[int, Tensor]:
    """How many bags there are, and in which each integer is."""
    if offsets is None:
        bags, each = input.shape
        return bags, arange(bags * each, device=input.device) // max(each, 1)
    n, bags = len(input), len(offsets) - include_last_offset
    numbers = numbers_of(offsets)
    if numbers is not None and len(numbers):
        first, last = int(numbers[0]), int(numbers[-1])
        if first != 0 or last > n or (numbers[1:] < numbers[:-1]).any():
            raise RuntimeError(
                "embedding_bag: offsets must begin with 0, not decrease and not exceed the length "
                f"of input ({n}), got {offsets.tolist()}"
            )
    offsets = integer_index("embedding_bag", offsets)
    return bags, searchsorted(offsets, arange(n, device=input.device), right=True) - 1


def _pooled(
    rows: Tensor, bag: Tensor, bags: int, mode: str, weights: Tensor | None, kept: Tensor | None
) -> Tensor:
    nothing = zeros(bags, rows.shape[1], dtype=rows.dtype, device=rows.device)
    if mode == "max":
        if kept is not None:  # what is left out goes to a bag of its own
            bag = where(kept, bag, bags)
            nothing = zeros(bags + 1, rows.shape[1], dtype=rows.dtype, device=rows.device)
        index = expand(unsqueeze(bag, -1), tuple(rows.shape))
        return scatter_reduce(nothing, 0, index, rows, "amax", include_self=False)[:bags]
    if weights is not None:
        rows = rows * unsqueeze(reshape(weights, (-1,)), -1)
    if kept is not None:
        rows = where(unsqueeze(kept, -1), rows, 0 * rows)
    sums = index_add(nothing, 0, bag, rows)
    if mode == "sum":
        return sums
    counted = (
        ones(len(bag), dtype=rows.dtype, device=rows.device)
        if kept is None
        else cast(kept, rows.dtype)
    )
    count = index_add(zeros(bags, dtype=rows.dtype, device=rows.device), 0, bag, counted)
    return sums / unsqueeze(clamp(count, min=1.0), -1)


class EmbeddingBag(_Table):
    """The mean, sum or maximum of the learned vectors that a bag of integers names.

    y[n] = mean over l of weight[x[n, l]], or their sum or maximum

    Shape: (N, L), or (L) with offsets (N) where the bags begin -> (N, embedding_dim).

    Args:
        num_embeddings, embedding_dim: how many vectors there are, and their size.
        max_norm, norm_type, scale_grad_by_freq, sparse: as of :class:`Embedding`.
        mode: "mean", "sum" or "max".
        include_last_offset: whether the last of the offsets is the end of the last bag.
        padding_idx: a row that is left out of the bags.

    >>> from chainrule import nn, tensor
    >>> nn.EmbeddingBag(10, 3)(tensor([1, 2, 4, 5]), tensor([0, 3])).shape
    chainrule.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return self._shown(
            max_norm=self.max_norm,
            norm_type=self.norm_type if self.norm_type != 2 else None,
            scale_grad_by_freq=self.scale_grad_by_freq or None,
            mode=repr(self.mode),
            padding_idx=self.padding_idx,
        )
