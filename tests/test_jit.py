"""``jit`` and ``fx``: programs pass through as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import chainrule as torch
from chainrule import absent, compiler, fx, jit, nn


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())


def double(x: Any) -> Any:
    return x * 2


PASSED: dict[str, Callable[[Any], Any]] = {
    "script": lambda f: jit.script(f),
    "trace": lambda f: jit.trace(f, torch.ones(2), strict=False),
    "trace_module": lambda f: jit.trace_module(f, {"forward": torch.ones(2)}),
}


@pytest.mark.parametrize("pass_through", PASSED.values(), ids=PASSED)
def test_a_program_is_returned_and_that_is_said_once(pass_through: Callable[[Any], Any]) -> None:
    net = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="returned as they are") as seen:
        assert pass_through(double) is double
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pass_through(net) is net


def test_marks_mark_nothing() -> None:
    for mark in (jit.export, jit.unused, jit.ignore, jit.script_if_tracing, jit.script_method):
        assert mark(double) is double
    assert jit.ignore(drop=True)(double) is double
    assert jit.interface(Exception) is Exception
    assert compiler.allow_in_graph(double) is double
    assert compiler.assume_constant_result(double) is double
    assert fx.wrap(double) is double
    assert fx.wrap("len") == "len"
    assert fx.has_side_effect(double) is double
    assert jit.annotate(list[int], [1]) == [1]
    assert jit.Attribute(3, int).value == 3


def test_nothing_is_ever_translated() -> None:
    asked = [
        jit.is_scripting(),
        jit.is_tracing(),
        jit.onednn_fusion_enabled(),
        compiler.is_exporting(),
        torch.onnx.is_in_onnx_export(),
    ]
    assert not any(asked)
    compiler.cudagraph_mark_step_begin()
    with jit.fuser("fuser1"), jit.optimized_execution(True), jit.strict_fusion():
        pass


def test_modules_written_for_it_are_modules() -> None:
    class Net(jit.ScriptModule):
        __constants__ = ("n",)

        def __init__(self) -> None:
            super().__init__()
            self.n: jit.Final[int] = 2
            self.layer = nn.Linear(3, 2)

        @jit.script_method
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.n * self.layer(x)

    assert Net()(torch.ones(1, 3)).shape == (1, 2)
    assert not isinstance(nn.Linear(1, 1), jit.ScriptModule)


def test_a_fork_is_computed_at_once() -> None:
    future = jit.fork(double, 3)
    assert future.done()
    assert jit.wait(future) == future.value() == 6
    assert future.then(lambda f: f.value() + 1).wait() == 7


def test_freezing_asks_for_evaluation() -> None:
    net = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="only implemented for modules in eval mode"):
        jit.freeze(net)
    assert jit.freeze(net.eval()) is net
    assert jit.optimize_for_inference(net) is net


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "jit.load": (lambda: jit.load("net.pt"), "no TorchScript here; chainrule.save"),
    "jit.save": (lambda: jit.save(nn.Linear(1, 1), "net.pt"), "no TorchScript here"),
    "jit.CompilationUnit": (lambda: jit.CompilationUnit("def f(): ..."), "no TorchScript"),
    "fx.symbolic_trace": (lambda: fx.symbolic_trace(nn.Linear(1, 1)), "register_forward_hook"),
    "fx.Tracer": (lambda: fx.Tracer(), "grad_fn"),
    "onnx.ExportableModule": (lambda: torch.onnx.ExportableModule(), "chainrule.onnx.export"),
    "hub.load": (lambda: torch.hub.load("pytorch/vision", "resnet18"), "code from the internet"),
    "hub.list": (lambda: torch.hub.list("pytorch/vision"), "chainrule.models"),
    "hub.weights": (lambda: torch.hub.load_state_dict_from_url("http://x"), "pickles"),
}


@pytest.mark.parametrize(("call", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_says_why(call: Callable[[], Any], reason: str) -> None:
    with pytest.raises(RuntimeError, match=reason):
        call()


def test_a_wrong_option_of_compile() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'fast'"):
        torch.compile(double, fast=True)
    assert torch.compile(double, disable=True) is double  # says nothing
