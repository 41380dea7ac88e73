"""Losses against their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from scipy import special, stats

import chainrule
from chainrule import nn, tensor
from chainrule.func import grad
from chainrule.nn import functional as F
from chainrule.nn.losses.reduction import Loss
from chainrule.tensor import Tensor, of_array


def normal(*shape: int, seed: int = 0) -> Tensor:
    return of_array(np.random.default_rng(seed).normal(size=shape))


# --- squared errors (S01, S02, S13) ---------------------------------------------------------------


def test_half_the_sum_of_squares() -> None:
    """S = 1/2 sum (y - w.x)^2, whose gradient is X^T (X w - y) and whose minimum is known."""
    x, y = normal(20, 3), normal(20, seed=1)

    def objective(w: Tensor) -> Tensor:
        return F.half_squared_loss(x @ w, y, reduction="sum")

    w = normal(3, seed=2)
    assert_close(objective(w), 0.5 * ((x @ w - y) ** 2).sum())
    assert_close(grad(objective)(w), x.T @ (x @ w - y), rtol=1e-12)
    best = of_array(np.linalg.lstsq(x.numpy(), y.numpy(), rcond=None)[0])
    assert_close(grad(objective)(best), np.zeros(3), atol=1e-12)


def test_squared_errors_differ_by_constants() -> None:
    x, y = normal(4, 3), normal(4, 3, seed=1)
    error = np.linalg.norm(x.numpy() - y.numpy()) ** 2
    assert_close(F.mse_loss(x, y, reduction="sum"), error)  # reconstruction error |X - X_r|^2
    assert_close(F.mse_loss(x, y), error / 12)
    assert_close(F.half_squared_loss(x, y), error / 24)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_squared_error_in_one_operation(reduction: str, wanted: tuple[bool, bool]) -> None:
    """The same value, gradients and second derivatives as the operations it stands for."""
    given = [normal(4, 3).requires_grad_(wanted[0]), normal(4, 3, seed=1).requires_grad_(wanted[1])]
    inputs = [t for t in given if t.requires_grad]
    ours = F.mse_loss(*given, reduction=reduction)
    theirs = getattr((given[0] - given[1]).square(), reduction)()
    assert ours.grad_fn.name() == "SquaredErrorBackward"
    assert_close(ours, theirs, rtol=1e-14)
    first = chainrule.autograd.grad(ours, inputs, create_graph=True)
    expected = chainrule.autograd.grad(theirs, inputs, create_graph=True)
    for a, b in zip(first, expected, strict=True):
        assert_close(a, b, rtol=1e-14)
        second = chainrule.autograd.grad(a.square().sum(), inputs, retain_graph=True)
        wanted_second = chainrule.autograd.grad(b.square().sum(), inputs, retain_graph=True)
        for c, d in zip(second, wanted_second, strict=True):
            assert_close(c, d, rtol=1e-13)
    F.mse_loss(*given, reduction=reduction).backward()
    for t, g in zip(inputs, expected, strict=True):
        assert_close(t.grad, g, rtol=1e-14)


def test_losses_at_equal_arguments_are_zero_and_flat() -> None:
    for name in ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "half_squared_loss"):
        x = normal(5).requires_grad_()
        loss = getattr(F, name)(x, x.detach())
        loss.backward()
        assert loss.item() == 0
        assert_close(x.grad, np.zeros(5))


@pytest.mark.parametrize("delta", [0.3, 1.0, 2.5])
def test_huber_and_smooth_l1_are_the_same_up_to_a_factor(delta: float) -> None:
    x, y = 3 * normal(50), normal(50, seed=1)
    assert_close(
        F.huber_loss(x, y, delta=delta), delta * F.smooth_l1_loss(x, y, beta=delta), rtol=1e-12
    )


# --- two classes (S05, S06) -----------------------------------------------------------------------


def test_gradient_of_binary_cross_entropy_by_the_weights() -> None:
    """(a - y) x for one sample."""
    w, x = normal(3), normal(3, seed=1)
    for y in (0.0, 1.0, 0.3):
        y = tensor(y, dtype=chainrule.float64)
        a = (w @ x).sigmoid()
        plain = grad(lambda w, y=y: F.binary_cross_entropy((w @ x).sigmoid(), y))(w)
        fused = grad(lambda w, y=y: F.binary_cross_entropy_with_logits(w @ x, y))(w)
        assert_close([plain, fused], [(a - y) * x] * 2, rtol=1e-12)


def test_slope_of_binary_cross_entropy_has_the_minus() -> None:
    """-c/x + (1 - c)/(1 - x): at x = .3 and c = 1 it is -3.333."""
    x = tensor(0.3, dtype=chainrule.float64)
    slope = grad(lambda x: F.binary_cross_entropy(x, tensor(1.0, dtype=chainrule.float64)))(x)
    assert_close(slope, -1 / 0.3, rtol=1e-12)


def test_logistic_loss_is_binary_cross_entropy() -> None:
    """log(1 + exp(-z s)) with z = -1, 1 against labels 0, 1."""
    s, y = 5 * normal(30), of_array(np.random.default_rng(1).integers(0, 2, size=30) * 1.0)
    for how in ("mean", "sum", "none"):
        logistic = F.soft_margin_loss(s, 2 * y - 1, reduction=how)
        assert_close(logistic, F.binary_cross_entropy_with_logits(s, y, reduction=how), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e3, 1e30])
def test_far_logits_neither_overflow_nor_vanish(scale: float) -> None:
    s = of_array(np.array([scale, -scale])).requires_grad_()
    wrong = of_array(np.array([-1.0, 1.0]))
    for loss in (
        F.soft_margin_loss(s, wrong, reduction="sum"),
        F.binary_cross_entropy_with_logits(s, (wrong + 1) / 2, reduction="sum"),
        F.multilabel_soft_margin_loss(s, (wrong + 1) / 2) * 2,
    ):
        s.grad = None
        loss.backward()
        assert_close(loss.detach(), 2 * scale)
        assert_close(s.grad, np.array([1.0, -1.0]))


# --- many classes (S07, S08, S09) -----------------------------------------------------------------


def test_categorical_cross_entropy_in_its_three_forms() -> None:
    x, k = normal(6, 4), np.array([0, 1, 2, 3, 0, 1])
    p, hot = special.softmax(x.numpy(), axis=1), np.eye(4)[k]
    expected = -(hot * np.log(p)).sum() / 6  # -sum_k y_k log a_k, averaged
    target = of_array(k)
    assert_close(F.cross_entropy(x, of_array(hot)), expected)
    assert_close(F.cross_entropy(x, target), expected)
    assert_close(F.nll_loss(x.log_softmax(1), target), expected)
    assert_close(F.nll_loss(x.log_softmax(1), target), -np.log(p[np.arange(6), k]).mean())


def test_gradient_of_cross_entropy_by_the_weights() -> None:
    """(a - y) x^T for one sample."""
    w, x = normal(4, 3), normal(3, seed=1)
    y = of_array(np.array([0.1, 0.2, 0.3, 0.4]))
    a = (w @ x).softmax(0)
    assert_close(grad(lambda w: F.cross_entropy(w @ x, y))(w), chainrule.outer(a - y, x))


# --- distributions (S10, H07, H08, H10) -----------------------------------------------------------


def test_gaussian_nll_is_minus_the_mean_log_density() -> None:
    """1/2 ln 2 pi + ln sigma + sum (y - mu)^2 / (2 sigma^2 N)."""
    mu, y, sigma = normal(50), normal(50, seed=1), 0.7
    loss = F.gaussian_nll_loss(mu, y, sigma**2, full=True)
    residual = ((y - mu) ** 2).sum().item()
    formula = 0.5 * math.log(2 * math.pi) + math.log(sigma) + residual / (2 * sigma**2 * 50)
    assert_close(loss, formula)
    assert_close(loss, -stats.norm.logpdf(y.numpy(), mu.numpy(), sigma).mean())


def test_gaussian_nll_is_least_at_the_sample_moments() -> None:
    """With one mean and one variance for all, those of the data."""
    y = normal(50)

    def loss(mu: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(mu.expand(50), y, var.expand(50))

    moments = y.mean(), y.var(correction=0)
    for slope in grad(loss, (0, 1))(*moments):
        assert abs(slope.item()) < 1e-12


def test_poisson_nll_is_minus_the_log_probability() -> None:
    """Up to log(y!), for which Stirling's formula stands."""
    rate = np.array([0.5, 2.0, 7.0])
    y = np.array([3.0, 5.0, 9.0])
    losses = F.poisson_nll_loss(of_array(np.log(rate)), of_array(y), full=True, reduction="none")
    assert_close(losses, -stats.poisson.logpmf(y, rate), atol=1 / (12 * 3))
    without = F.poisson_nll_loss(of_array(np.log(rate)), of_array(y), reduction="none")
    assert_close(without + special.gammaln(y + 1), -stats.poisson.logpmf(y, rate))


def test_divergence_is_cross_entropy_minus_entropy() -> None:
    p, q = (special.softmax(normal(4, 3, seed=s).numpy(), axis=1) for s in (0, 1))
    log_p, target = of_array(np.log(p)), of_array(q)
    divergence = F.kl_div(log_p, target, reduction="batchmean")
    assert_close(divergence, stats.entropy(q, p, axis=1).mean())
    entropy = stats.entropy(q, axis=1).mean()
    # Cross-entropy takes logits; logarithms of probabilities are logits of themselves.
    assert_close(F.cross_entropy(log_p, target), divergence + entropy)
    by_row = F.kl_div(log_p, target, reduction="none").sum(1).numpy()
    assert (by_row > 0).all()
    assert_close(F.kl_div(target.log(), target, reduction="sum"), 0.0, atol=1e-15)


def test_the_most_likely_model_is_the_nearest() -> None:
    """Minimizing the negative log-likelihood of data minimizes the divergence from them."""
    counts = np.array([5, 3, 2])
    labels, shares = of_array(np.repeat([0, 1, 2], counts)), of_array(counts / 10)

    def nll(s: Tensor) -> Tensor:
        return F.cross_entropy(s.expand(10, 3), labels)

    def divergence(s: Tensor) -> Tensor:
        return F.kl_div(s.log_softmax(0), shares, reduction="sum")

    s = normal(3)
    assert_close(grad(nll)(s), grad(divergence)(s), rtol=1e-12)
    assert_close(nll(s) - divergence(s), stats.entropy(counts / 10))
    assert_close(grad(nll)(shares.log()), np.zeros(3), atol=1e-15)


def test_kl_div_of_zero_probability() -> None:
    x = normal(3).log_softmax(0)
    q = of_array(np.array([0.0, 0.25, 0.75]))
    assert_close(F.kl_div(x, q, reduction="sum"), stats.entropy(q.numpy(), np.exp(x.numpy())))


# --- errors that are counted (S11, S12) -----------------------------------------------------------


def test_zero_one_loss_counts_wrong_classes() -> None:
    scores = tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [5.0, 6.0, 1.0]])
    target = tensor([0, 1, 1])
    assert F.zero_one_loss(scores, target, reduction="none").tolist() == [0.0, 1.0, 0.0]
    assert_close(F.zero_one_loss(scores, target), np.float32(1 / 3), rtol=1e-6)
    assert F.zero_one_loss(scores.argmax(1), target, reduction="sum").item() == 1
    assert F.zero_one_loss(scores[0], tensor(1)).item() == 1
    image = normal(2, 3, 4, 5)
    assert F.zero_one_loss(image, image.argmax(1)).item() == 0
    assert not F.zero_one_loss(scores.requires_grad_(), target).requires_grad


def test_perceptron_criterion() -> None:
    """-sum over the misclassified of y w.x."""
    x, y = normal(30, 2), of_array(np.sign(np.random.default_rng(1).normal(size=30)))
    w = normal(2, seed=3)
    wrong = (y * (x @ w) <= 0).numpy()
    expected = -(y * (x @ w)).numpy()[wrong].sum()
    assert_close(F.perceptron_loss(x @ w, y, reduction="sum"), expected)
    slope = grad(lambda w: F.perceptron_loss(x @ w, y, reduction="sum"))(w)
    assert_close(slope, -(y.numpy()[:, None] * x.numpy())[wrong].sum(axis=0))


def test_a_perceptron_learns_from_zero() -> None:
    """At w = 0 nothing is classified, and the gradient is that of all samples."""
    x = normal(60, 2)
    y = (x @ of_array(np.array([1.0, -2.0]))).sign()
    w = of_array(np.zeros(2))
    for _ in range(200):
        for i in range(60):
            w = w - grad(lambda w, i=i: F.perceptron_loss(x[i] @ w, y[i]))(w)
        if F.perceptron_loss(x @ w, y).item() == 0:
            break
    assert F.zero_one_loss((x @ w).sign(), y).item() == 0


# --- margins and distances ------------------------------------------------------------------------


def test_multi_margin_with_two_classes_is_a_hinge() -> None:
    """max(0, 1 - (x[y] - x[other])) / 2."""
    x, k = normal(20, 2), np.random.default_rng(1).integers(0, 2, size=20)
    lead = (x[:, 0] - x[:, 1]).numpy() * np.where(k == 0, 1, -1)
    losses = F.multi_margin_loss(x, of_array(k), reduction="none")
    assert_close(losses, np.maximum(0, 1 - lead) / 2)


def test_cosine_of_parallel_and_opposite_vectors() -> None:
    x = normal(5, 4)
    huge, tiny = 1e150 * x, 1e-5 * x
    assert_close(F.cosine_similarity(huge, tiny), np.ones(5), rtol=1e-12)
    assert_close(F.cosine_similarity(x, -x), -np.ones(5), rtol=1e-12)
    assert_close(F.cosine_similarity(x, 0 * x), np.zeros(5))


def test_distance_of_a_point_from_itself_has_a_gradient() -> None:
    x = normal(3, 4).requires_grad_()
    F.pairwise_distance(x, x.detach()).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_triplets_with_any_distance() -> None:
    a, p, n = (normal(4, 3, seed=s) for s in range(3))
    loss = nn.TripletMarginWithDistanceLoss(
        distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), margin=0.2
    )
    near, far = F.cosine_similarity(a, p).numpy(), F.cosine_similarity(a, n).numpy()
    assert_close(loss(a, p, n), np.maximum(0, far - near + 0.2).mean())


# --- wrong calls ----------------------------------------------------------------------------------


ELEMENTWISE = [
    "l1_loss",
    "mse_loss",
    "half_squared_loss",
    "smooth_l1_loss",
    "huber_loss",
    "poisson_nll_loss",
    "kl_div",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "soft_margin_loss",
    "hinge_embedding_loss",
    "multilabel_soft_margin_loss",
    "perceptron_loss",
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_shapes_that_would_broadcast_are_refused(name: str) -> None:
    column, row = chainrule.full((4, 1), 0.5), chainrule.ones(4)
    loss = getattr(F, name)
    fix = r"input\.squeeze\(-1\) or target\.unsqueeze\(-1\)"
    with pytest.raises(ValueError, match=rf"^{name}: input has shape \(4, 1\).*\(4,\).*{fix}"):
        loss(column, row)
    fix = r"target\.squeeze\(-1\) or input\.unsqueeze\(-1\)"
    with pytest.raises(ValueError, match=rf"^{name}: input has shape \(4,\).*\(4, 1\).*{fix}"):
        loss(row, column)
    with pytest.raises(ValueError, match=r"\(1, 4\).*\(4,\).*input\.squeeze\(0\)"):
        loss(column.T, row)
    with pytest.raises(ValueError, match=r"\(4, 1\).*\(4, 3\).*reshape, or expand"):
        loss(column, chainrule.ones(4, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: F.gaussian_nll_loss(a, b, 1.0),
        lambda a, b: F.margin_ranking_loss(a, a, b),
        lambda a, b: F.margin_ranking_loss(a, b, a),
        lambda a, b: F.cosine_embedding_loss(a, b, chainrule.ones(4)),
        lambda a, b: F.triplet_margin_loss(a, b, a),
        lambda a, b: F.triplet_margin_loss(a, a, b),
        lambda a, b: F.zero_one_loss(chainrule.ones(1, 4).long(), chainrule.ones(4, 1).long()),
        lambda a, b: F.mse_loss(a, a, weight=b),
        lambda a, b: F.huber_loss(a, a, weight=b),
        lambda a, b: F.triplet_margin_with_distance_loss(
            a, a, a[:1], distance_function=lambda x, y: (x - y).sum(1)[: len(y)]
        ),
    ],
)
def test_other_shapes_that_would_broadcast_are_refused(call: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"has shape \(.*but .* has shape \(.*equal"):
        call(chainrule.ones(4, 1), chainrule.ones(4))


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_do_not_enlarge_the_loss(name: str) -> None:
    column = chainrule.ones(4, 1)
    with pytest.raises(RuntimeError, match=rf"{name} of shape \(4,\).*\(4, 1\).*unsqueeze"):
        F.binary_cross_entropy_with_logits(column, column, **{name: chainrule.ones(4)})


LOSSES = sorted(
    name for name, value in vars(nn).items() if isinstance(value, type) and issubclass(value, Loss)
)


NEEDED: dict[str, tuple[Any, ...]] = {"PinballLoss": ([0.5],)}  # arguments without a default


@pytest.mark.parametrize("name", LOSSES)
def test_unknown_reductions_are_refused(name: str) -> None:
    make, args = getattr(nn, name), NEEDED.get(name, ())
    with pytest.raises(ValueError, match=rf"{name}: 'avg' is not a valid value.*'mean', 'sum'"):
        make(*args, reduction="avg")
    if name != "KLDivLoss":
        with pytest.raises(ValueError, match="'batchmean' is not a valid value"):
            make(*args, reduction="batchmean")


def test_there_are_all_losses() -> None:
    assert len(LOSSES) == 26


@pytest.mark.parametrize("name", [*ELEMENTWISE, "cross_entropy", "nll_loss", "zero_one_loss"])
def test_only_tensors_are_accepted(name: str) -> None:
    with pytest.raises(TypeError, match="argument 'target' must be Tensor, not float"):
        getattr(F, name)(chainrule.ones(2), 1.0)


def test_labels_of_the_perceptron_are_signs() -> None:
    with pytest.raises(ValueError, match=r"must be -1 or 1, got 0\.0.*2 \* target - 1"):
        F.perceptron_loss(tensor([1.0, 2.0]), tensor([1.0, 0.0]))


def test_negative_probabilities_and_variances_are_refused() -> None:
    x = chainrule.ones(2)
    with pytest.raises(ValueError, match=r"kl_div: target has negative.*log_target=True"):
        F.kl_div(x, tensor([0.5, -0.5]), reduction="sum")
    with pytest.raises(ValueError, match="var has negative entries.*softplus"):
        F.gaussian_nll_loss(x, x, tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="var must not be negative, got -1"):
        F.gaussian_nll_loss(x, x, -1)
    with pytest.raises(RuntimeError, match="input should be between 0 and 1.*with_logits"):
        F.binary_cross_entropy(tensor([-0.1, 0.5]), x)


def test_variances_of_other_shapes_are_refused() -> None:
    x = chainrule.ones(4, 3)
    for shape in ((3,), (2,), (1, 1), (4, 3, 1), ()):
        with pytest.raises(ValueError, match=r"var of shape .* does not fit input .*\(4, 3\)"):
            F.gaussian_nll_loss(x, x, chainrule.ones(shape))


def test_classes_out_of_range() -> None:
    x = chainrule.zeros(2, 3)
    with pytest.raises(IndexError, match=r"target 3 is out of bounds; with 3 classes"):
        nn.CrossEntropyLoss()(x, tensor([0, 3]))
    with pytest.raises(RuntimeError, match=r"target 3 is out of range; with 3 classes.*\[0, 2\]"):
        nn.MultiMarginLoss()(x, tensor([0, 3]))
    with pytest.raises(RuntimeError, match=r"target 4 is out of range.*\[-1, 2\]"):
        nn.MultiLabelMarginLoss()(x, tensor([[4, -1, -1], [0, -1, -1]]))


def test_settings_are_checked_when_the_module_is_made() -> None:
    with pytest.raises(ValueError, match="only p == 1 and p == 2.*got 3"):
        nn.MultiMarginLoss(p=3)
    for module in (nn.TripletMarginLoss, nn.TripletMarginWithDistanceLoss):
        with pytest.raises(ValueError, match="margin must be greater than 0, got 0"):
            module(margin=0)


def test_weights_are_buffers() -> None:
    module = nn.BCEWithLogitsLoss(weight=tensor([1.0, 2.0]), pos_weight=tensor([3.0, 4.0]))
    assert list(module.state_dict()) == ["weight", "pos_weight"]
    assert list(nn.CrossEntropyLoss().state_dict()) == []
    assert module.double().weight.dtype is chainrule.float64


def test_the_mean_of_nothing_is_nan() -> None:
    empty = chainrule.zeros(0, 3)
    assert math.isnan(F.mse_loss(empty, empty).item())
    assert F.mse_loss(empty, empty, reduction="sum").item() == 0
