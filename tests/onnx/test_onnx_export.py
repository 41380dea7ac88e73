"""The call itself: names, axes, files, and what it refuses before a file exists."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx_running import assert_same, engines, kinds

import chainrule
from chainrule import nn, onnx
from chainrule.onnx.sizes import Axis, formula_of, passes_of


def rand(*shape: int) -> chainrule.Tensor:
    return chainrule.randn(*shape)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


class Apply(nn.Module):
    def __init__(self, function: Any):
        super().__init__()
        self.function = function
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


# --- what comes out -------------------------------------------------------------------------------


def test_the_file(tmp_path: Path) -> None:
    """PyTorch's call, with its order of arguments."""
    model, path = net(), tmp_path / "new" / "net.onnx"
    program = onnx.export(
        model,
        (rand(2, 3),),
        path,
        export_params=True,
        opset_version=18,
        do_constant_folding=True,
        input_names=["x"],
        output_names=["scores"],
        dynamic_axes={"x": {0: "batch"}, "scores": {0: "batch"}},
    )
    assert path.read_bytes() == program.content
    assert program.inputs == {"x": "float32 (batch, 3)"}
    assert program.outputs == {"scores": "float32 (batch, 2)"}
    assert repr(program).startswith("ONNXProgram(x: float32 (batch, 3) -> scores: float32 (batch,")
    assert_same(program, model, [(rand(n, 3),) for n in (1, 2, 9)])
    program.save(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == program.content


def test_weights_have_their_names() -> None:
    program = onnx.export(net(), rand(2, 3))
    assert kinds(program) == ["Gemm", "Relu", "Gemm"]
    graph = program.model_proto.graph
    assert [t.name for t in graph.initializer] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [n.name for n in graph.node] == ["0/Gemm", "1/Relu", "2/Gemm"]
    meta = program.model_proto
    assert (meta.producer_name, meta.ir_version) == ("chainrule", 8)
    assert [(o.domain, o.version) for o in meta.opset_import] == [("", 18)]


def test_without_dynamic_axes_sizes_are_those_of_args() -> None:
    program = onnx.export(net(), rand(2, 3))
    assert program.inputs == {"input": "float32 (2, 3)"}


def test_nothing_has_to_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    program = onnx.export(net(), rand(2, 3), tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").stat().st_size == len(program.content)
    with pytest.raises(ImportError, match=r"pip install chainrule\[onnx\]"):
        _ = program.model_proto


def test_arguments_by_name_and_nested_outputs() -> None:
    def function(x: Any, pair: Any, *, scale: Any, power: int) -> Any:
        return {"sum": (x + pair[0]) * scale, "rest": [x**power, pair[1]], "same": x}

    model = Apply(function)
    args = (rand(2, 3), (rand(2, 3), rand(3)))
    kwargs = {"scale": rand(3), "power": 2}
    program = onnx.export(model, args, kwargs=kwargs, output_names=["sum"])
    assert list(program.inputs) == ["input", "input_1", "input_2", "input_3"]
    assert list(program.outputs) == ["sum", "output_1", "output_2", "output_3"]
    assert_same(program, model, [args], kwargs)


def test_one_tensor_twice_and_a_constant() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y, y, chainrule.ones(2)

    model = Apply(function)
    assert_same(onnx.export(model, rand(2, 3)), model, [(rand(2, 3),)])


def test_axes_that_are_one() -> None:
    """A batch of one row says no more than others, and may be exported with."""
    model = Apply(lambda x, y: chainrule.cat([x, y], 1).reshape(x.shape[0], -1) + x.sum(0)[:1])
    axes = {"input": {0: "n"}, "input_1": {0: "n"}}
    program = onnx.export(model, (rand(1, 3), rand(1, 2)), dynamic_axes=axes)
    assert_same(program, model, [(rand(1, 3), rand(1, 2)), (rand(4, 3), rand(4, 2))])


def test_sizes_of_outputs() -> None:
    model = Apply(lambda x: (x.reshape(-1), chainrule.cat([x, x[:1]])))
    program = onnx.export(model, rand(2, 3), dynamic_axes={"input": {0: "n"}, "output_1": {0: "m"}})
    assert program.outputs == {"output": "float32 (output_size_0)", "output_1": "float32 (m, 3)"}
    assert_same(program, model, [(rand(5, 3),)])


def test_the_model_knows_that_it_is_exported() -> None:
    seen = []
    onnx.export(Apply(lambda x: (seen.append(onnx.is_in_onnx_export()), x * 2)[1]), rand(2))
    assert all(seen)
    assert not onnx.is_in_onnx_export()


def test_what_no_output_needs_is_left_out() -> None:
    def function(x: Any) -> Any:
        chainrule.linalg.inv(x.T @ x + chainrule.eye(3))  # which could not be written
        return x + 1

    assert kinds(onnx.export(Apply(function), rand(2, 3))) == ["Add"]


# --- what is refused ------------------------------------------------------------------------------


def refused(function: Any, match: str, *args: Any, **options: Any) -> None:
    with pytest.raises(onnx.OnnxExporterError, match=match):
        onnx.export(Apply(function), args or rand(2, 3), **options)


def test_an_operation_without_a_rule_names_its_layer(tmp_path: Path) -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return chainrule.linalg.inv(x @ x.T + chainrule.eye(3))

    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), Inner())).eval()
    path = tmp_path / "net.onnx"
    with pytest.raises(
        onnx.OnnxExporterError, match="operation 'inv' in layer '1.1' .Inner. cannot be written"
    ):
        onnx.export(model, rand(3, 3), path)
    assert not path.exists()


def test_values_in_python() -> None:
    refused(lambda x: x * 2 if x.sum() > 0 else x + 1, "a branch or a loop", chainrule.ones(3) - 2)
    refused(lambda x: x * x.max().item(), "computed in Python from values of tensors")
    refused(lambda x: x + chainrule.tensor(x.detach().numpy() * 2), "another one in each pass")
    refused(lambda x: x[x > 0], "operation 'mask_select' in the model .Apply.")


def test_chance() -> None:
    refused(lambda x: x + chainrule.randn(3), "that the model .Apply. makes .* drawn at random")
    refused(lambda x: nn.functional.dropout(x, 0.5, training=True), "drawn at random")


def test_a_part_that_is_changed_in_place() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        y[0].mul_(2)
        return y

    refused(function, "a part was changed in place")


def test_axes_that_cannot_be_free() -> None:
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 2)).eval()
    with pytest.raises(
        onnx.OnnxExporterError, match=r"time = 8, as these dynamic axes say: linear"
    ):
        onnx.export(flat, rand(2, 4, 3), dynamic_axes={"input": {1: "time"}})
    pool = nn.AdaptiveAvgPool2d(3)
    with pytest.raises(
        onnx.OnnxExporterError, match="adaptive pooling to the size 3 along a dynamic axis"
    ):
        onnx.export(pool.eval(), rand(1, 1, 7, 7), dynamic_axes={"input": {2: "height"}})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"opset_version": 9}, "opset_version must be from 18 to 23, got 9"),
        ({"opset_version": 99}, "must be from 18 to 23"),
        ({"export_params": False}, "weights are always part of the file"),
        ({"do_constant_folding": False}, "always computed when the file is made"),
        ({"input_names": ["a", "b"]}, "input_names must be different names of at most 1 inputs"),
        ({"output_names": ["a", "b"]}, "output_names"),
        ({"dynamic_axes": {"x": {0: "batch"}}}, "names 'x', but the inputs are .'input'."),
        ({"dynamic_axes": {"input": {2: "batch"}}}, "axis 2 of 'input', which has 2"),
        (
            {"dynamic_axes": {"input": {0: "n"}, "output": {1: "m"}}},
            "axis 1 of the output 'output', but it has the size 2 whatever",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        onnx.export(net(), rand(2, 3), **options)


def test_axes_of_one_name_have_one_size() -> None:
    axes = {"input": {0: "n"}, "input_1": {0: "n"}}
    with pytest.raises(ValueError, match="'n' have different sizes in args: 3 in 'input_1' and 2"):
        onnx.export(Apply(lambda x, y: x), (rand(2), rand(3)), dynamic_axes=axes)
    with pytest.raises(ValueError, match="is empty in args"):
        onnx.export(net(), rand(0, 3), dynamic_axes={"input": {0: "n"}})


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a module, got function"):
        onnx.export(lambda x: x, rand(2))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="args hold no tensor"):
        onnx.export(net(), ())
    with pytest.raises(TypeError, match="returned no tensor"):
        onnx.export(Apply(lambda x: 3), rand(2))
    with pytest.raises(RuntimeError, match=r"linear: input of shape \(2, 5\)"):
        onnx.export(net(), rand(2, 5))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """The old one is left as it was, and nothing lies beside it."""
    path = tmp_path / "net.onnx"
    path.mkdir()
    with pytest.raises(OSError, match="save: "):
        onnx.export(net(), rand(2, 3), path)
    assert os.listdir(tmp_path) == ["net.onnx"]
    (tmp_path / "file").write_text("old")
    with pytest.raises(OSError, match="cannot write"):
        onnx.export(net(), rand(2, 3), tmp_path / "file" / "net.onnx")


def test_a_lazy_constant_is_one() -> None:
    """What is kept from one call to the next is a constant, not a difference of passes."""
    kept: list[Any] = []

    def function(x: Any) -> Any:
        if not kept:
            kept.append(chainrule.arange(3.0).exp() * 2)
        return x * kept[0]

    model = Apply(function)
    program = onnx.export(model, rand(2, 3))
    assert_same(program, model, [(rand(2, 3),)])
    assert engines(program)


# --- sizes ----------------------------------------------------------------------------------------


def test_formulas() -> None:
    axes = [Axis("n", 0, 0, 4), Axis("t", 0, 1, 5)]
    passes = passes_of(axes)
    assert passes == [[4, 5], [8, 5], [4, 10], [12, 15]]
    for rule in (
        lambda n, t: 2 * n + 3 * t - 1,
        lambda n, t: n * t,
        lambda n, t: 3 * n * t * t,
        lambda n, t: t**-0.5,
        lambda n, t: 0.5 * n / t,
        lambda n, t: n // 2,
    ):
        found = formula_of([rule(n, t) for n, t in passes], axes)
        assert found is not None
        assert float(found.at([20, 6])) == pytest.approx(rule(20, 6))
    for values in ([1, 2, 3, 4], [1, 1, 1, 2], [1, 2, float("nan"), 1], [0, 1, 1, 5]):
        assert formula_of(values, axes) is None
