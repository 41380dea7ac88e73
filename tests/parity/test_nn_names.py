"""Every public name of PyTorch's nn and optim is here, or is absent with a reason."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

PATHS = (
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
)


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: its ``__all__``; without one, what PyTorch made for it."""
    if hasattr(module, "__all__"):
        return list(module.__all__)

    def is_own(value: Any) -> bool:
        home = getattr(value, "__module__", None)
        return callable(value) and (home in (None, "torch") or home.startswith("torch.nn"))

    return [name for name, value in vars(module).items() if name[0] != "_" and is_own(value)]


def missing(path: str) -> list[str]:
    ours = importlib.import_module(f"chainrule.{path}")
    theirs = importlib.import_module(f"torch.{path}")
    return [name for name in public(theirs) if not hasattr(ours, name)]


@pytest.mark.parametrize("path", PATHS)
def test_a_name_is_here_or_absent_with_a_reason(path: str) -> None:
    ours = importlib.import_module(f"chainrule.{path}")
    reasons = getattr(ours, "ABSENT", {})
    assert [name for name in missing(path) if name not in reasons] == []
    for name, reason in reasons.items():
        assert name not in vars(ours), f"{name} is here and absent"
        with pytest.raises(AttributeError, match=f"{path}' has no attribute '{name}': ") as raised:
            getattr(ours, name)
        assert str(raised.value).endswith(reason)


def test_the_test_sees_names() -> None:
    counts = {path: len(public(importlib.import_module(f"torch.{path}"))) for path in PATHS}
    assert counts["nn"] > 150
    assert counts["nn.functional"] > 110
    assert counts["optim"] > 14
    assert {"Linear", "Transformer", "Module"} <= set(public(torch.nn))
    assert {"conv2d", "relu", "pdist"} <= set(public(torch.nn.functional))


@pytest.mark.parametrize("room", ["nn", "nn.functional", "nn.init", "optim"])
def test_an_unknown_name_is_an_ordinary_error(room: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'chainrule.{room}' has no attribute 'Foo'$"):
        importlib.import_module(f"chainrule.{room}").Foo  # noqa: B018


LAZY = [name for name in chainrule.nn.__all__ if name.startswith("Lazy") and name[-1] in "123rd"]


@pytest.mark.parametrize("name", LAZY)
def test_lazy_layers_have_signatures(name: str) -> None:
    """Names, order and defaults of PyTorch's; what is ours alone comes behind."""
    ours, theirs = (
        list(inspect.signature(getattr(library.nn, name)).parameters.values())
        for library in (chainrule, torch)
    )
    both = [p for p in ours if p.name in {q.name for q in theirs}]
    assert [(p.name, p.default) for p in both] == [(p.name, p.default) for p in theirs]
    assert not {"args", "kwargs"} & {p.name for p in ours}


# --- functions under PyTorch's other names --------------------------------------------------------

X = np.random.default_rng(0).normal(size=(2, 4, 6, 6))
CALLS: dict[str, Any] = {
    "pdist": lambda F, x: F.pdist(x[0, 0]),
    "pdist p=1": lambda F, x: F.pdist(x[0, 0], p=1.0),
    "pdist p=inf": lambda F, x: F.pdist(x[0, 0], p=float("inf")),
    "upsample": lambda F, x: F.upsample(x, scale_factor=2),
    "upsample_nearest": lambda F, x: F.upsample_nearest(x, size=9),
    "upsample_bilinear": lambda F, x: F.upsample_bilinear(x, scale_factor=2),
    "native_channel_shuffle": lambda F, x: F.native_channel_shuffle(x, 2),
    "max_pool1d_with_indices": lambda F, x: F.max_pool1d_with_indices(x[0], 2, 1),
    "max_pool2d_with_indices": lambda F, x: F.max_pool2d_with_indices(x, 2, 1),
    "max_pool3d_with_indices": lambda F, x: F.max_pool3d_with_indices(x, 2),
    "adaptive_max_pool1d_with_indices": lambda F, x: F.adaptive_max_pool1d_with_indices(x[0], 4),
    "adaptive_max_pool2d_with_indices": lambda F, x: F.adaptive_max_pool2d_with_indices(x, 4),
    "adaptive_max_pool3d_with_indices": lambda F, x: F.adaptive_max_pool3d_with_indices(x, 3),
}


@pytest.mark.filterwarnings("ignore:.*upsample.*deprecated")
@pytest.mark.parametrize("name", CALLS)
def test_other_names(name: str) -> None:
    ours, theirs = (
        CALLS[name](library.nn.functional, library.from_numpy(X)) for library in (chainrule, torch)
    )
    if not isinstance(theirs, tuple):
        ours, theirs = (ours,), (theirs,)
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine, other.numpy(), rtol=1e-10, atol=1e-12)


def test_pdist_of_equal_rows_has_a_gradient() -> None:
    x = chainrule.ones(3, 2, requires_grad=True)
    chainrule.nn.functional.pdist(x).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]] * 3
    with pytest.raises(RuntimeError, match="only 2D tensors"):
        chainrule.nn.functional.pdist(chainrule.ones(3))


# --- fractional pooling ---------------------------------------------------------------------------


@pytest.mark.parametrize("nd", [2, 3])
def test_places_of_fractional_maxima(nd: int) -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, *(8, 7, 6)[:nd]))
    u = np.random.default_rng(2).uniform(size=(2, 3, nd))
    found = []
    for library in (chainrule, torch):
        pool = getattr(library.nn.functional, f"fractional_max_pool{nd}d_with_indices")
        given = library.from_numpy(x), 2
        found.append(pool(*given, output_size=4, _random_samples=library.from_numpy(u)))
    for mine, other in zip(*found, strict=True):
        assert_close(mine, other.numpy(), rtol=0, atol=0)


def test_fractional_pooling_draws_and_takes_one_sample() -> None:
    chainrule.manual_seed(0)
    x = chainrule.randn(3, 20, 20)
    pool = chainrule.nn.FractionalMaxPool2d(2, output_ratio=0.6, return_indices=True)
    first, second = pool(x), pool(x)
    assert first[0].shape == (3, 12, 12)
    assert first[1].tolist() != second[1].tolist()
    assert (
        first[0].flatten().tolist()
        == x.flatten(1).gather(1, first[1].flatten(1)).flatten().tolist()
    )


POOLING_ERRORS: list[tuple[dict[str, Any], str]] = [
    ({}, "requires specifying either an output size, or a pooling ratio"),
    ({"output_size": 2, "output_ratio": 0.5}, "only one of output_size and output_ratio"),
    ({"output_ratio": 1.5}, "output_ratio must be between 0 and 1"),
]


@pytest.mark.parametrize("library", [chainrule, torch], ids=["ours", "theirs"])
@pytest.mark.parametrize(("given", "match"), POOLING_ERRORS)
def test_errors_of_fractional_pooling(library: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        library.nn.FractionalMaxPool2d(2, **given)


def test_windows_that_do_not_fit_are_refused() -> None:
    pool = chainrule.nn.functional.fractional_max_pool2d
    with pytest.raises(RuntimeError, match=r"\(3, 3\) do not fit \(4, 4\) times into"):
        pool(chainrule.ones(1, 1, 5, 5), 3, output_size=4)
    with pytest.raises(RuntimeError, match="expected an input of 3 or 4 dimensions"):
        pool(chainrule.ones(5, 5), 3, output_size=4)


# --- batch normalization of one process, the adaptive softmax -------------------------------------


def test_converted_normalizations_share_their_tensors() -> None:
    nn = chainrule.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4, eps=0.1, momentum=0.3)))
    plain, weight, x = net[1][0], net[1][0].weight, chainrule.randn(5, 3)
    expected = net(x)
    plain.reset_running_stats()
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert made is net
    assert isinstance(net[1][0], nn.SyncBatchNorm)
    assert net[1][0].weight is weight
    assert net(x).tolist() == expected.tolist()
    assert net[1][0].running_mean is plain.running_mean
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3, affine=False).eval())
    assert isinstance(alone, nn.SyncBatchNorm)
    assert not alone.training
    assert alone.weight is None


def test_adaptive_softmax_in_whole() -> None:
    args = (6, 9, [2, 5], 2.0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*args).double()
    ours = chainrule.nn.AdaptiveLogSoftmaxWithLoss(*args).double()
    ours.load_state_dict(theirs.state_dict())
    x = np.random.default_rng(0).normal(size=(20, 6))
    a, b = chainrule.from_numpy(x), torch.from_numpy(x)
    assert_close(ours.log_prob(a).detach(), theirs.log_prob(b).detach().numpy(), rtol=1e-10)
    assert ours.predict(a).tolist() == theirs.predict(b).tolist()
    one = ours(a[0], chainrule.tensor(7))
    assert_close(one.output.detach(), ours.log_prob(a[:1])[0, 7].detach(), rtol=1e-12)
    assert_close(one.loss.detach(), -one.output.detach(), rtol=1e-12)


@pytest.mark.parametrize("library", [chainrule, torch], ids=["ours", "theirs"])
def test_errors_of_the_adaptive_softmax(library: Any) -> None:
    kind, ones = library.nn.AdaptiveLogSoftmaxWithLoss, library.ones(2, 6)
    for cutoffs in ([5, 2], [0, 3], [2, 9], [2, 2]):
        with pytest.raises(ValueError, match="cutoffs should be a sequence of unique, positive"):
            kind(6, 9, cutoffs)
    with pytest.raises(ValueError, match="length larger than 0"):
        kind(6, 9, [])
    with pytest.raises(RuntimeError, match="Target values should be in"):
        kind(6, 9, [3])(ones, library.tensor([1, 9]))
    with pytest.raises(RuntimeError, match="same size in the batch dimension"):
        kind(6, 9, [3])(ones, library.tensor([1, 2, 3]))
