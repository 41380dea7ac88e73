"""A symmetric matrix over the parameters of a model that is known by its products with vectors.

Its blocks, diagonal, trace, eigenvalues and the density of its spectrum come from products; the
matrix itself is formed only if it is asked for and fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack, overload

from chainrule.autograd.nested import flatten, unflatten
from chainrule.autograd.rows import for_rows, for_units, map_rows
from chainrule.autograd.traced import Traced
from chainrule.backend import K, dtypes
from chainrule.curvature.estimates import (
    Estimate,
    hutch_plus_plus,
    hutchinson_diagonal,
    hutchinson_trace,
)
from chainrule.curvature.memory import check_matrix
from chainrule.curvature.parameters import Model, arguments, as_function, paths, ravel
from chainrule.nn.module.names import Where, select_names
from chainrule.curvature.spectrum import (
    Eigenpairs,
    SpectralDensity,
    lanczos_eigenpairs,
    spectral_density,
)
from chainrule.ops.core.recording import edge_of
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import arange
from chainrule.ops.linalg.decompositions import eigvalsh
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor
from chainrule.typing import Inputs, Nested, Random

__all__ = ["CurvatureMatrix", "unit_vectors"]

INSTEAD = (
    "Use products with vectors: diagonal() or estimate_diagonal(), eigenvalues() (Lanczos), "
    "estimate_trace(), spectral_density(); or a part of the matrix, with where= or block()"
)


class _Lanczos(TypedDict, total=False):
    tolerance: float
    max_products: int | None
    generator: Random


class CurvatureMatrix:
    """A symmetric matrix over parameters, known by its products: the base of Hessian and its kin.

    Args:
        model: a module, or a function f(params, *inputs).
        inputs: a tensor, or a tuple with one entry for each argument.
        params: the parameters, if not those of the module.
        where: a name, a pattern or several of the parameters that are meant; all unless given.
        chunk_size: the number of products made together; unless given, as many as fit.
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        params: Nested | None,
        where: Where,
        chunk_size: int | None,
    ):
        self.op = type(self).__name__
        if chunk_size is not None and chunk_size <= 0:
            raise ValueError(
                f"{self.op}: chunk_size should be None or greater than 0, got {chunk_size}"
            )
        self.chunk_size = chunk_size
        function, given = as_function(model, params)
        leaves, structure = flatten(given)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise TypeError(f"{self.op}: parameters must be Tensors, got {leaf!r}")
        every = dict(zip(paths(given), [clone(p.detach()) for p in leaves], strict=True))
        others = _shared_names(model)
        known = [[name, *others.get(name, [])] for name in every]
        self.names = [known[i][0] for i in select_names(self.op, known, where)]
        chosen = {name: every[name] for name in self.names}
        #: The parameters, a tree like those given; with ``where`` a dict of those that are meant.
        self.params = unflatten(list(chosen.values()), structure) if where is None else chosen
        if not chosen or sum(p.numel() for p in chosen.values()) == 0:
            raise ValueError(f"{self.op}: there are no parameters")

        def call(values: dict[str, Tensor], *inputs: Any) -> Any:
            return function(unflatten([*{**every, **values}.values()], structure), *inputs)

        self._call, self._inputs, self._chosen = call, arguments(inputs), chosen
        vector, self._unravel = ravel(self.params)
        self.dtype = vector.dtype
        self.size = vector.numel()
        stops = [0]
        for p in chosen.values():
            stops.append(stops[-1] + p.numel())
        self._ranges = {
            name: range(a, b) for name, a, b in zip(self.names, stops, stops[1:], strict=False)
        }

    def _trace(self, function: Callable[[Any], Tensor]) -> tuple[list[Tensor], Tensor]:
        """The parameters as leaves of a graph, and a function of the model's output."""
        traced = Traced(
            lambda values: function(self._call(values, *self._inputs)), (self._chosen,), False
        )
        if len(traced.outputs) != 1:
            raise TypeError(f"{self.op}: expected one Tensor, got {len(traced.outputs)} results")
        if edge_of(traced.outputs[0]) is None:
            raise RuntimeError(
                f"{self.op}: the result does not depend on the parameters {self.names[:12]}; it "
                "must be computed from them with gradients enabled (no no_grad, no detach)"
            )
        return traced.inputs, traced.outputs[0]

    def output(self, params: Nested, *inputs: object) -> Any:
        """What the model makes of other inputs, with a tree like :attr:`params`."""
        return self._call(dict(zip(self.names, flatten(params)[0], strict=True)), *inputs)

    def _multiply_one(self, v: Tensor) -> Tensor:
        """The matrix times a vector (W)."""
        raise NotImplementedError

    def _at_once(self) -> int:
        raise NotImplementedError

    # --- products and parts -----------------------------------------------------------------------

    def by_name(self, vector: Tensor) -> Any:
        """A vector with an entry for each parameter, as a tree like the parameters."""
        return self._unravel(vector)

    @overload
    def product(self, v: Tensor) -> Tensor: ...
    @overload
    def product(self, v: Nested) -> Any: ...
    def product(self, v: Nested) -> Any:
        """The matrix times a vector, which is one tensor (W) or a tree like the parameters."""
        if isinstance(v, Tensor) and tuple(v.shape) == (self.size,):
            return self._multiply_one(v)
        flat, _ = ravel(v)
        shapes = [tuple(x.shape) for x in flatten(v)[0]]
        expected = [tuple(p.shape) for p in self._chosen.values()]
        if shapes != expected:
            raise RuntimeError(
                f"{self.op}: expected a vector of {self.size} elements or tensors of the shapes "
                f"{expected}, got {shapes}"
            )
        return self.by_name(self._multiply_one(flat))

    def multiply(self, rows: Tensor) -> Tensor:
        """Each row of (S, W) times the matrix, in chunks."""
        return map_rows(self._multiply_one, rows, self._at_once())

    def matrix(self, where: Where = None, columns: Where = None) -> Tensor:
        """The matrix (W, W), or the part of it with some parameters' rows (and columns).

        ``where`` is a name or pattern as above. The columns are those of the same parameters,
        unless others are asked for.
        """
        rows = self._indices(where)
        across = rows if columns is None else self._indices(columns)
        check_matrix(f"{self.op}.matrix", len(rows), len(across), self.dtype, INSTEAD)
        if len(across) < len(rows):  # a product for each index of the shorter side
            return self._part(across, rows).mT
        return self._part(rows, across)

    def block(self, row: str, column: str | None = None) -> Tensor:
        """The block of two parameters by name (of one with itself): (*P, *Q)."""
        shapes = []
        for name in (row, row if column is None else column):
            if name not in self._chosen:
                raise KeyError(
                    f"{self.op}: there is no parameter named {name!r}; there are "
                    f"{', '.join(self.names[:12])}"
                )
            shapes.append(tuple(self._chosen[name].shape))
        return reshape(self.matrix([row], [column or row]), (*shapes[0], *shapes[1]))

    def _indices(self, where: Where) -> list[int]:
        chosen = select_names(self.op, [[name] for name in self.names], where)
        return [i for k in chosen for i in self._ranges[self.names[k]]]

    def _part(self, rows: list[int], columns: list[int]) -> Tensor:
        everything = len(columns) == self.size

        def row(unit: Tensor) -> Tensor:
            product = self._multiply_one(unit)
            return product if everything else product[columns]

        if len(rows) == self.size:
            return for_units(row, (self.size,), self.dtype.array_dtype, self._at_once())

        def units(start: int, stop: int) -> Tensor:
            return unit_vectors(rows[start:stop], self.size, self.dtype)

        return for_rows(row, units, len(rows), self._at_once())

    # --- what the matrix says ---------------------------------------------------------------------

    def diagonal(self) -> Any:
        """The diagonal, exact, as a tree like the parameters: a product for each parameter."""

        def entry(unit: Tensor) -> Tensor:
            return sum_over(unit * self._multiply_one(unit))

        dtype = self.dtype.array_dtype
        return self.by_name(for_units(entry, (self.size,), dtype, self._at_once()))

    def estimate_diagonal(self, samples: int = 100, *, generator: Random = None) -> Estimate:
        """Hutchinson's estimate of the diagonal with its standard error, each a tree."""
        found = hutchinson_diagonal(
            self.multiply,
            self.size,
            samples,
            self.dtype,
            generator=generator,
            chunk_size=self._at_once(),
        )
        return found._replace(value=self.by_name(found.value), error=self.by_name(found.error))

    def trace(self) -> float:
        """The trace, exact: the sum of the diagonal."""
        return sum(float(sum_over(d)) for d in flatten(self.diagonal())[0])

    def estimate_trace(
        self, samples: int = 100, *, method: str = "hutch++", generator: Random = None
    ) -> Estimate:
        """An estimate of the trace from ``samples`` products, with its standard error.

        ``method`` is "hutchinson", or "hutch++", which is exact on the largest eigenvalues.
        """
        methods = {"hutchinson": hutchinson_trace, "hutch++": hutch_plus_plus}
        if method not in methods:
            raise ValueError(f"{self.op}: method must be one of {[*methods]}, got {method!r}")
        return methods[method](
            self.multiply,
            self.size,
            samples,
            self.dtype,
            generator=generator,
            chunk_size=self._at_once(),
        )

    def eigenvalues(
        self,
        k: int = 1,
        *,
        which: str = "largest",
        tolerance: float = 1e-5,
        max_products: int | None = None,
        generator: Random = None,
    ) -> Eigenpairs:
        """The k largest (or "smallest", or largest in "magnitude") eigenvalues and their vectors.

        By Lanczos' method, see :func:`~chainrule.curvature.lanczos_eigenpairs`; the result says
        how exact they are. :meth:`by_name` takes an eigenvector apart.
        """
        return lanczos_eigenpairs(
            self.multiply,
            self.size,
            k,
            self.dtype,
            which=which,
            tolerance=tolerance,
            max_products=max_products,
            generator=generator,
        )

    def spectral_density(
        self, samples: int = 10, steps: int = 30, *, generator: Random = None
    ) -> SpectralDensity:
        """The density of the eigenvalues, from ``samples * steps`` products."""
        return spectral_density(
            self.multiply, self.size, self.dtype, samples=samples, steps=steps, generator=generator
        )

    def condition_number(
        self, *, damping: float = 0.0, method: str = "exact", **options: Unpack[_Lanczos]
    ) -> float:
        """The largest |eigenvalue| of the matrix + damping I over the smallest (inf if that is 0).

        ``method="exact"`` forms the matrix. ``"lanczos"`` finds the two ends of the spectrum and
        needs a positive definite matrix; its options are those of :meth:`eigenvalues`.
        """
        if method not in ("exact", "lanczos"):
            raise ValueError(f"{self.op}: method must be 'exact' or 'lanczos', got {method!r}")
        if method == "exact":
            if options:
                raise TypeError(f"{self.op}: {[*options]} are options of method='lanczos'")
            sizes = abs(eigvalsh(self.matrix()) + damping)
            low, high = float(sizes.min()), float(sizes.max())
        else:
            high = float(self.eigenvalues(1, **options).values) + damping
            low = float(self.eigenvalues(1, which="smallest", **options).values) + damping
            if low < -1e-3 * abs(high):
                raise ValueError(
                    f"{self.op}: the eigenvalues reach from {low:g} to {high:g}, and products do "
                    "not find the one nearest to zero; use method='exact', more damping, or a "
                    "matrix without negative eigenvalues (GaussNewton)"
                )
        rounding = 10 * self.size * float(K.rounding_error(self.dtype.array_dtype))
        return high / low if low > rounding * high else float("inf")


def unit_vectors(numbers: Sequence[int], size: int, dtype: dtypes.dtype) -> Tensor:
    """The unit vectors with these numbers, in rows."""
    return cast(tensor(list(numbers))[:, None] == arange(size), dtype)


def _shared_names(model: Any) -> dict[str, list[str]]:
    """The further names of the parameters that a module has under several."""
    if not hasattr(model, "modules"):
        return {}
    first: dict[int, str] = {}
    others: dict[str, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        if first.setdefault(id(p), name) != name:
            others.setdefault(first[id(p)], []).append(name)
    return others
