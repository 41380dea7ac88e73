"""The graph behind a tensor, drawn under torchviz's name."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from looking.diagrams import assert_laid_out_well
from looking.nets import NETS

import chainrule
from chainrule import Tensor, inspect, nn, ones, randn
from chainrule.inspect.core.arguments import call, tensors
from chainrule.nn import functional as F

OPERATIONS = 2914  # of a graph that its user could not look at: torchviz#71


def example() -> tuple[nn.ModuleDict, Tensor]:
    net = nn.ModuleDict({"first": nn.Linear(2, 3), "last": nn.Linear(3, 1)})
    return net, F.mse_loss(net["last"](net["first"](randn(4, 2)).sin()), ones(4, 1))


@pytest.mark.parametrize("net", NETS)
def test_graphs_are_laid_out_well(net: str) -> None:
    made = NETS[net]()
    outputs = tensors(call(made.model, "test", made.inputs))
    for var in (outputs[0], outputs):
        graph = inspect.make_dot(var, dict(made.model.named_parameters()), True, True)
        assert_laid_out_well(graph)


def test_operations_and_leaves_are_those_of_the_graph() -> None:
    net, loss = example()
    graph = inspect.make_dot(loss, dict(net.named_parameters()))
    assert {(e.source, e.target) for e in graph.edges} == {
        ("first.weight", "LinearBackward"), ("first.bias", "LinearBackward"),
        ("LinearBackward", "SinBackward"), ("SinBackward", "LinearBackward"),
        ("last.weight", "LinearBackward"), ("last.bias", "LinearBackward"),
        ("LinearBackward", "SquaredErrorBackward"), ("SquaredErrorBackward", "output"),
    }  # fmt: skip
    assert sorted(b.name for b in graph.boxes if b.kind == "parameter") == [
        "first.bias", "first.weight", "last.bias", "last.weight",
    ]  # fmt: skip


def test_names_may_be_missing() -> None:
    net, loss = example()
    some = inspect.make_dot(loss, {"w": net["first"].weight})
    assert [b.name for b in some.boxes if b.kind == "parameter"].count("leaf") == 3
    pairs = inspect.make_dot(loss, net.named_parameters())  # pairs are fine, too
    assert "last.bias" in [b.name for b in pairs.boxes]
    assert "leaf" in [b.name for b in inspect.make_dot(loss).boxes]


def test_saved_tensors_are_boxes_of_their_own() -> None:
    x = ones(3, requires_grad=True)
    graph = inspect.make_dot(x * x * x, show_saved=True)
    saved = [b for b in graph.boxes if b.kind == "saved"]
    assert len(saved) == 4  # two of each product, although one tensor is held three times
    sources = [e.source for e in graph.edges if e.source.startswith("saved")]
    assert len(sources) == 4
    assert not [b for b in inspect.make_dot(x * x).boxes if b.kind == "saved"]


def test_settings_are_written_where_they_are_asked_for() -> None:
    y = ones(2, 3, requires_grad=True).sum(1)
    words = [w.words for w in inspect.make_dot(y, show_attrs=True).labels]
    assert "dim: (-1,)" in words
    assert "dim: (-1,)" not in [w.words for w in inspect.make_dot(y).labels]
    short = [w.words for w in inspect.make_dot(y, show_attrs=True, max_attr_chars=5).labels]
    assert "dim: " in short


def test_values_are_shown_on_hover() -> None:
    x = chainrule.tensor([1.0, 3.0], requires_grad=True)
    titles = re.findall(r"<title>(.*?)</title>", inspect.make_dot(x.sum(), {"x": x}).svg, re.DOTALL)
    assert "x: (2,) float32, from 1 to 3, mean 2" in titles
    assert "() float32, 4" in titles


def deep(operations: int) -> tuple[nn.Module, Tensor]:
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(operations // 2)])
    x = randn(1, 2)
    for layer in net:
        x = layer(x).sin()
    return net, x


@pytest.mark.parametrize("named", [True, False])
def test_a_large_graph_folds_to_few_boxes(named: bool) -> None:
    net, y = deep(OPERATIONS)
    start = time.process_time()
    graph = inspect.make_dot(y, dict(net.named_parameters()) if named else None)
    assert time.process_time() - start < 6  # less than one on an idle core
    assert len(graph.boxes) <= 60
    assert_laid_out_well(graph)
    assert f"{OPERATIONS:,} operations" in [w.words.split(" · ")[0] for w in graph.labels]
    assert graph.source.count("lightgrey") == OPERATIONS  # nothing is lost


def test_a_large_graph_without_a_pattern_folds_to_few_boxes() -> None:
    random.seed(0)
    values = [randn(2, requires_grad=True)]
    for _ in range(700):
        a, b = random.choice(values[-4:]), random.choice(values[-9:])
        values.append(random.choice([Tensor.add, Tensor.mul, Tensor.sub])(a, b))
    graph = inspect.make_dot(values[-1])
    assert 20 <= len(graph.boxes) <= 60
    assert_laid_out_well(graph)


def test_modules_fold_by_their_names() -> None:
    net = nn.ModuleDict({"enc": deep(60)[0], "dec": deep(60)[0]})
    x = randn(1, 2)
    for layer in (*net["enc"], *net["dec"]):
        x = F.tanh(layer(x))
    graph = inspect.make_dot(x, dict(net.named_parameters()))
    assert [b.name for b in graph.boxes] == ["enc", "dec", "output"]


def test_rendering(tmp_path: Path) -> None:
    net, loss = example()
    graph = inspect.make_dot(loss, dict(net.named_parameters()))
    path = graph.render("rnn_torchviz", directory=tmp_path / "new", format="svg")
    assert path == str(tmp_path / "new" / "rnn_torchviz.svg")
    assert Path(path).read_text("utf-8") == graph.svg
    assert graph.render(tmp_path / "net.v2", format="html").endswith("net.v2.html")
    graph.render("g", directory=tmp_path, cleanup=False)
    source = (tmp_path / "g").read_text("utf-8")
    assert source.startswith("digraph {")
    assert source.count("->") == len(graph.edges)
    with pytest.raises(ValueError, match=r"'svg' or 'html', got 'png'.*graph\.source"):
        graph.render("net", format="png")


def test_what_has_no_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="no graph behind it"):
        inspect.make_dot(ones(2))
    with pytest.raises(TypeError, match="expected a tensor"):
        inspect.make_dot("loss")  # type: ignore[arg-type]


def test_a_leaf_is_a_graph_of_itself() -> None:
    graph = inspect.make_dot(ones(2, requires_grad=True))
    assert [b.kind for b in graph.boxes] == ["parameter", "output"]
