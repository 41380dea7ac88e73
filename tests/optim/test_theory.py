"""What theory says about learning rates and momentum, against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.optim import theory


def parameter(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


def distances(curvatures: np.ndarray, steps: int, **settings: float) -> np.ndarray:
    """||w|| at every step of SGD on 1/2 sum c w^2 from w = 1."""
    w = parameter(*np.ones_like(curvatures))
    c, found = chainrule.tensor(curvatures), []
    optimizer = optim.SGD([w], **settings)
    for _ in range(steps):
        found.append(float(np.linalg.norm(w.detach().numpy())))
        optimizer.zero_grad()
        (0.5 * (c * w**2).sum()).backward()
        optimizer.step()
    return np.array(found)


# --- the step that is sure to descend -------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.1, 0.45, 0.95])
def test_descent_below_the_bound(share: float) -> None:
    """On beta w^2 / 2 each step multiplies by 1 - lr beta, of size below 1 for 0 < lr < 2 / beta.

    Also far below 1 / beta, where the interval was printed to begin.
    """
    beta = 7.0
    d = distances(np.array([beta]), 20, lr=share * theory.step_bound(beta))
    assert (np.diff(d) < 0).all()
    assert_close(d[1:] / d[:-1], np.full(19, abs(1 - 2 * share)), rtol=1e-6)


def test_at_the_bound_it_swings_and_above_it_diverges() -> None:
    beta = 7.0
    assert_close(distances(np.array([beta]), 50, lr=2 / beta), np.ones(50), rtol=1e-9)
    assert distances(np.array([beta]), 500, lr=2.05 / beta)[-1] == pytest.approx(1.05**499)


def test_rates_of_their_own_descend_if_none_is_negative() -> None:
    """-g . (eta o g) <= 0; a negative rate can make it positive."""
    g = np.random.default_rng(0).normal(size=5)
    for rates, falls in (([0.1, 0.0, 1.0, 0.3, 0.2], True), ([-1.0, -1.0, -1.0, 0.1, 0.1], False)):
        assert (-g @ (np.array(rates) * g) <= 0) is np.bool_(falls)
        w = parameter(*np.zeros(5))
        slope = chainrule.func.jvp(
            lambda w: (chainrule.tensor(g) * w).sum(),
            (w,),
            (chainrule.tensor(-np.array(rates) * g),),
        )[1]
        assert (slope.item() <= 0) is falls


def test_a_step_is_taylors_expansion_up_to_its_second_order() -> None:
    """f(w - lr g) = f(w) - lr |g|^2 + o(lr): halving the rate quarters the difference."""
    w = chainrule.tensor(np.random.default_rng(0).normal(size=6))
    f = lambda w: (w.sin() * w).sum() + (w**4).sum()  # noqa: E731
    pairs = [theory.descent_expansion(f, w, lr) for lr in (1e-3, 5e-4, 2.5e-4)]
    errors = [abs(there - model) for there, model in pairs]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    assert all(there < f(w).item() for there, _ in pairs)


def test_no_direction_is_steeper_than_that_of_the_gradient() -> None:
    """-g / |g| is the least of f(w + d) over |d| = r, for a small r."""
    r = np.random.default_rng(1)
    w = chainrule.tensor(r.normal(size=3))
    f = lambda w: (w.exp() + w[0] * w[1] * w[2]).sum()  # noqa: E731
    g = chainrule.func.grad(f)(w)
    down = f(w - 1e-5 * g / g.norm()).item()
    d = r.normal(size=(500, 3))
    d *= 1e-5 / np.linalg.norm(d, axis=1, keepdims=True)
    assert min(f(w + chainrule.tensor(row)).item() for row in d) > down - 1e-9


def test_euler_inequality_at_minimizers_of_a_convex_set() -> None:
    """Projections on a box are the minimizers of distances; other points of the box are not."""
    r = np.random.default_rng(0)
    others = chainrule.tensor(r.uniform(-1, 1, size=(200, 3)))
    for _ in range(20):
        target = chainrule.tensor(r.normal(size=3) * 2)
        f = lambda w, t=target: ((w - t) ** 2).sum()  # noqa: E731
        nearest = target.clamp(-1, 1)
        holds, least = theory.euler_inequality(f, nearest, others)
        assert holds
        assert least > -1e-12
        holds, least = theory.euler_inequality(f, 0.5 * nearest + 0.1, others)
        assert not holds
        assert least < 0


def test_lipschitz_estimate_is_the_largest_curvature() -> None:
    r = np.random.default_rng(0)
    q, _ = np.linalg.qr(r.normal(size=(12, 12)))
    eigenvalues = np.array([-30.0, *r.uniform(-5, 20, 11)])
    a = chainrule.tensor((q * eigenvalues) @ q.T)
    w = parameter(*r.normal(size=12))
    chainrule.manual_seed(0)
    found = theory.lipschitz_estimate(lambda: 0.5 * w @ a @ w, [w], 500, 1e-12)
    assert found == pytest.approx(30.0, rel=1e-6)


def test_lipschitz_estimate_of_a_network_bounds_its_rate() -> None:
    """Near a minimum: below 2 / beta gradient descent settles, above it leaves."""
    chainrule.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x = chainrule.randn(30, 2, dtype=chainrule.float64)
    y = x.sin().sum(1, keepdim=True)
    loss = lambda: ((model(x) - y) ** 2).mean()  # noqa: E731
    optim.DampedNewton(model.parameters()).run(loss, max_iter=200)
    before = [p.detach().clone() for p in model.parameters()]
    beta = theory.lipschitz_estimate(loss, model.parameters(), 500, 1e-8)
    lowest = loss().item()
    ends = {}
    for share in (0.9, 1.2):
        with chainrule.no_grad():
            for p, b in zip(model.parameters(), before, strict=True):
                p.copy_(b + 1e-3)
        optimizer = optim.SGD(model.parameters(), lr=share * theory.step_bound(beta))
        for _ in range(200):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        ends[share] = loss().item()
    assert ends[0.9] < lowest + 1e-5
    assert ends[1.2] > lowest + 1e-4


def test_lipschitz_estimate_of_a_linear_loss_is_zero() -> None:
    w = parameter(1.0, 2.0)
    assert theory.lipschitz_estimate(lambda: w.sum(), [w]) == 0.0


# --- rates ----------------------------------------------------------------------------------------


def test_optimal_momentum_for_a_condition_number_of_100() -> None:
    """Heavy ball at momentum 0.669: rate 0.825 in the second hundred steps, 0.818 in the end."""
    curvatures = np.geomspace(0.05, 5.0, 30)
    lr, momentum, rate = theory.optimal_momentum(100, lipschitz=5.0)
    assert momentum == pytest.approx(0.669, abs=5e-4)
    assert lr == pytest.approx(4 / (np.sqrt(5.0) + np.sqrt(0.05)) ** 2)
    d = distances(curvatures, 301, lr=lr, momentum=momentum)
    assert (d[200] / d[100]) ** (1 / 100) == pytest.approx(0.825, abs=2e-3)
    assert (d[300] / d[200]) ** (1 / 100) == pytest.approx(rate, rel=6e-3)
    descent = distances(curvatures, 301, lr=2 / 5.05)
    assert (descent[300] / descent[200]) ** (1 / 100) == pytest.approx(0.980, abs=5e-4)
    assert theory.descent_rate(100) == pytest.approx(0.980, abs=2e-4)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("kappa", [1.0, 4.0, 100.0, 2500.0])
def test_the_rate_is_the_largest_root_and_the_smallest_possible(
    kappa: float, nesterov: bool
) -> None:
    """Roots z of z^2 - (1 + m)(1 - lr c) z + m (1 - lr c), or (1 + m - lr c) z and m."""

    def largest_root(lr: float, m: float) -> float:
        sizes = [0.0]
        for c in np.linspace(1 / kappa, 1, 2000):
            left = 1 - lr * c
            poly = [1, -(1 + m) * left, m * left] if nesterov else [1, -(1 + m - lr * c), m]
            sizes.append(np.abs(np.roots(poly)).max())
        return max(sizes)

    lr, momentum, rate = theory.optimal_momentum(kappa, nesterov=nesterov)
    assert largest_root(lr, momentum) == pytest.approx(rate, abs=1e-6)
    if kappa == 100:
        for other in (momentum - 0.02, momentum + 0.02):
            assert largest_root(lr, other) > rate + 1e-3


def test_nesterov_momentum_is_the_form_without_the_square() -> None:
    lr, momentum, rate = theory.optimal_momentum(100, nesterov=True)
    assert (lr, momentum, rate) == (1.0, pytest.approx(9 / 11), pytest.approx(0.9))
    d = distances(np.geomspace(0.01, 1, 30), 301, lr=lr, momentum=momentum, nesterov=True)
    assert (d[300] / d[100]) ** (1 / 200) == pytest.approx(0.9, rel=0.01)


def test_distance_rate_is_near_one_for_a_large_condition_number() -> None:
    """sqrt(beta / (alpha + beta)) = sqrt(1 / (1 + 1 / kappa)) = 0.99504 at kappa = 100.

    The printed sqrt(1 / (1 + kappa)) = 0.0995 would promise ten digits in ten steps.
    """
    rho = theory.distance_rate(100)
    assert rho == pytest.approx(0.99504, abs=5e-6)
    d = distances(np.geomspace(0.01, 1, 30), 400, lr=1.0)
    k = np.arange(400)
    assert (d <= d[0] * rho**k + 1e-12).all()
    assert d[10] > 1e6 * d[0] * np.sqrt(1 / 101) ** 10


def test_loss_bound_of_a_convex_function() -> None:
    """Huber's loss is convex, not strongly, with curvature at most 1."""
    w = parameter(30.0)
    optimizer = optim.SGD([w], lr=1.0)
    for k in range(60):
        optimizer.zero_grad()
        loss = nn.functional.huber_loss(w, chainrule.zeros_like(w))
        assert loss.item() <= theory.loss_bound(1.0, 30.0, k)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-12


# --- momentum as motion ---------------------------------------------------------------------------


def test_the_rate_of_the_motion_has_a_plus_sign() -> None:
    """dw <- mu dw - eta (1 - mu) g gives what averaged momentum does; with + it climbs."""
    mu, lr, gradients = 0.9, 0.01, np.array([1.0, 2.0, -0.5, 1.5])
    w = parameter(0.0)
    optimizer = optim.AveragedMomentum([w], lr=lr, momentum=mu)
    moved, change, printed = 0.0, 0.0, 0.0
    for g in gradients:
        w.grad = chainrule.tensor([g])
        optimizer.step()
        change = mu * change - lr * (1 - mu) * g
        printed = mu * printed + lr * (1 - mu) * g
        moved += change
    assert_close(w, np.array([moved]))
    closed = -lr * (1 - mu) * (mu ** np.arange(3, -1, -1) * gradients).sum()
    assert change == pytest.approx(closed)
    assert printed == pytest.approx(-closed)
    assert change < 0 < printed


def test_free_motion_decays_from_where_it_began() -> None:
    """Without a gradient w' = v0 exp(-(1 - mu)(t - t0)), also by integration and by steps."""
    v0 = parameter(2.0).detach()
    zero = lambda w: chainrule.zeros_like(w)  # noqa: E731
    motion = theory.damped_motion(
        zero, chainrule.zeros_like(v0), v0, lr=0.1, momentum=0.9, duration=30.0
    )
    expected = 2 * np.exp(-0.1 * motion.times.numpy())
    assert_close(motion.velocities[:, 0], expected, rtol=1e-9)
    assert_close(motion.positions[:, 0], 20 - 10 * expected, rtol=1e-9, atol=1e-9)
    t0 = 12.0
    assert_close(theory.free_decay(v0, 0.9, motion.times + t0, t0), expected, rtol=1e-9)
    assert theory.free_decay(2.0, 0.9, t0, t0) == 2.0  # exp(-(1 - mu) t) alone would give 0.6


def test_damped_oscillation_has_its_closed_form() -> None:
    """g = c w: w = exp(-f t / 2)(cos(o t) + f / (2 o) sin(o t)), o^2 = lr f c - f^2 / 4."""
    lr, mu, c, f = 0.5, 0.9, 3.0, 0.1
    motion = theory.damped_motion(
        lambda w: c * w, parameter(1.0).detach(), lr=lr, momentum=mu, duration=40.0
    )
    t, o = motion.times.numpy(), np.sqrt(lr * f * c - f * f / 4)
    expected = np.exp(-f * t / 2) * (np.cos(o * t) + f / (2 * o) * np.sin(o * t))
    assert_close(motion.positions[:, 0], expected, rtol=1e-6, atol=1e-7)


def test_averaged_momentum_follows_the_motion() -> None:
    """The slower the steps, the closer: friction and rate halved, the distance too."""
    gaps = []
    for scale in (1.0, 0.5, 0.25):
        mu, lr = 1 - 0.1 * scale, 0.2 * scale
        count = int(40 / scale)
        w = parameter(1.0)
        optimizer = optim.AveragedMomentum([w], lr=lr, momentum=mu)
        path = []
        for _ in range(count):
            optimizer.zero_grad()
            (0.5 * w**2 + 0.25 * w**4).sum().backward()
            optimizer.step()
            path.append(w.item())
        motion = theory.damped_motion(
            lambda w: w + w**3,
            parameter(1.0).detach(),
            lr=lr,
            momentum=mu,
            duration=float(count),
            steps=4 * count,
        )
        exact = motion.positions[4::4, 0].numpy()
        gaps.append(np.abs(np.array(path) - exact).max())
    assert gaps[0] < 0.1
    assert gaps[1] < 0.6 * gaps[0]
    assert gaps[2] < 0.6 * gaps[1]


# --- the noise of stochastic gradients ------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
def test_noise_scale_is_the_temperature_of_sgd(replacement: bool) -> None:
    """On the mean of (w - a_n)^2 / 2 with Var a = 1 the variance at temperature T is T."""
    n, b, lr = 20, 8, 0.05
    r = np.random.default_rng(0)
    a = r.normal(size=n)
    a = (a - a.mean()) / a.std()
    chains = parameter(*np.zeros(2000))
    optimizer = optim.SGD([chains], lr=lr)
    squares = []
    for step in range(300):
        index = (
            r.integers(0, n, (2000, b))
            if replacement
            else np.argsort(r.random((2000, n)), axis=1)[:, :b]
        )
        batch = chainrule.tensor(a[index])
        optimizer.zero_grad()
        (0.5 * ((chains.unsqueeze(1) - batch) ** 2).mean(1)).sum().backward()
        optimizer.step()
        if step >= 150:
            squares.append(float((chains.detach() ** 2).mean()))
    expected = theory.noise_scale(lr, b, None if replacement else n)
    # 1 - b/n stands for (n - b)/(n - 1), and lr for lr / (1 - lr/2): 5 and 2.5 % here.
    assert np.mean(squares) == pytest.approx(expected, rel=0.10)


def test_noise_scale_without_replacement_vanishes_for_the_whole_set() -> None:
    assert theory.noise_scale(0.1, 50, n=50) == 0.0
    assert theory.noise_scale(0.1, 4) == 0.0125


# --- errors ---------------------------------------------------------------------------------------


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="step_bound: invalid lipschitz: 0"):
        theory.step_bound(0.0)
    with pytest.raises(ValueError, match="optimal_momentum: invalid condition_number: 0.5"):
        theory.optimal_momentum(0.5)
    with pytest.raises(ValueError, match="noise_scale: invalid batch_size: 0"):
        theory.noise_scale(0.1, 0)
    with pytest.raises(ValueError, match="a batch of 10 cannot be drawn without replacement fro"):
        theory.noise_scale(0.1, 10, n=5)
    with pytest.raises(ValueError, match="damped_motion: invalid momentum: 1.0"):
        theory.damped_motion(lambda w: w, parameter(1.0), lr=0.1, momentum=1.0, duration=1.0)
    with pytest.raises(ValueError, match="lipschitz_estimate: invalid iterations: 0"):
        theory.lipschitz_estimate(lambda: parameter(1.0), [parameter(1.0)], 0)
