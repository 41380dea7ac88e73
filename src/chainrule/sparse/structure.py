"""Where the entries of a sparse tensor stand: shared by all tensors that have the same entries."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.tensor import Size, layout, sparse_coo, sparse_csr
from chainrule.typing import Array

__all__ = ["Structure"]


class Structure:
    """The places of entries, and what follows from them: found when first asked for, and kept.

    ``indices`` (sparse_dim, nnz) has a column for each entry; ``starts``, if the rows are
    compressed, says where each row begins among them. ``is_coalesced`` says that the places are
    different and sorted; where it does not, they may be all the same.
    """

    __slots__ = (
        "__weakref__",
        "_keys",
        "_lines",
        "_pattern",
        "_summed",
        "indices",
        "is_coalesced",
        "shape",
        "starts",
    )

    def __init__(
        self,
        indices: Array,
        shape: tuple[int, ...],
        starts: Array | None = None,
        is_coalesced: bool = False,
    ):
        self.indices = indices
        self.shape = Size(shape)
        self.starts = starts
        self.is_coalesced = is_coalesced
        self._keys: Any = None
        self._lines: dict[int, tuple[Array, int]] = {}
        self._pattern: Any = None
        self._summed: tuple[Structure, Array | None, Array | None] | None = None

    @classmethod
    def of_rows(
        cls, starts: Array, columns: Array, shape: tuple[int, ...], is_coalesced: bool = False
    ) -> Structure:
        """Compressed rows, from where each begins and the columns of the entries."""
        return cls(K.expanded_rows(starts, columns), shape, starts, is_coalesced)

    @property
    def layout(self) -> layout:
        return sparse_coo if self.starts is None else sparse_csr

    @property
    def sparse_dim(self) -> int:
        return self.indices.shape[0]

    @property
    def nnz(self) -> int:
        return self.indices.shape[1]

    @property
    def keys(self) -> Array:
        """A number for each entry that grows with its place in row-major order."""
        if self._keys is None:
            self._keys = K.sparse_keys(self.indices, tuple(self.shape[: self.sparse_dim]))
        return self._keys

    @property
    def pattern(self) -> Any:
        """The pattern of a matrix, which the products are computed over."""
        if self._pattern is None:
            rows, columns = self.indices
            self._pattern = K.SparsePattern(rows, columns, tuple(self.shape))
        return self._pattern

    def lines(self, dim: int) -> tuple[Array, int]:
        """For each entry the number of the line along a sparse dimension that it stands on, of
        those with an entry, and how many there are."""
        if dim not in self._lines:
            others = [d for d in range(self.sparse_dim) if d != dim]
            shape = tuple([self.shape[d] for d in others])
            group, first = K.entries_by_key(K.sparse_keys(self.indices[others], shape), True)
            self._lines[dim] = group, len(first)
        return self._lines[dim]

    def summed(self) -> tuple[Structure, Array | None, Array | None]:
        """The structure with every place once and sorted; for each of its own entries the number
        of that place, and for each place its first entry (None and None: they are the same)."""
        if self._summed is None:
            found = None if self.is_coalesced else K.entries_by_key(self.keys)
            if found is None:
                self._summed = (self._with_places_known(), None, None)
            else:
                group, first = found
                self._summed = (self.at(first), group, first)
        return self._summed

    def _with_places_known(self) -> Structure:
        """The same places, which are known to be different and sorted."""
        if self.is_coalesced:
            return self
        out = Structure(self.indices, self.shape, self.starts, True)
        out._keys, out._pattern = self._keys, self._pattern
        return out

    def at(self, entries: Array) -> Structure:
        """The places of some entries, which are different and in the order of the places."""
        indices = self.indices[:, entries]
        starts = None
        if self.starts is not None:
            starts = K.compressed_rows(indices[0], self.shape[0])
        out = Structure(indices, self.shape, starts, True)
        out._keys = self.keys[entries]
        return out

    def compressed(self) -> Structure:
        """A matrix with coalesced entries, its rows compressed."""
        if self.starts is not None:
            return self
        starts = K.compressed_rows(self.indices[0], self.shape[0])
        out = Structure(self.indices, self.shape, starts, self.is_coalesced)
        out._keys, out._pattern = self._keys, self._pattern
        return out

    def with_coordinates(self) -> Structure:
        """The same places in coordinates."""
        if self.starts is None:
            return self
        out = Structure(self.indices, self.shape, None, self.is_coalesced)
        out._keys, out._pattern = self._keys, self._pattern
        return out

    def permuted(self, dims: tuple[int, ...]) -> Structure:
        """The places with their dimensions in another order, in coordinates."""
        shape = [self.shape[d] for d in dims] + list(self.shape[self.sparse_dim :])
        out = Structure(self.indices[list(dims)], tuple(shape))
        if dims == (1, 0) and len(self.shape) == 2:
            out._pattern = self.pattern.transposed
        return out

    def equals(self, other: Structure) -> bool:
        """Whether the entries of both stand at the same places in the same order."""
        if self is other:
            return True
        return (
            self.shape == other.shape
            and self.indices.shape == other.indices.shape
            and bool((self.indices == other.indices).all())
        )
