"""Metrics against scikit-learn's, on random predictions with ties, rare and missing classes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import metrics as sk

import chainrule
from chainrule import metrics

SEEDS = range(8)


def scores_and_classes(seed: int, k: int = 4, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    scores = r.integers(-3, 4, size=(n, k)) + r.choice([0.0, 0.25], size=(n, k))  # ties occur
    return scores, r.choice(k, size=n, p=r.dirichlet(np.ones(k)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", None])
def test_precision_recall_f1(seed: int, average: str | None) -> None:
    scores, true = scores_and_classes(seed)
    predicted = scores.argmax(1)
    labels = None if average else list(range(4))
    for name, reference in (
        ("precision", sk.precision_score),
        ("recall", sk.recall_score),
        ("f1", sk.f1_score),
    ):
        ours = getattr(metrics, name)(chainrule.tensor(scores), chainrule.tensor(true), average)
        theirs = reference(true, predicted, average=average, labels=labels, zero_division=0)
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_binary_precision_recall_f1_are_those_of_class_one(seed: int) -> None:
    scores, true = scores_and_classes(seed, k=2)
    if len(set(true)) < 2:
        true[0] = 1 - true[0]
    predicted = scores.argmax(1)
    pairs = (
        (metrics.precision, sk.precision_score),
        (metrics.recall, sk.recall_score),
        (metrics.f1, sk.f1_score),
    )
    for ours, theirs in pairs:
        assert ours(scores, true) == pytest.approx(theirs(true, predicted, zero_division=0))


@pytest.mark.parametrize("seed", SEEDS)
def test_accuracies_and_confusion(seed: int) -> None:
    scores, true = scores_and_classes(seed)
    predicted = scores.argmax(1)
    assert metrics.accuracy(scores, true) == sk.accuracy_score(true, predicted)
    assert metrics.error_rate(scores, true) == pytest.approx(sk.zero_one_loss(true, predicted))
    matrix = sk.confusion_matrix(true, predicted, labels=range(4))
    np.testing.assert_array_equal(metrics.confusion_matrix(scores, true).numpy(), matrix)
    present = sk.confusion_matrix(true, predicted, labels=sorted(set(true)))
    recalls = [matrix[k, k] / matrix[k].sum() for k in sorted(set(true))]
    assert present.shape[0] == len(recalls)
    assert metrics.balanced_accuracy(scores, true) == pytest.approx(np.mean(recalls))
    for k in (1, 2, 3):
        theirs = sk.top_k_accuracy_score(true, scores, k=k, labels=range(4))
        assert metrics.top_k_accuracy(scores, true, k) == pytest.approx(theirs)
        assert metrics.top_k_error(scores, true, k) == pytest.approx(1 - theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_roc_auc(seed: int) -> None:
    scores, true = scores_and_classes(seed, k=2)
    true[:2] = [0, 1]
    for given in (scores[:, 0], scores[:, :1]):
        assert metrics.roc_auc(given, true) == pytest.approx(sk.roc_auc_score(true, scores[:, 0]))
    assert metrics.roc_auc(scores, true) == pytest.approx(
        sk.roc_auc_score(true, scores[:, 1] - scores[:, 0])
    )
    p, many = scores_and_classes(seed)
    many[:4] = range(4)
    p = softmax(p, axis=1)
    assert metrics.roc_auc(p, many) == pytest.approx(sk.roc_auc_score(many, p, multi_class="ovr"))


@pytest.mark.parametrize("seed", SEEDS)
def test_nll_and_calibration(seed: int) -> None:
    scores, true = scores_and_classes(seed)
    p = softmax(scores, axis=1)
    assert metrics.nll(scores, true) == pytest.approx(sk.log_loss(true, p, labels=range(4)))
    one, binary = scores[:, 0], (true > 1).astype(int)
    expected = sk.log_loss(binary, 1 / (1 + np.exp(-one)), labels=[0, 1])
    assert metrics.nll(one, binary) == pytest.approx(expected)
    confidence, hit = p.max(1), p.argmax(1) == true
    edges, total = np.linspace(0, 1, 16), 0.0
    for low, high in itertools.pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += inside.mean() * abs(hit[inside].mean() - confidence[inside].mean())
    for given in (p, scores):
        assert metrics.calibration_error(given, true) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("shape", [(30,), (30, 1), (30, 3)])
def test_regression(shape: tuple[int, ...]) -> None:
    r = np.random.default_rng(0)
    true, predicted = r.normal(size=shape), r.normal(size=shape)
    for ours, theirs in (
        (metrics.mse, sk.mean_squared_error),
        (metrics.rmse, sk.root_mean_squared_error),
        (metrics.mae, sk.mean_absolute_error),
        (metrics.r2, sk.r2_score),
    ):
        assert ours(predicted, true) == pytest.approx(theirs(true, predicted))
    assert metrics.max_error(predicted, true) == pytest.approx(np.abs(predicted - true).max())


def test_r2_of_a_constant_target() -> None:
    assert metrics.r2([1.0, 1.0], [1.0, 1.0]) == sk.r2_score([1.0, 1.0], [1.0, 1.0]) == 1
    assert metrics.r2([1.0, 2.0], [1.0, 1.0]) == sk.r2_score([1.0, 1.0], [1.0, 2.0]) == 0


def test_sums_of_squares_of_least_squares_add_up() -> None:
    r = np.random.default_rng(1)
    x = np.c_[np.ones(20), r.normal(size=20)]
    y = x @ [1.0, 2.0] + r.normal(size=20)
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    rss = metrics.residual_sum_of_squares(fitted, y)
    ess = metrics.explained_sum_of_squares(fitted, y)
    assert rss == pytest.approx(((y - fitted) ** 2).sum())
    assert rss + ess == pytest.approx(((y - y.mean()) ** 2).sum())


def test_one_hot_and_single_score_targets() -> None:
    scores, true = scores_and_classes(0)
    assert metrics.accuracy(scores, np.eye(4)[true]) == metrics.accuracy(scores, true)
    assert metrics.accuracy(np.array([1.5, -0.5, 0.2]), np.array([1, 0, 0])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.accuracy([[0.0, 1.0]], [1, 0]), "accuracy: .*one length"),
        (lambda: metrics.accuracy(np.zeros((0, 2)), []), "at least one"),
        (lambda: metrics.mse([[1.0], [2.0]], [1.0, 2.0]), r"mse: .*\(2, 1\) and \(2,\)"),
        (lambda: metrics.roc_auc([0.1, 0.2], [1, 1]), "roc_auc: needs samples of both classes"),
        (lambda: metrics.top_k_accuracy(np.zeros((2, 3)), [0, 1], 4), "K >= k = 4"),
        (lambda: metrics.precision([0, 1, 2], [0, 1, 2], "binary"), "for two classes, got 3"),
        (lambda: metrics.f1([0, 1], [0, 1], "mean"), "average must be"),
        (lambda: metrics.confusion_matrix([0, 3], [0, 1], 2), r"must lie in \[0, 2\)"),
        (lambda: metrics.metric_functions("acuracy"), "unknown name 'acuracy'"),
        (lambda: metrics.calibration_error([[0.5, 0.5]], [0], 0), "bins must be positive"),
    ],
)
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# --- what an output and a label may look like -----------------------------------------------------


def test_a_perfect_xor_network_is_right_whatever_its_scores_and_labels_are() -> None:
    logits = np.array([-3.0, 2.0, 0.3, -0.1])
    targets = np.array([0, 1, 1, 0])
    for output in (logits, 1 / (1 + np.exp(-logits)), logits[:, None], logits > 0):
        for target in (targets, targets.astype(float), targets[:, None], np.eye(2)[targets]):
            assert metrics.accuracy(output, target) == 1
            assert metrics.f1(output, target) == 1
    for output in (logits, 2 * (logits > 0) - 1):
        assert metrics.accuracy(output, 2 * targets - 1) == 1
        assert metrics.accuracy(output, 2.0 * targets - 1) == 1
        assert metrics.confusion_matrix(output, 2 * targets - 1).tolist() == [[2, 0], [0, 2]]
    two = np.stack([-logits, logits], 1)
    assert metrics.accuracy(two, 2 * targets - 1) == metrics.accuracy(two, targets) == 1


def test_scores_say_where_to_cut() -> None:
    scores, true = np.array([0.2, 0.4, 0.7]), np.array([1, 1, 1])
    assert metrics.accuracy(scores, true) == pytest.approx(1 / 3)
    assert metrics.accuracy(scores, true, scores="probabilities") == pytest.approx(1 / 3)
    assert metrics.accuracy(scores, true, scores="logits") == 1
    assert metrics.accuracy(scores, [0, 0, 1], scores="labels") == 1
    assert metrics.accuracy(scores, [-1, 1, 1], scores="labels") == pytest.approx(2 / 3)
    assert metrics.accuracy([-0.1, 0.2, 1.1], [0, 0, 1], scores="labels") == 1
    assert metrics.accuracy(scores, [-1, -1, 1], scores="probabilities") == 1


@pytest.mark.parametrize(
    ("output", "target", "options", "message"),
    [
        ([0.2, 0.9], [-1, 1], {}, "labels of -1 and \\+1 can be read in two ways"),
        ([0.2, 0.9], [1, 1], {"scores": "labels"}, "labels of \\+1 alone can be read in two"),
        ([0.2, 1.9], [0, 1], {"scores": "probabilities"}, r"in \[0, 1\], got .* 0.2 to 1.9"),
        ([0.2, 0.9], [0, 1], {"scores": "odds"}, "scores must be 'logits', .*got 'odds'"),
        ([0.2, 0.9], [1, 2], {}, "must be 0 and 1, or -1 and \\+1, got labels from 1 to 2"),
        ([0.2, 0.9], [0.0, 0.9], {}, "whole numbers, got 0.9"),
        ([0.2, 0.9], [0.0, float("nan")], {}, "whole numbers, got nan"),
        ([[0.0, 1.0, 0.0]], [3], {}, "samples with 3 scores must be 0 to 2, got labels from 3"),
        ([[0.0, 1.0, 0.0]], [-100], {}, "leave out samples without a class"),
        ([[0.0, 1.0, 0.0]], [[1.0, 1.0, 0.0]], {}, "names no class or several"),
        ([[0.0, 1.0, 0.0]], [[1.0, 0.0]], {}, "3 scores and targets of 2 columns"),
        ([0, 1], [-1, 1], {}, r"\[0, 1\] and targets \[-1, 1\] mix labels"),
        (np.zeros((2, 3, 4)), [0, 1], {}, r"got \(2, 3, 4\); bring the classes"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(
    output: object, target: object, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metrics.accuracy(output, target, **options)  # type: ignore[arg-type]


def test_nll_of_large_logits_and_of_probabilities() -> None:
    assert metrics.nll([-800.0, 800.0], [1, 1]) == 400
    assert metrics.nll([-800.0, 800.0], [-1, 1]) == 0
    assert metrics.nll([[800.0, 0.0], [0.0, 800.0]], [1, 1]) == 400
    logits, true = np.array([-1.5, 0.5, 2.0]), np.array([0, 1, 0])
    expected = metrics.nll(logits, true)
    p = 1 / (1 + np.exp(-logits))
    assert metrics.nll(p, true) == pytest.approx(expected)
    assert metrics.nll(np.stack([1 - p, p], 1), true) == pytest.approx(expected)
    inside = np.array([0.25, 0.75])
    softplus = np.log1p(np.exp(-inside))
    assert metrics.nll(inside, [1, 1], scores="logits") == pytest.approx(softplus.mean())
    assert metrics.nll(inside, [1, 1]) == pytest.approx(-np.log(inside).mean())
    with pytest.raises(ValueError, match="sum to 1 in each row"):
        metrics.nll([[0.5, 0.7]], [1], scores="probabilities")


@pytest.mark.parametrize("name", ["accuracy", "nll", "roc_auc", "mse"])
@pytest.mark.parametrize("kind", ["tuple", "dict"])
def test_several_outputs_are_refused_with_what_to_do(name: str, kind: str) -> None:
    parts = (chainrule.zeros(3, 2), chainrule.zeros(3))
    output = parts if kind == "tuple" else dict(zip("ab", parts, strict=True))
    with pytest.raises(TypeError, match=f"{name}: the output is a {kind} of several tensors"):
        getattr(metrics, name)(output, chainrule.zeros(3))


NAN = float("nan")


@pytest.mark.parametrize("output", [[[NAN, 1.0], [0.0, 1.0], [2.0, 1.0]], [NAN, -1.0, 2.0]])
def test_an_output_that_is_nan_names_no_class(output: list[object]) -> None:
    classes = set(metrics.METRICS) - {"mse", "rmse", "mae", "r2", "max_error"}
    for name in classes - {"top_5_accuracy", "top_5_error"}:
        assert np.isnan(metrics.METRICS[name](output, [0, 1, 1])), name
    for measure in (metrics.confusion_matrix, lambda y, _: metrics.predicted_classes(y)):
        with pytest.raises(ValueError, match=r"NaN name no class; drop these samples.*autopsy"):
            measure(output, [0, 1, 1])
    assert np.isnan(metrics.top_k_accuracy([[NAN, 1.0]], [1], k=1))
    assert metrics.accuracy([[np.inf, 1.0], [-np.inf, 1.0]], [0, 1]) == 1
