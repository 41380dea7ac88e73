"""Modules where PyTorch has them: each public name is there, or its absence is explained."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import pytest

import chainrule
from chainrule import nn

torch = pytest.importorskip("torch")

# What PyTorch's modules export that is not theirs.
FOREIGN = {"sys", "torch", "typing", "traceback", "logging", "timedelta", "weakref", "m"}
MODULES = (
    "__config__",
    "accelerator",
    "amp",
    "autograd",
    "backends",
    "backends.cpu",
    "backends.cuda",
    "backends.mps",
    "backends.openmp",
    "compiler",
    "cpu",
    "cpu.amp",
    "cuda",
    "cuda.amp",
    "distributed",
    "distributed.device_mesh",
    "distributed.tensor",
    "fx",
    "hub",
    "jit",
    "nn.parallel",
    "onnx",
    "serialization",
    "testing",
    "utils",
    "utils.checkpoint",
    "utils.data",
    "utils.dlpack",
    "version",
)


def public(module: Any) -> list[str]:
    listed = getattr(module, "__all__", None)
    names = [n for n in dir(module) if not n.startswith("_")] if listed is None else listed
    own = ["autocast_mode", "grad_scaler"]  # files of torch.cpu.amp
    return sorted(n for n in set(names) - FOREIGN if n not in own)


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_there_or_its_absence_is_explained(name: str) -> None:
    theirs = importlib.import_module(f"torch.{name}")
    ours = importlib.import_module(f"chainrule.{name}")
    reasons: dict[str, str] = getattr(ours, "ABSENT", {})
    bare = [n for n in public(theirs) if not hasattr(ours, n) and n not in reasons]
    assert not bare, f"chainrule.{name} neither has nor explains {bare}"


@pytest.mark.parametrize("name", MODULES)
def test_no_reason_is_given_for_what_is_there(name: str) -> None:
    ours = importlib.import_module(f"chainrule.{name}")
    reasons: dict[str, str] = getattr(ours, "ABSENT", {})
    assert not [n for n in reasons if hasattr(ours, n)]
    assert not [n for n in reasons if n in ours.__all__]
    for missing, reason in reasons.items():
        with pytest.raises(AttributeError) as error:
            getattr(ours, missing)
        assert reason in str(error.value)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_listed_is_there(name: str) -> None:
    ours = importlib.import_module(f"chainrule.{name}")
    assert all(hasattr(ours, n) for n in ours.__all__)


# --- layers ---------------------------------------------------------------------------------------


def homes() -> list[str]:
    """The files of PyTorch's layers."""
    found = [m.name for m in pkgutil.iter_modules(torch.nn.modules.__path__)]
    return sorted(n for n in found if not n.startswith(("_", "linear_cross_entropy")))


@pytest.mark.parametrize("name", homes())
def test_a_layer_is_where_pytorch_has_it(name: str) -> None:
    theirs = importlib.import_module(f"torch.nn.modules.{name}")
    wanted = [n for n in theirs.__all__ if hasattr(nn, n)]
    if not wanted and name != "utils":
        return  # none of its classes exist here
    ours = importlib.import_module(f"chainrule.nn.modules.{name}")
    missing = [n for n in wanted if getattr(ours, n, None) is not getattr(nn, n)]
    assert not missing, f"list {missing} in nn/modules/{name}.py, and run make stub"
    assert getattr(nn.modules, name) is ours
    assert all(getattr(nn.modules, n) is getattr(nn, n) for n in wanted)


BASES = {
    "batchnorm": ["_BatchNorm", "_NormBase"],
    "conv": ["_ConvNd", "_ConvTransposeNd"],
    "dropout": ["_DropoutNd"],
    "instancenorm": ["_InstanceNorm"],
    "loss": ["_Loss"],
    "pooling": ["_MaxPoolNd", "_AvgPoolNd", "_AdaptiveAvgPoolNd", "_MaxUnpoolNd", "_LPPoolNd"],
    "padding": ["_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd", "_CircularPadNd"],
}


def descendants(module: ModuleType, base: str, library: ModuleType) -> set[str]:
    """The public layers of both libraries that are of a kind."""
    kind = getattr(module, base)
    shared = [n for n in dir(torch.nn) if n in nn.__all__]
    layers = {n: getattr(library, n) for n in shared if inspect.isclass(getattr(library, n))}
    return {n for n, layer in layers.items() if issubclass(layer, kind)}


@pytest.mark.parametrize(("home", "base"), [(h, b) for h, bases in BASES.items() for b in bases])
def test_isinstance_of_a_base_answers_as_in_pytorch(home: str, base: str) -> None:
    theirs = descendants(importlib.import_module(f"torch.nn.modules.{home}"), base, torch.nn)
    ours = descendants(importlib.import_module(f"chainrule.nn.modules.{home}"), base, nn)
    assert theirs
    assert ours == theirs


# --- small functions that are the same ------------------------------------------------------------


@pytest.mark.parametrize("library", [torch, chainrule], ids=["torch", "chainrule"])
def test_helpers_of_layers(library: Any) -> None:
    u = library.nn.modules.utils
    assert [u._single(3), u._pair(3), u._triple(3), u._quadruple(3)] == [
        (3,),
        (3, 3),
        (3, 3, 3),
        (3, 3, 3, 3),
    ]
    assert u._pair([1, 2]) == (1, 2)
    assert u._pair.__name__ == "_pair"
    assert u._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert u._list_with_default([None, 5], [7, 8, 9]) == [8, 5]
    with pytest.raises(ValueError, match="dimension"):
        u._list_with_default([None, 5], [9])
    state = {"module.a": 1, "b": 2, "module.b.module.c": 3}
    u.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2, "b.module.c": 3}


@pytest.mark.parametrize("library", [torch, chainrule], ids=["torch", "chainrule"])
def test_names_of_types(library: Any) -> None:
    package = library.__name__
    assert library.typename(library.zeros(1)) == f"{package}.FloatTensor"
    assert library.typename(library.zeros(1).double()) == f"{package}.DoubleTensor"
    assert [library.typename(x) for x in (3, "x", int)] == ["int", "str", "int"]
    assert library.typename(pytest.raises) == "_pytest.raises.raises"
    assert library.typename(library.nn.Linear).endswith(".linear.Linear")
    assert library.typename(library.nn.Linear(1, 1)).endswith(".linear.Linear")
