"""Activations and their slopes, and what they do to the moments of what they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import no_grad
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.nn.activations.moments import as_function, selu_fixed_point, selu_moments
from chainrule.nn.activations.properties import activation_properties
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import linspace
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ActivationCurves", "MomentMap", "activation_curves", "moment_map"]

Activation = str | Callable[..., Tensor]


@dataclass(repr=False, eq=False)
class ActivationCurves(Result):
    """Each activation over ``x``: its ``values``, its exact ``slopes``, and what it is like."""

    x: Tensor
    values: dict[str, Tensor]
    slopes: dict[str, Tensor]
    facts: dict[str, dict[str, Any]]

    def __str__(self) -> str:
        rows = [
            [
                name,
                f["range"],
                f["monotonic"],
                f"{f['largest slope']:.4g}",
                f"{f['slope at zero']:.4g}",
                f["saturates"] or "nowhere",
            ]
            for name, f in self.facts.items()
        ]
        header = ["activation", "range", "monotonic", "largest slope", "slope at 0", "saturates"]
        return text_table(header, rows, rule=True)

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws each activation, and dashed its slope."""
        made = charts.grid_of_axes(axes, len(self.values), 4, (2.9, 2.5))
        x = self.x.numpy()
        for ax, name in zip(made, self.values, strict=True):
            values, slopes = self.values[name].numpy(), self.slopes[name].numpy()
            ax.axhline(0, color="#cccccc", linewidth=0.8)
            ax.plot(x, values, **{"color": charts.COLORS[0], "label": "value"} | style)
            ax.plot(x, slopes, "--", color=charts.COLORS[1], label="slope")
            ax.set_title(name, fontsize=10)
        made[0].legend(fontsize=8)
        return made


@instrument("V01", needs=("activation",))
def activation_curves(
    activations: Activation | Sequence[Activation] = ("sigmoid", "tanh", "relu", "selu"),
    low: float = -5.0,
    high: float = 5.0,
    *,
    points: int = 401,
) -> ActivationCurves:
    """Activations, their exact slopes, and where they saturate.

    Args:
        activations: names, modules or functions, one or several.
        low, high: the range of the argument.
        points: of each curve.

    >>> from chainrule import inspect
    >>> inspect.activation_curves("sigmoid").facts["sigmoid"]["largest slope"]
    0.25
    """
    given = [activations] if isinstance(activations, str) or callable(activations) else activations
    if not given:
        raise ValueError("activation_curves: there is no activation to draw")
    if not low < high or points < 2:
        raise ValueError(
            f"activation_curves: low must be below high and points at least 2, got low={low}, "
            f"high={high}, points={points}"
        )
    x = linspace(low, high, points, dtype="float64")
    values, slopes, facts = {}, {}, {}
    for activation in given:
        known = activation_properties(activation)
        with no_grad():
            values[known.name] = as_function(activation)(x)
        slopes[known.name] = known.derivative(x)
        facts[known.name] = {
            "range": str(known.range),
            "monotonic": known.monotonic,
            "largest slope": known.max_slope,
            "slope at zero": known.slope_at_zero,
            "saturates": " and ".join(map(str, known.saturation)),
        }
    return ActivationCurves(x, values, slopes, facts)


@dataclass(repr=False, eq=False)
class MomentMap(Result):
    """Where a layer of SELU units sends mean and variance.

    It goes from ``(means[j], variances[i])`` to ``(new_means[i, j], new_variances[i, j])``;
    ``contraction`` is the spectral norm of the map's derivative at the ``fixed`` point.
    """

    means: Tensor
    variances: Tensor
    new_means: Tensor
    new_variances: Tensor
    fixed: tuple[float, float]
    contraction: float

    def __str__(self) -> str:
        verdict = "contracts: layers pull moments towards it" if self.contraction < 1 else "expands"
        return (
            f"fixed point: mean {self.fixed[0]:.6g}, variance {self.fixed[1]:.6g}\n"
            f"norm of the derivative there: {self.contraction:.4f}; the map {verdict}"
        )

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws an arrow from every pair of moments to the next."""
        ax = charts.axes_for(ax, (5.6, 4.4))
        across, along = self.means.numpy(), self.variances.numpy()
        dx = self.new_means.numpy() - across[None, :]
        dy = self.new_variances.numpy() - along[:, None]
        looks: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.003}
        ax.quiver(across, along, dx, dy, color=charts.COLORS[0], **looks | style)
        ax.plot(*self.fixed, "o", color=charts.COLORS[1], label="fixed point")
        ax.set(title="One layer of SELU: where moments go", xlabel="mean", ylabel="variance")
        ax.legend(loc="upper right")
        return ax


@instrument("V23", needs=())
def moment_map(
    weight_sum: float = 0.0,
    weight_square_sum: float = 1.0,
    *,
    means: tuple[float, float] = (-0.1, 0.1),
    variances: tuple[float, float] = (0.8, 1.5),
    points: int = 11,
) -> MomentMap:
    """Where a layer of SELU units sends the mean and variance of its inputs, as arrows.

    Args:
        weight_sum, weight_square_sum: of each unit's weights; 0 and 1 as LeCun's start makes them.
        means, variances: the ranges that are drawn.
        points: arrows in each direction.

    >>> from chainrule import inspect
    >>> round(inspect.moment_map().contraction, 4)
    0.7877
    """
    if points < 2 or variances[0] <= 0 or means[0] >= means[1] or variances[0] >= variances[1]:
        raise ValueError(
            "moment_map: ranges go from a smaller to a larger number, variances are positive and "
            f"points at least 2, got means={means}, variances={variances}, points={points}"
        )
    across = linspace(*means, points, dtype="float64")
    along = linspace(*variances, points, dtype="float64")
    grid = [[selu_moments(m, v, weight_sum, weight_square_sum) for m in across] for v in along]
    fixed = selu_fixed_point(weight_sum, weight_square_sum)
    j = fixed.jacobian
    # The largest singular value of a 2 x 2 matrix.
    total, det = float((j * j).sum()), float(j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0])
    norm = math.sqrt((total + math.sqrt(max(0.0, total * total - 4 * det * det))) / 2)
    new_means, new_variances = (
        tensor([[float(pair[k]) for pair in row] for row in grid], dtype="float64") for k in (0, 1)
    )
    return MomentMap(across, along, new_means, new_variances, (fixed.mean, fixed.variance), norm)
