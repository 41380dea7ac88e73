"""Samples in a sparse matrix of SciPy, of which some rows at a time are made dense."""

from __future__ import annotations

from typing import Any

from chainrule.backend import dtypes
from chainrule.data.dataset import Dataset, Indices, rows, whole_tensors
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import as_tensor
from chainrule.tensor import Tensor

__all__ = ["RowsDataset", "Samples", "SparseRows", "is_sparse", "samples", "some"]


def is_sparse(x: object) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    return hasattr(x, "toarray") and hasattr(x, "tocsr")


class SparseRows:
    """The rows of a matrix in compressed rows: ``rows[3:7]`` is a dense tensor of four of them."""

    def __init__(self, matrix: Any, dtype: dtypes.dtype):
        self.matrix, self.dtype = matrix, dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.matrix.shape

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def __getitem__(self, index: Indices) -> Tensor:
        chosen = index.numpy() if isinstance(index, Tensor) else index
        return cast(as_tensor(self.matrix[chosen].toarray()), self.dtype)

    def part(self, index: Tensor) -> SparseRows:
        """Some of the samples, as sparse as they were."""
        return SparseRows(self.matrix[index.numpy()], self.dtype)

    def dense(self) -> Tensor:
        """All of them, for what needs them at once."""
        return self[:]


Samples = Tensor | SparseRows


def samples(x: Any, dtype: dtypes.dtype) -> Samples:
    """An array as a tensor, a sparse matrix as its rows."""
    return SparseRows(x, dtype) if is_sparse(x) else cast(as_tensor(x), dtype)


def some(x: Samples, index: Tensor) -> Samples:
    """Some of the samples."""
    return x.part(index) if isinstance(x, SparseRows) else x[index]


class RowsDataset(Dataset[tuple[Tensor, ...]]):
    """Samples side by side, of which batches are dense."""

    def __init__(self, *parts: Samples):
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple([part[0] for part in self.take(slice(index, index + 1))])

    def take(self, indices: Indices) -> tuple[Tensor, ...]:
        """A batch."""
        return tuple(
            [
                part[indices] if isinstance(part, SparseRows) else rows(part, indices)
                for part in self.parts
            ]
        )

    def whole(self) -> tuple[Tensor, ...] | None:
        """The tensors whose rows ``take`` takes; None where some are sparse."""
        return whole_tensors(self.parts)
