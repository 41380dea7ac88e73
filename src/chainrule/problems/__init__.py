"""Test problems: a function or data, the known answer, and where it comes from."""

from chainrule.problems.darcy import arrangements, configurations, darcy, discharge
from chainrule.problems.oscillator import bouc_wen, bouc_wen_response, ground_motion
from chainrule.problems.points import blobs, boolean, circles, moons, spirals
from chainrule.problems.problem import Problem
from chainrule.problems.radial import radial_bessel, radial_function
from chainrule.problems.regression import exponential, exponential_line, line
from chainrule.problems.surfaces import bowl, quadratic, rosenbrock, vialle

__all__ = [
    "Problem",
    "arrangements",
    "blobs",
    "boolean",
    "bouc_wen",
    "bouc_wen_response",
    "bowl",
    "circles",
    "configurations",
    "darcy",
    "discharge",
    "exponential",
    "exponential_line",
    "ground_motion",
    "line",
    "moons",
    "quadratic",
    "radial_bessel",
    "radial_function",
    "rosenbrock",
    "spirals",
    "vialle",
]
