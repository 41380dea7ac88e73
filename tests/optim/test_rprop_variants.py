"""The four variants of resilient propagation against the algorithms of Igel and Huesken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.traces import GRADIENTS, START, check_left_alone, check_resume, follow, parameter

import chainrule
from chainrule import optim

VARIANTS = {
    "Rprop-": optim.RpropMinus,
    "Rprop+": optim.RpropPlus,
    "iRprop-": optim.IRpropMinus,
    "iRprop+": optim.IRpropPlus,
}
LOSSES = [3.0, 2.0, 2.5, 1.0, 1.5, 1.4, 1.6, 0.5, 0.4, 0.9, 0.8, 1.0]  # some steps were too far
each = pytest.mark.parametrize("variant", VARIANTS)


def losses_of(variant: str) -> list[float] | None:
    return LOSSES if variant == "iRprop+" else None


def golden(
    variant: str, gradients: Any, lr: float = 0.1, etas: Any = (0.5, 1.2), sizes: Any = (0.02, 0.15)
) -> tuple[np.ndarray, np.ndarray]:
    """The paper's four listings, weight by weight."""
    w, size, last, move = START.copy(), np.full(4, lr), np.zeros(4), np.zeros(4)
    places, loss = [], np.inf
    for t, gradient in enumerate(gradients):
        for i, g in enumerate(gradient):
            if last[i] * g > 0:
                size[i] = min(size[i] * etas[1], sizes[1])
                move[i] = -np.sign(g) * size[i]
                w[i] += move[i]
                last[i] = g
            elif last[i] * g < 0:
                size[i] = max(size[i] * etas[0], sizes[0])
                if variant == "Rprop-":
                    w[i] -= np.sign(g) * size[i]
                    last[i] = g
                else:
                    if variant == "Rprop+" or (variant == "iRprop+" and LOSSES[t] > loss):
                        w[i] -= move[i]
                    last[i] = 0
            else:
                move[i] = -np.sign(g) * size[i]
                w[i] += move[i]
                last[i] = g
        places.append(w.copy())
        loss = LOSSES[t]
    return np.array(places), size


@each
def test_golden_trace(variant: str) -> None:
    p = parameter()
    optimizer = VARIANTS[variant]([p], lr=0.1, step_sizes=(0.02, 0.15))
    expected, sizes = golden(variant, GRADIENTS)
    assert_close(follow(optimizer, p, losses=losses_of(variant)), expected)
    assert_close(optimizer.state[p]["step_size"], sizes)


def test_the_variants_differ() -> None:
    traces = [golden(variant, GRADIENTS)[0] for variant in VARIANTS]
    for i, a in enumerate(traces):
        for b in traces[:i]:
            assert np.abs(a - b).max() > 1e-3


@each
def test_maximize_is_the_same_on_the_negative(variant: str) -> None:
    p, q = parameter(), parameter()
    losses = losses_of(variant)
    down = follow(VARIANTS[variant]([p], lr=0.1), p, losses=losses)
    climber = VARIANTS[variant]([q], lr=0.1, maximize=True)
    up = follow(climber, q, -GRADIENTS, losses and [-loss for loss in losses])
    assert_close(up, down, 0, 0)


def test_irprop_minus_is_rprop() -> None:
    p, q = parameter(), parameter()
    expected = follow(optim.Rprop([p], lr=0.1), p)
    assert_close(follow(optim.IRpropMinus([q], lr=0.1), q), expected, 0, 0)


def test_backtracking_returns_to_the_very_place() -> None:
    """After a change of sign the weight is where it was, and the sign counts once."""
    p = parameter([1.0])
    optimizer = optim.RpropPlus([p], lr=0.4)
    places = follow(optimizer, p, [[1.0], [-1.0], [1.0], [1.0]]).ravel()
    assert_close(places, np.array([0.6, 1.0, 0.8, 0.56]))


def test_the_course_s_undo_against_pytorch() -> None:
    """O21: PyTorch's variant stays beyond the minimum where back-tracking returns."""
    p, q = parameter([1.0]), parameter([1.0])
    assert follow(optim.RpropPlus([p], lr=0.4), p, [[1.0], [-1.0]])[-1] == 1.0
    assert follow(optim.Rprop([q], lr=0.4), q, [[1.0], [-1.0]])[-1] == 0.6


def test_irprop_plus_undoes_only_what_made_the_loss_grow() -> None:
    for second, place in ((0.5, 0.6), (1.0, 0.6), (1.5, 1.0)):
        p = parameter([1.0])
        optimizer = optim.IRpropPlus([p], lr=0.4)
        places = follow(optimizer, p, [[1.0], [-1.0]], losses=[1.0, second])
        assert places[-1].item() == pytest.approx(place, abs=1e-15)


@each
def test_minimizes_an_ill_conditioned_bowl(variant: str) -> None:
    scales = chainrule.tensor([1.0, 100.0, 1e4, 1e-2], dtype=chainrule.float64)
    p = parameter()
    optimizer = VARIANTS[variant]([p], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (scales * p * p).sum()
        loss.backward()
        return loss

    for _ in range(100):
        optimizer.step(closure)
    assert p.detach().abs().max() < 1e-4


# --- state, errors --------------------------------------------------------------------------------


@each
def test_resume(variant: str) -> None:
    check_resume(lambda p: VARIANTS[variant](p, lr=0.1), losses_of(variant))


def test_the_loss_is_saved_to_the_last_digit() -> None:
    p = parameter()
    optimizer = optim.IRpropPlus([p])
    follow(optimizer, p, GRADIENTS[:1], losses=[1 / 3])
    other = optim.IRpropPlus([p])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[p]["loss"] == 1 / 3


@each
def test_a_parameter_without_gradient_is_left_alone(variant: str) -> None:
    check_left_alone(lambda p: VARIANTS[variant](p, lr=0.1))


@pytest.mark.parametrize(
    ("closure", "error", "message"),
    [
        (None, ValueError, r"IRpropPlus.step: needs a closure that calls backward\(\)"),
        (lambda: None, RuntimeError, r"IRpropPlus.step: the closure returned None"),
    ],
    ids=["missing", "without a loss"],
)
def test_irprop_plus_needs_the_loss(closure: Any, error: Any, message: str) -> None:
    p = parameter()
    p.grad = chainrule.tensor(GRADIENTS[0])
    with pytest.raises(error, match=message):
        optim.IRpropPlus([p]).step(closure)
    assert_close(p, START, 0, 0)


@each
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"etas": (1.2, 0.5)}, r"invalid etas: \(1.2, 0.5\)"),
        ({"step_sizes": (1.0, 0.5)}, r"invalid step_sizes: \(1.0, 0.5\)"),
        ({"lr": -1.0}, r"invalid lr: -1.0"),
    ],
    ids=["etas", "sizes", "lr"],
)
def test_errors(variant: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"{VARIANTS[variant].__name__}: {message}"):
        VARIANTS[variant]([parameter()], **settings)
