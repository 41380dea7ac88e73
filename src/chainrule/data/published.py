"""Published results on well-known data sets, to compare a result with."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.printing import text_table

__all__ = ["PUBLISHED", "PublishedResult", "PublishedTable"]


@dataclass(frozen=True)
class PublishedResult:
    """A method, its numbers in percent, and who reported them."""

    method: str
    values: tuple[float, ...]
    reference: str


@dataclass(frozen=True)
class PublishedTable:
    """Results on a data set, best or worst first as they were printed.

    ``measures`` names the numbers of each result, ``errors`` says whether they are errors (small is
    good) or accuracies.

    >>> from chainrule import data
    >>> mnist = data.PUBLISHED["mnist"]
    >>> mnist["Linear Classifier"].values
    (7.6,)
    >>> mnist.better_than(0.55)  # an error of 0.55 %
    ['Linear Classifier', 'Non-Linear Classifier', 'Boosted Stumps', 'Support Vector Machines']
    """

    name: str
    source: str
    measures: tuple[str, ...]
    errors: bool
    results: tuple[PublishedResult, ...]

    def __getitem__(self, method: str) -> PublishedResult:
        for result in self.results:
            if result.method == method:
                return result
        known = ", ".join(r.method for r in self.results)
        raise KeyError(f"no method {method!r} among the results on {self.name}: {known}")

    def better_than(self, value: float) -> list[str]:
        """The methods that a result, in percent by the first measure, is better than."""
        sign = 1 if self.errors else -1
        return [r.method for r in self.results if sign * value < sign * r.values[0]]

    def __str__(self) -> str:
        rows = [[r.method, *(f"{v:g}" for v in r.values), r.reference] for r in self.results]
        return text_table(["method", *self.measures, "reference"], rows, rule=True)


def _table(
    name: str, source: str, measures: tuple[str, ...], errors: bool, *rows: tuple[str, str, str]
) -> PublishedTable:
    results = tuple(
        PublishedResult(method, tuple(float(v) for v in values.split()), reference)
        for method, values, reference in rows
    )
    return PublishedTable(name, source, measures, errors, results)


# As course 004 lists them in its appendix D; what it reports of others, not what is best today.
PUBLISHED: dict[str, PublishedTable] = {
    table.name: table
    for table in (
        _table(
            "mnist",
            "004, table D.1",
            ("error %",),
            True,
            ("Linear Classifier", "7.60", "LeCun (1998)"),
            ("Non-Linear Classifier", "3.60", "LeCun (1998)"),
            ("Boosted Stumps", "0.87", "Kegl et al. (2009)"),
            ("Support Vector Machines", "0.56", "DeCoste and Scholkopf (2002)"),
            ("K-Nearest Neighbors", "0.52", "Keysers et al. (2007)"),
            ("Neural Nets", "0.35", "Ciresan et al. (2010)"),
            ("Convolutional Neural Nets", "0.21", "Wan et al. (2013)"),
        ),
        _table(
            "cifar10",
            "004, table D.3",
            ("accuracy %",),
            False,
            ("Fractional Max-Pooling", "96.53", "Graham (2014)"),
            ("The All Convolutional Net", "95.59", "Springenberg et al. (2014)"),
            ("All you need is a good init", "94.16", "Mishkin and Matas (2015)"),
            ("Manual classification", "94", "Karpathy (2011)"),
            ("Mixed, Gated, and Tree Pooling", "93.95", "Lee et al. (2015)"),
        ),
        _table(
            "cifar100",
            "004, table D.4",
            ("accuracy %",),
            False,
            ("Exponential Linear Units", "75.72", "Clevert et al. (2015)"),
            ("Spatially-sparse convolutional networks", "75.7", "Graham (2014)"),
            ("Fractional Max-Pooling", "73.61", "Graham (2014)"),
            ("Scalable Bayesian Optimization", "72.60", "Snoek et al. (2015)"),
            ("Competitive Multi-scale Convolution", "72.44", "Liao and Carneiro (2015)"),
        ),
        _table(
            "imagenet",
            "004, table D.5",
            ("top-1 accuracy %", "top-5 accuracy %"),
            False,
            ("Fixing the train-test resolution discrepancy", "86.4 98.0", "Touvron et al. (2019)"),
            ("Weakly Supervised Pretraining", "85.4 97.6", "Mahajan et al. (2018)"),
            ("RandAugment", "85.0 97.5", "Cubuk et al. (2019)"),
            ("EfficientNet", "84.4 97.2", "Tan and Le (2019)"),
            ("GPipe", "84.3 97.1", "Huang et al. (2018)"),
        ),
    )
}
