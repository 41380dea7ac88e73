"""A building that yields: the Bouc-Wen oscillator under the motion of the ground."""

from __future__ import annotations

import math
from typing import Any, TypedDict, Unpack

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.creation.patterns import arange, eye, zeros
from chainrule.ops.elementwise.functions import cos, exp, sign, sin, sqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import amax
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.sampling import rand
from chainrule.ops.shape.stacking import cat, stack
from chainrule.problems.problem import Problem, floating, positive, whole
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["bouc_wen", "bouc_wen_response", "ground_motion"]


def ground_motion(
    n: int = 1,
    steps: int = 500,
    dt: float = 0.02,
    peak: float = 3.0,
    generator: Random = None,
    dtype: DType | None = None,
) -> Tensor:
    """Synthetic accelerations of the ground (n, steps), each with this largest absolute value.

    Cosines with random phases whose amplitudes follow the Kanai-Tajimi spectrum
    (1 + 4 z^2 u^2) / ((1 - u^2)^2 + 4 z^2 u^2), u = w / 15 rad/s, z = 0.6, under an envelope that
    rises over a fifth of the time and decays in the second half.

    >>> from chainrule import problems
    >>> problems.ground_motion(2, peak=3.0).abs().amax(1)
    tensor([3., 3.])
    """
    whole("ground_motion", n=n)
    whole("ground_motion", 2, steps=steps)
    positive("ground_motion", dt=dt, peak=peak)
    dtype, exact = floating("ground_motion", dtype), dtypes.float64
    t = dt * arange(steps, dtype=exact)
    w = (math.pi / dt / 256) * arange(1, 129, dtype=exact)  # up to half the highest frequency
    u = (w / 15.0) ** 2
    amplitude = sqrt((1 + 1.44 * u) / ((1 - u) ** 2 + 1.44 * u))
    phase = 2 * math.pi * rand(n, 128, dtype=exact, generator=generator)
    angle = w[:, None] * t
    a = matmul(amplitude * cos(phase), cos(angle)) - matmul(amplitude * sin(phase), sin(angle))
    total = dt * steps
    rise, fall = clamp(5 * t / total, max=1.0), exp(-4 * clamp(t / total - 0.5, min=0.0))
    a = a * rise * rise * fall
    return cast(peak * a / amax(abs(a), 1, keepdim=True), dtype)


def _derivative(state: Tensor, ground: Tensor, p: dict[str, Any]) -> Tensor:
    """Floor velocities, floor accelerations and rates of the story forces, as in the state."""
    v, f, between = state[:, 1], state[:, 2], p["between"]
    drift = matmul(v, between.mT)
    net = matmul(p["damping"] * drift + f, between)
    strength = abs(f) ** p["n"]
    yielded = (p["alpha"] * abs(drift) * sign(f) + p["beta"] * drift) * strength
    return stack([v, -net / p["mass"] - ground, p["stiffness"] * drift - yielded], 1)


def _runge_kutta(state: Tensor, g0: Tensor, g1: Tensor, h: float, p: dict[str, Any]) -> Tensor:
    """One step of the classical method of order 4, the ground linear in between."""
    middle = (g0 + g1) / 2
    k1 = _derivative(state, g0, p)
    k2 = _derivative(state + h / 2 * k1, middle, p)
    k3 = _derivative(state + h / 2 * k2, middle, p)
    k4 = _derivative(state + h * k3, g1, p)
    return state + h / 6 * (k1 + 2 * (k2 + k3) + k4)


class Oscillator(TypedDict, total=False):
    """The parameters of :func:`bouc_wen_response` that describe the building."""

    mass: float | Tensor
    damping: float | Tensor
    stiffness: float | Tensor
    alpha: float | Tensor
    beta: float | Tensor
    substeps: int


def bouc_wen_response(
    ground: Tensor,
    dt: float = 0.02,
    floors: int = 3,
    *,
    mass: float | Tensor = 1.0,
    damping: float | Tensor = 0.8,
    stiffness: float | Tensor = 400.0,
    alpha: float | Tensor = 3.125,
    beta: float | Tensor = 3.125,
    n: float = 2.0,
    substeps: int = 4,
) -> tuple[Tensor, Tensor]:
    """How floors move over the ground, and the forces in the stories between them.

    M y'' + C y' + F = -M x_G'', where story i between floors i - 1 and i, with the drift
    d_i = y_i - y_{i-1} (y_0 = 0, the ground), takes the force damping d_i' + f_i, and f yields:

    f' = stiffness d' - alpha |d'| |f|^{n-1} f - beta d' |f|^n

    |f| never exceeds (stiffness / (alpha + beta))^{1/n}. It is integrated by the classical
    Runge-Kutta method, ``substeps`` steps for each dt, in differentiable operations; the parameters
    are numbers, or tensors (floors,). The defaults yield at a drift of 20 mm, a force of 8.

    Shape: ground acceleration (N, L) -> displacements (N, L, floors), forces (N, L, floors).
    """
    if ground.ndim != 2 or not ground.is_floating_point():
        raise ValueError(
            f"bouc_wen_response: ground must be floating accelerations (N, L), got shape "
            f"{tuple(ground.shape)} of {ground.dtype}"
        )
    whole("bouc_wen_response", floors=floors, substeps=substeps)
    positive("bouc_wen_response", dt=dt)
    if not n >= 1:
        raise ValueError(f"bouc_wen_response: n must be at least 1, got {n}")
    one = eye(floors, dtype=ground.dtype)
    between = one - cat([zeros(1, floors, dtype=ground.dtype), one[:-1]])  # drifts of the floors
    p = {
        "between": between,
        "mass": mass,
        "damping": damping,
        "stiffness": stiffness,
        "alpha": alpha,
        "beta": beta,
        "n": n,
    }
    state = zeros(ground.shape[0], 3, floors, dtype=ground.dtype)  # displacement, velocity, force
    seen = [state]
    for i in range(ground.shape[1] - 1):
        a, b = ground[:, i : i + 1], ground[:, i + 1 : i + 2]
        for j in range(substeps):
            low, high = a + (b - a) * (j / substeps), a + (b - a) * ((j + 1) / substeps)
            state = _runge_kutta(state, low, high, dt / substeps, p)
        seen.append(state)
    if not bool(state.isfinite().all()):
        raise RuntimeError(
            f"bouc_wen_response: the integration became unstable; {substeps} substeps are too few "
            "for motion this fast, or the parameters are not positive"
        )
    whole_motion = stack(seen, 1)
    return whole_motion[:, :, 0], whole_motion[:, :, 2]


def bouc_wen(
    n: int = 8,
    steps: int = 500,
    dt: float = 0.02,
    floors: int = 3,
    peak: float = 3.0,
    generator: Random = None,
    dtype: DType | None = None,
    **oscillator: Unpack[Oscillator],
) -> Problem:
    """Sequences for a recurrent network: ground accelerations (n, steps, 1) and what the floors do.

    The targets are the displacements (n, steps, floors) of :func:`bouc_wen_response`, in
    millimeters; ``oscillator`` are its parameters. The ground moves as :func:`ground_motion` says.

    >>> from chainrule import problems
    >>> p = problems.bouc_wen(2, steps=50)
    >>> p.inputs.shape, p.targets.shape
    (chainrule.Size([2, 50, 1]), chainrule.Size([2, 50, 3]))
    """
    whole("bouc_wen", n=n)
    dtype = floating("bouc_wen", dtype)
    ground = ground_motion(n, steps, dt, peak, generator, dtypes.float64)

    def rule(inputs: Tensor) -> Tensor:
        return 1000 * bouc_wen_response(inputs[:, :, 0], dt, floors, **oscillator)[0]

    with no_grad():
        targets = rule(ground[:, :, None])
    return Problem(
        "bouc_wen",
        "document 003, the response of several degrees of freedom (with the usual |f|^n)",
        inputs=cast(ground, dtype)[:, :, None],
        targets=cast(targets, dtype),
        rule=rule,
        known={"dt": dt},
    )
