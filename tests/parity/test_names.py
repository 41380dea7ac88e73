"""Every public name of PyTorch is here, or the error for it says why not."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import chainrule
from chainrule.absent import reason_of

torch = pytest.importorskip("torch")

# Of other modules, or aliases in annotations.
NO_NAMES = ("Any", "DimOrDims", "DType", "Tensor", "torch", "TYPE_CHECKING")
OWNERS = ("", "linalg", "special", "fft", "signal.windows", "sparse", "Tensor")


def public(path: str) -> tuple[Any, list[str]]:
    """Ours, and the names of PyTorch's: its modules of its own, not those it imports."""
    ours, theirs = chainrule, torch
    for part in filter(None, path.split(".")):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    names = []
    for name in dir(theirs):
        value = getattr(theirs, name, None)
        foreign = isinstance(value, ModuleType) and not value.__name__.startswith("torch.")
        if name.startswith("_") or foreign or name in NO_NAMES:
            continue
        names.append(name)
    return ours, names


def sorted_out(path: str) -> tuple[list[str], list[str], list[str]]:
    """The names that are here, those that are not and have a reason, and the rest."""
    ours, names = public(path)
    here = [name for name in names if hasattr(ours, name)]
    absent = [name for name in names if name not in here]
    return (
        here,
        [name for name in absent if reason_of(name) is not None],
        [name for name in absent if reason_of(name) is None],
    )


@pytest.mark.parametrize("path", OWNERS)
def test_every_name_is_here_or_has_a_reason(path: str) -> None:
    _, _, missing = sorted_out(path)
    assert missing == []


# What there is at least: a name that goes away is noticed.
HERE = {
    "": 550,
    "linalg": 30,
    "special": 56,
    "fft": 22,
    "signal.windows": 11,
    "sparse": 15,
    "Tensor": 520,
}


@pytest.mark.parametrize("path", OWNERS)
def test_names_do_not_go_away(path: str) -> None:
    here, _, _ = sorted_out(path)
    assert len(here) >= HERE[path], len(here)


@pytest.mark.parametrize(
    ("owner", "name", "message"),
    [
        (chainrule, "quantize_per_tensor", "there is no quantization"),
        (chainrule, "triangular_solve", r"chainrule\.linalg has eigh"),
        (chainrule.fft, "nonsense", "module 'chainrule.fft' has no attribute 'nonsense'$"),
        (
            chainrule.ones(1),
            "to_sparse_bsr",
            "'Tensor' has no attribute 'to_sparse_bsr': sparse tensors have coordinates",
        ),
        (chainrule.ones(1), "coalesce", "a method of sparse tensors, and this one is dense"),
        (chainrule.ones(1), "nonsense", "has no attribute 'nonsense'$"),
    ],
)
def test_an_absent_name_says_why(owner: Any, name: str, message: str) -> None:
    assert not hasattr(owner, name)
    with pytest.raises(AttributeError, match=message):
        getattr(owner, name)
