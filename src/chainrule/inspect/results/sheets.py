"""What a network is given and gives back: samples, augmented pictures, reconstructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.results.pictures import images_of, show_picture
from chainrule.inspect.results.predictions import outputs_of
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.shape.stacking import stack
from chainrule.printing import text_table
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "AugmentationSheet",
    "DataSheet",
    "Reconstructions",
    "augmentation_sheet",
    "data_sheet",
    "reconstructions",
]

BINS = 20


# --- samples --------------------------------------------------------------------------------------


@dataclass(repr=False, eq=False)
class DataSheet(Result):
    """Samples of a dataset, a few of each class, and how many of each there are.

    ``samples`` are pictures (or rows of a table), ``labels`` theirs and ``indices`` their places in
    the data. ``counts`` is the number of samples of each class. Of a table ``columns`` has the
    names, ``values`` the whole columns.
    """

    samples: Tensor
    labels: list[str]
    indices: list[int]
    counts: dict[str, int]
    columns: list[str]
    values: Tensor | None
    _known: list[str]

    def __str__(self) -> str:
        total = sum(self.counts.values()) or (0 if self.values is None else len(self.values))
        lines = []
        if self.values is not None:
            low, high = self.values.amin(0).tolist(), self.values.amax(0).tolist()
            mean = self.values.mean(0).tolist()
            spread = self.values.std(0, correction=min(1, len(self.values) - 1)).tolist()
            rows = [
                [name, *(f"{v:.4g}" for v in (low[j], high[j], mean[j], spread[j]))]
                for j, name in enumerate(self.columns)
            ]
            lines.append(
                text_table(["column", "lowest", "highest", "mean", "spread"], rows, left=1)
            )
        else:
            shape = " x ".join(map(str, self.samples.shape[1:]))
            low, high = float(self.samples.min()), float(self.samples.max())
            lines.append(f"pictures of {shape}, values from {low:.4g} to {high:.4g}")
        if self.counts:
            rows = [[name, str(n), f"{n / total:.1%}"] for name, n in self.counts.items()]
            lines.append(text_table(["class", "samples", "share"], rows, left=1))
            few, many = min(self.counts.values()), max(self.counts.values())
            if many >= 10 * few:
                lines.append(
                    f"the largest class has {many / few:.0f} times the samples of the smallest: "
                    "stratify the split, weight the classes, and do not judge by accuracy alone"
                )
        return "\n".join(lines)

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws each picture with its class, or a histogram of each column of a table."""
        if self.values is not None:
            return self._plot_columns(axes, self.values, **style)
        count = len(self.samples)
        made = charts.grid_of_axes(axes, count, self._per_row(count), (1.15, 1.3))
        for i, ax in enumerate(made):
            show_picture(ax, self.samples[i], **style)
            ax.set_title(self.labels[i][:14] if self.labels else f"{self.indices[i]}", fontsize=8)
        return made

    def _per_row(self, count: int) -> int:
        each = count // max(1, len(self.counts))
        whole = self.counts and each * len(self.counts) == count and 3 <= each <= 12
        return each if whole else min(count, 8)

    def _plot_columns(
        self, axes: Sequence[Axes] | None, values: Tensor, **style: Any
    ) -> list[Axes]:
        made = charts.grid_of_axes(axes, len(self.columns), 4, (2.5, 2.0))
        names = list(self.counts) or [""]
        for j, (ax, name) in enumerate(zip(made, self.columns, strict=True)):
            column = values[:, j].tolist()
            parts = (
                [[v for v, own in zip(column, self._known, strict=True) if own == c] for c in names]
                if self.counts
                else [column]
            )
            colors = [charts.COLORS[k % len(charts.COLORS)] for k in range(len(parts))]
            labels = names if self.counts and j == 0 else None
            looks: dict[str, Any] = {"stacked": True, "color": colors, "label": labels} | style
            ax.hist(parts, BINS, **looks)
            ax.set_title(name[:24], fontsize=9)
            ax.tick_params(labelsize=7)
            ax.locator_params(axis="x", nbins=4)
            if labels:
                ax.legend(fontsize=7)
        return made


def _listed(targets: Any) -> list[Any]:
    return targets.tolist() if hasattr(targets, "tolist") else list(targets)


def _samples_of(given: Any) -> tuple[Tensor, list[Any] | None]:
    """Inputs and targets of a dataset whose samples are pairs, or of inputs alone."""
    if isinstance(given, Tensor) or hasattr(given, "__array__"):
        return as_tensor(given), None
    if not hasattr(given, "__len__") or not hasattr(given, "__getitem__") or not len(given):
        raise TypeError(
            "data_sheet: give pictures (N, C, H, W), a table (N, D), or a dataset with samples, "
            f"got {type(given).__name__}"
        )
    if isinstance(given, (tuple, list)) and isinstance(given[0], Tensor) and given[0].ndim < 3:
        raise TypeError(
            "data_sheet: several inputs have no one sheet; give one of them, or a dataset"
        )
    samples = [given[i] for i in range(len(given))]
    if isinstance(samples[0], (tuple, list)):
        labels = [int(s[1]) if isinstance(s[1], Tensor) else s[1] for s in samples]
        return stack([as_tensor(s[0]) for s in samples]), labels
    return stack([as_tensor(s) for s in samples]), None


def _chosen(labels: list[str], names: Sequence[str], per_class: int) -> list[int]:
    """The first few samples of each class."""
    return [
        i for name in names for i in [k for k, own in enumerate(labels) if own == name][:per_class]
    ]


@instrument("V34", "V35", needs=("inputs",))
def data_sheet(
    inputs: Any,
    targets: Any = None,
    *,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    per_class: int = 8,
    count: int = 32,
) -> DataSheet:
    """Samples of the data with their classes, and how many there are of each.

    Args:
        inputs: pictures (N, C, H, W) or (N, H, W), a table (N, D), or a dataset of pairs.
        targets: classes; a dataset has its own.
        classes: names of the classes, by their numbers.
        names: of the columns of a table.
        per_class: how many pictures of each class.
        count: how many, if there are no classes.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> seen = inspect.data_sheet(chainrule.zeros(6, 1, 8, 8), [0, 1, 0, 1, 1, 1], per_class=2)
    >>> seen.indices, seen.counts
    ([0, 2, 1, 3], {'0': 2, '1': 4})
    """
    if per_class < 1 or count < 1:
        raise ValueError(f"data_sheet: needs positive numbers, got {per_class=}, {count=}")
    if names is None and hasattr(inputs, "columns"):
        names = [str(name) for name in inputs.columns]
    values, own = _samples_of(inputs)
    if not len(values):
        raise ValueError("data_sheet: there are no samples")
    given = own if targets is None else _listed(targets)
    if given is not None and len(given) != len(values):
        raise ValueError(f"data_sheet: {len(values)} samples and {len(given)} targets")
    if given is not None and any(isinstance(v, float) and not v.is_integer() for v in given):
        raise ValueError(
            f"data_sheet: targets must be classes, got {given[0]!r}; leave numbers out, or look at "
            "inspect.regression_fit"
        )
    levels = [] if given is None else sorted(set(given))
    if classes is not None and len(classes) < len(levels):
        raise ValueError(f"data_sheet: {len(classes)} names for {len(levels)} classes: {levels}")
    words = {v: str(classes[k] if classes is not None else v) for k, v in enumerate(levels)}
    labels = [words[v] for v in given or []]
    counts = {name: labels.count(name) for name in words.values()}
    table = values.ndim == 2
    if table and not bool(values.isfinite().all()):
        raise ValueError(
            "data_sheet: the table has values that are not finite; impute or drop them"
        )
    pictures = values.double() if table else images_of("data_sheet", values)
    columns = [str(n) for n in names or range(values.shape[1])] if table else []
    if table and len(columns) != values.shape[1]:
        raise ValueError(f"data_sheet: {len(columns)} names for {values.shape[1]} columns")
    indices = (
        _chosen(labels, list(counts), per_class) if labels else list(range(len(values)))[:count]
    )
    shown = stack([pictures[i] for i in indices])
    return DataSheet(
        shown,
        [labels[i] for i in indices] if labels else [],
        indices,
        counts,
        columns,
        values.double() if table else None,
        labels,
    )


# --- augmentation ---------------------------------------------------------------------------------


@dataclass(repr=False, eq=False)
class AugmentationSheet(Result):
    """``changed[name]``: a picture as a transform changed it, several times, beside the
    ``original``. ``change`` is the mean absolute change of a pixel."""

    original: Tensor
    changed: dict[str, Tensor]
    change: dict[str, float]

    def __str__(self) -> str:
        rows = []
        for name, pictures in self.changed.items():
            first = pictures[0]
            differ = any(not bool((p == first).all()) for p in pictures[1:])
            size = " x ".join(map(str, first.shape))
            rows.append([name, size, f"{self.change[name]:.4g}", "yes" if differ else "no"])
        header = ["transform", "size", "change of a pixel", "differs each time"]
        return text_table(header, rows, left=1)

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws a row for each transform: the original, then what the transform makes of it."""
        copies = len(next(iter(self.changed.values())))
        total = len(self.changed) * (copies + 1)
        made = charts.grid_of_axes(axes, total, copies + 1, (1.2, 1.35))
        for r, (name, pictures) in enumerate(self.changed.items()):
            row = made[r * (copies + 1) : (r + 1) * (copies + 1)]
            show_picture(row[0], self.original, **style)
            row[0].set_title("original", fontsize=8)
            for ax, picture in zip(row[1:], pictures, strict=True):
                show_picture(ax, picture, **style)
            row[1].set_title(name[:20], fontsize=8, loc="left")
        return made


@instrument("V36", needs=("image", "transforms"))
def augmentation_sheet(
    image: Any,
    transforms: Callable[[Tensor], Any] | Sequence[Any] | Mapping[str, Any],
    *,
    copies: int = 5,
    seed: int = 0,
) -> AugmentationSheet:
    """What transforms make of a picture, beside the original.

    Args:
        image: one picture (C, H, W) or (H, W).
        transforms: one, several, or several with names.
        copies: how often each is applied, as they differ from time to time.
        seed: of their random numbers.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> seen = inspect.augmentation_sheet(chainrule.rand(1, 4, 4), {"flip": lambda x: x.flip(-1)})
    >>> seen.changed["flip"].shape
    chainrule.Size([5, 1, 4, 4])
    """
    if copies < 1:
        raise ValueError(f"augmentation_sheet: copies must be positive, got {copies}")
    pictures = images_of("augmentation_sheet", as_tensor(image))
    if len(pictures) != 1:
        raise ValueError(
            f"augmentation_sheet: expected one picture, got {len(pictures)}; choose one: images[0]"
        )
    original = pictures[0]
    named = _transforms(transforms)
    changed: dict[str, Tensor] = {}
    change: dict[str, float] = {}
    with fork_rng():
        manual_seed(seed)
        for name, transform in named.items():
            made = [as_tensor(transform(original)).detach() for _ in range(copies)]
            if any(m.ndim != 3 for m in made):
                raise ValueError(
                    f"augmentation_sheet: {name} makes {tuple(made[0].shape)} of a picture "
                    "(C, H, W)"
                )
            if any(m.shape != made[0].shape for m in made):
                raise ValueError(
                    f"augmentation_sheet: {name} makes pictures of different sizes; put a resize "
                    "or a crop behind it"
                )
            changed[name] = stack(made)
            same = made[0].shape == original.shape
            gap = (changed[name].double() - original.double()).abs().mean() if same else math.nan
            change[name] = float(gap)
    return AugmentationSheet(original, changed, change)


def _transforms(given: Any) -> dict[str, Callable[[Tensor], Any]]:
    if isinstance(given, Mapping):
        named = {str(name): t for name, t in given.items()}
    else:
        many = list(given) if isinstance(given, (list, tuple)) else [given]
        named = {}
        for t in many:
            name = getattr(t, "__name__", type(t).__name__)
            same = sum(n.split(" (")[0] == name for n in named)
            named[f"{name} ({same + 1})" if same else name] = t
    if not named or not all(map(callable, named.values())):
        raise TypeError("augmentation_sheet: transforms must be functions of a picture")
    return named


# --- reconstructions ------------------------------------------------------------------------------


@dataclass(repr=False, eq=False)
class Reconstructions(Result):
    """Pictures, what a network makes of them, and the mean squared error of each."""

    originals: Tensor
    reconstructed: Tensor
    errors: list[float]
    baseline: float

    def __str__(self) -> str:
        mean = math.fsum(self.errors) / len(self.errors)
        rows = [
            ["pictures", str(len(self.errors))],
            ["mean squared error", f"{mean:.4g}"],
            ["worst", f"{max(self.errors):.4g} (picture {self.errors.index(max(self.errors))})"],
            ["of the mean picture", f"{self.baseline:.4g}"],
        ]
        text = text_table(["reconstructions", ""], rows)
        if mean >= self.baseline > 0:
            text += (
                "\nno better than the mean picture: train longer, widen the code, or see whether "
                "outputs and pictures have the same range"
            )
        return text

    def plot(
        self, axes: Sequence[Axes] | None = None, *, count: int = 8, **style: Any
    ) -> list[Axes]:
        """Draws originals over reconstructions (two panels a picture)."""
        shown = min(count, len(self.errors))
        made = charts.grid_of_axes(axes, 2 * shown, shown, (1.2, 1.4))
        low, high = float(self.originals.min()), float(self.originals.max())
        for i in range(shown):
            show_picture(made[i], self.originals[i], (low, high), **style)
            made[i].set_title(f"original {i}", fontsize=8)
            show_picture(made[shown + i], self.reconstructed[i], (low, high), **style)
            made[shown + i].set_title(f"error {self.errors[i]:.2g}", fontsize=8)
        return made


@instrument("V37", needs=("model", "inputs"))
def reconstructions(
    model: Any, inputs: Any, *, size: Sequence[int] | None = None
) -> Reconstructions:
    """Pictures over what an autoencoder makes of them, with the error of each.

    Args:
        model: a network whose first output has as many numbers as its input.
        inputs: pictures (N, C, H, W), or rows of pixels (N, D).
        size: (C, H, W) or (H, W) of the pictures, for rows; by default a square, if D is one.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> inspect.reconstructions(nn.Identity(), chainrule.rand(3, 1, 4, 4)).errors
    [0.0, 0.0, 0.0]
    """
    x = as_tensor(inputs).detach()
    made, _ = outputs_of("reconstructions", model, x)
    if not x.numel() or made.numel() != x.numel():
        raise ValueError(
            f"reconstructions: the network makes {tuple(made.shape)} of {tuple(x.shape)}; both "
            "must have the same number of values"
        )
    if not bool(x.isfinite().all()) or not bool(made.isfinite().all()):
        raise ValueError(
            "reconstructions: pictures or what the network makes of them are not finite; find "
            "where this comes from with inspect.autopsy"
        )
    shape = _picture_size(x, size)
    originals = x.reshape(len(x), *shape)
    reconstructed = made.reshape(len(x), *shape)
    flat = originals.reshape(len(x), -1).double()
    errors = ((reconstructed.reshape(len(x), -1).double() - flat) ** 2).mean(1).tolist()
    baseline = float(((flat - flat.mean(0)) ** 2).mean())
    return Reconstructions(originals, reconstructed, errors, baseline)


def _picture_size(x: Tensor, size: Sequence[int] | None) -> tuple[int, ...]:
    if size is not None:
        shape = tuple(size) if len(size) == 3 else (1, *size)
    elif x.ndim == 4:
        shape = tuple(x.shape[1:])
    elif x.ndim == 3:
        shape = (1, *x.shape[1:])
    else:
        side = math.isqrt(x.numel() // len(x))
        shape = (1, side, side)
    if math.prod(shape) * len(x) != x.numel():
        raise ValueError(
            f"reconstructions: rows of {x.numel() // len(x)} numbers are no square picture; give "
            "size=(H, W)"
        )
    return shape
