"""Small real tables that come with the package."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib import resources

from chainrule.data.table import Table
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["EMBEDDED", "EmbeddedTable", "embedded"]


@dataclass(frozen=True)
class EmbeddedTable:
    """A table with its target, its task, and where it comes from.

    >>> from chainrule import data
    >>> iris = data.embedded("iris")
    >>> len(iris.table), iris.target, iris.task
    (150, 'species', 'classification')
    """

    name: str
    target: str
    task: str
    description: str
    source: str
    image_shape: tuple[int, ...] = ()  # of each row, for pictures

    @property
    def table(self) -> Table:
        """The table itself, read when asked for."""
        file = resources.files("chainrule.data") / "tables" / f"{self.name}.csv.gz"
        text = gzip.decompress(file.read_bytes()).decode()
        return Table.from_text(text, ",", self.name)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """(x, y): the columns of numbers as they are, and class indices or numbers.

        >>> from chainrule import data
        >>> x, y = data.embedded("digits").tensors()
        >>> x.shape, y.shape
        (chainrule.Size([1797, 64]), chainrule.Size([1797]))
        """
        table = self.table
        columns = [c.values for c in table.without(self.target)]
        x = tensor([list(row) for row in zip(*columns, strict=True)])
        values = table[self.target].values
        if self.task == "regression":
            return x, tensor(values)
        place = {v: i for i, v in enumerate(sorted(set(values)))}
        return x, tensor([place[v] for v in values])


_UCI = "UCI Machine Learning Repository, CC BY 4.0"
EMBEDDED = {
    t.name: t
    for t in (
        EmbeddedTable(
            "iris",
            "species",
            "classification",
            "150 flowers of three species of iris, four measurements in cm",
            f"R. A. Fisher, 1936; {_UCI}",
        ),
        EmbeddedTable(
            "wine",
            "cultivar",
            "classification",
            "178 wines of three cultivars, 13 chemical measurements",
            f"S. Aeberhard and M. Forina, 1992; {_UCI}",
        ),
        EmbeddedTable(
            "breast_cancer",
            "diagnosis",
            "classification",
            "569 tumors, benign or malignant, 30 measurements of cell nuclei",
            f"W. Wolberg, O. Mangasarian, N. Street and W. Street, 1995; {_UCI}",
        ),
        EmbeddedTable(
            "digits",
            "digit",
            "classification",
            "1,797 handwritten digits as pictures of 8 by 8 pixels with 17 levels of gray",
            f"E. Alpaydin and C. Kaynak, 1998 (the test part); {_UCI}",
            (8, 8),
        ),
        EmbeddedTable(
            "diabetes",
            "progression",
            "regression",
            "442 patients, ten measurements, and the progression of the disease after a year",
            "B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least Angle Regression, 2004",
        ),
        EmbeddedTable(
            "linnerud",
            "Weight",
            "regression",
            "20 men: three exercises, pulse, waist and weight",
            "A. C. Linnerud, in M. Tenenhaus, La regression PLS, 1998",
        ),
    )
}


def embedded(name: str) -> EmbeddedTable:
    """One of the tables in the package, by name."""
    if name not in EMBEDDED:
        raise ValueError(f"there is no embedded table {name!r}; there are {sorted(EMBEDDED)}")
    return EMBEDDED[name]
