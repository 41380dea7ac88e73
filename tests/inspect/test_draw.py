"""Drawings of networks as modules and operations: what is in them, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from looking.diagrams import assert_laid_out_well
from looking.nets import NETS

import chainrule
from chainrule import Tensor, inspect, models, nn, ones, randn
from chainrule.inspect.structure.scene import Drawing
from chainrule.nn import functional as F


class LanguageModel(nn.Module):
    """An LSTM that predicts the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(11, 4), nn.LSTM(4, 6, 2, batch_first=True)
        self.head = nn.Linear(6, 11)

    def forward(self, tokens: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        out, state = self.lstm(self.embedding(tokens), state)
        return self.head(out), state


READY: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "AdditiveModel": lambda: (models.AdditiveModel([[0], [1, 2]], [4]), randn(2, 3)),
    "Autoencoder": lambda: (models.Autoencoder(6, [4], 2), randn(3, 6)),
    "BinaryClassifier": lambda: (models.BinaryClassifier(nn.Linear(3, 2), 2), randn(2, 3)),
    "CascadeNetwork": lambda: (models.CascadeNetwork(2, 1, units=3), randn(4, 2)),
    "CifarNet": lambda: (models.CifarNet(), randn(1, 3, 32, 32)),
    "Classifier": lambda: (models.Classifier(nn.Linear(3, 2), 2, 4), randn(2, 3)),
    "ConvAutoencoder": lambda: (models.ConvAutoencoder(), randn(1, 1, 8, 8)),
    "ConvBlock": lambda: (models.ConvBlock(1, 2, convolutions=2), randn(1, 1, 8, 8)),
    "DenoisingAutoencoder": lambda: (models.DenoisingAutoencoder(6, [4], 2), randn(3, 6)),
    "DictionaryModel": lambda: (models.DictionaryModel([Tensor.sin, Tensor.cos]), randn(5)),
    "FeatureMapModel": lambda: (models.FeatureMapModel(Tensor.sin, 3), randn(2, 3)),
    "LeNet": lambda: (models.LeNet(), randn(1, 1, 32, 32)),
    "LinearRegression": lambda: (models.LinearRegression(3), randn(2, 3)),
    "LogisticRegression": lambda: (models.LogisticRegression(3), randn(2, 3)),
    "MLP": lambda: (models.MLP(4, [8, 8], 2, dropout=0.1, norm="batch"), randn(3, 4)),
    "MnistConvNet": lambda: (models.MnistConvNet(channels=(2, 4), width=8), randn(1, 1, 28, 28)),
    "MultiTaskNet": lambda: (
        models.MultiTaskNet(nn.Linear(3, 4), {"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)}),
        randn(2, 3),
    ),
    "Perceptron": lambda: (models.Perceptron(3), randn(2, 3)),
    "RBFNetwork": lambda: (models.RBFNetwork(2, 5, 1), randn(4, 2)),
    "ResNet": lambda: (models.ResNet(8), randn(1, 3, 16, 16)),
    "SelfNormalizingMLP": lambda: (models.SelfNormalizingMLP(4, [5], 2), randn(3, 4)),
    "SequenceModel": lambda: (models.SequenceModel(3, 4, 2, bidirectional=True), randn(2, 5, 3)),
    "MemberLinear": lambda: (models.MemberLinear(2, 3, 4), randn(5, 3)),
    "TabularNetwork": lambda: (
        models.TabularNetwork(4, 3, (8,), members=2, index_sizes=[5], pieces=[2, 0, 3]),
        chainrule.cat([randn(6, 3), chainrule.ones(6, 1)], 1),
    ),
    "WeightedNetworks": lambda: (
        models.WeightedNetworks([nn.Linear(3, 2), nn.Linear(3, 2)], [0.25, 0.75]),
        randn(4, 3),
    ),
    "SoftmaxRegression": lambda: (models.SoftmaxRegression(3, 4), randn(2, 3)),
    "transformer": lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        randn(2, 5, 8),
    ),
    "two_directions": lambda: (nn.Sequential(nn.LSTM(3, 4, 2, bidirectional=True)), randn(5, 2, 3)),
    "language_model": lambda: (LanguageModel(), chainrule.arange(6).reshape(2, 3)),
    "one_layer": lambda: (nn.Linear(2, 3), randn(1, 2)),
}
TOO_LARGE = {"AlexNet"}  # 60 million weights, of the kinds of layers that CifarNet has


def test_every_ready_network_is_among_them() -> None:
    ready = {n for n in models.__all__ if isinstance(getattr(models, n), type)}
    assert ready - TOO_LARGE <= set(READY)


def names(drawing: Drawing) -> list[str]:
    return [box.name for box in drawing.boxes]


def links(drawing: Drawing) -> set[tuple[str, str]]:
    return {(e.source, e.target) for e in drawing.edges}


@pytest.mark.parametrize("level", ["modules", "operations"])
@pytest.mark.parametrize("net", NETS)
def test_nets_are_laid_out_well_at_every_depth(net: str, level: str) -> None:
    made = NETS[net]()
    for depth in (None, 0, 1, 9):
        drawing = inspect.draw(made.model, made.inputs, level=level, depth=depth)
        assert_laid_out_well(drawing)


@pytest.mark.parametrize("name", READY)
def test_ready_networks_are_laid_out_well(name: str) -> None:
    model, inputs = READY[name]()
    for depth in (None, 9):
        assert_laid_out_well(inspect.draw(model, inputs, depth=depth))


def test_links_are_the_tensors_between_modules() -> None:
    net = NETS["two_inputs"]()
    assert links(inspect.draw(net.model, net.inputs)) == {
        ("a", "left"), ("b", "right"), ("left", "add"), ("right", "add"), ("add", "tanh"),
        ("tanh", "drop"), ("drop", "head"), ("head", "output logits"), ("tanh", "output hidden"),
    }  # fmt: skip


def test_a_module_that_is_used_twice_has_two_boxes_marked_as_shared() -> None:
    net = NETS["residual"]()
    drawing = inspect.draw(net.model, net.inputs)
    assert names(drawing).count("again") == 2
    words = [label.words for label in drawing.labels]
    assert "shared: call 1 of 2" in words
    assert "shared: call 2 of 2" in words
    assert ("relu", "add") in links(drawing)  # the skip


def test_a_language_model_has_its_states_among_the_outputs() -> None:
    drawing = inspect.draw(*READY["language_model"]())
    outputs = [b.name for b in drawing.boxes if b.kind == "output"]
    assert outputs == ["output [0]", "output [1][0]", "output [1][1]"]
    assert [e.target for e in drawing.edges if e.source == "lstm"] == ["head", *outputs[1:]]


def test_boxes_say_shapes_and_parameters() -> None:
    net = NETS["lenet"]()
    facts = {b.name: b.facts for b in inspect.draw(net.model, net.inputs).boxes}
    assert facts["0"] == {"class": "Conv2d", "output": "(4, 4, 8, 8)", "parameters": "104"}
    assert facts["3"]["output"] == "(4, 64)"


def test_values_are_shown_on_hover() -> None:
    drawing = inspect.draw(nn.Sequential(nn.ReLU()), chainrule.tensor([[-1.0, 3.0]]))
    titles = re.findall(r"<title>(.*?)</title>", drawing.svg, re.DOTALL)
    assert any("out (1, 2) float32, from 0 to 3, mean 1.5" in title for title in titles)


class Residual(nn.Module):
    """A block with a skip link."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.b(F.relu(self.a(x)))


def test_a_skip_link_is_seen_when_its_block_is_closed_and_when_it_is_open() -> None:
    model = nn.Sequential(Residual(), nn.Linear(3, 2))
    closed = inspect.draw(model, ones(1, 3), depth=1)
    assert names(closed) == ["input", "0", "1", "output"]
    assert "paths part and join inside" in closed.svg
    opened = inspect.draw(model, ones(1, 3), depth=2)
    assert [b.name for b in opened.boxes if b.frame] == ["0"]
    assert ("", "add") in links(opened)  # from the entry of the frame around the layers
    assert ("0.b", "add") in links(opened)
    plain = inspect.draw(nn.Sequential(nn.Sequential(nn.Tanh(), nn.Tanh())), ones(1), depth=1)
    assert "paths part" not in plain.svg


def test_a_click_can_open_what_is_closed() -> None:
    drawing = inspect.draw(nn.Sequential(Residual(), nn.Tanh()), ones(1, 3), depth=1)
    root = ElementTree.fromstring(drawing.svg)
    space = "{http://www.w3.org/2000/svg}"
    opened = [g for g in root.iter(f"{space}g") if g.get("data-o")]
    assert [g.get("display") for g in opened] == ["none"]
    assert "".join(opened[0].itertext()).count("Linear")
    buttons = [g for g in root.iter(f"{space}g") if g.get("role") == "button"]
    assert {b.get("aria-expanded") for b in buttons} == {"false"}
    assert root.find(f"{space}script") is not None


def test_the_ground_is_light_and_fills_the_picture() -> None:
    root = ElementTree.fromstring(inspect.draw(nn.Linear(2, 2), ones(1, 2)).svg)
    ground = root.find("{http://www.w3.org/2000/svg}rect")
    assert ground is not None
    assert ground.get("fill") == "#fff"
    area = [ground.get(name) for name in ("x", "y", "width", "height")]
    assert area == root.get("viewBox", "").split()


def test_a_long_list_of_different_layers_is_cut_into_pieces() -> None:
    layers = [nn.Linear(1 + i, 2 + i) for i in range(70)]
    drawing = inspect.draw(nn.Sequential(*layers), ones(1, 1))
    assert 5 < len(drawing.boxes) <= 60
    assert_laid_out_well(drawing)
    assert drawing.svg.count(": Linear</text>") >= 70  # all are inside


def test_without_anything_to_open_there_is_no_script() -> None:
    assert "<script" not in inspect.draw(nn.Linear(1, 1), ones(1, 1)).svg


def test_the_depth_is_as_large_as_fits() -> None:
    deep = nn.Sequential(*[nn.Sequential(*[nn.Tanh() for _ in range(9)]) for _ in range(9)])
    drawing = inspect.draw(deep, ones(1, 2))
    assert names(drawing) == ["input", *map(str, range(9)), "output"]
    assert len(inspect.draw(deep, ones(1, 2), depth=2).boxes) == 9 * 9 + 9 + 2


class Failing(nn.Module):
    """Fails in a layer inside, or in its own code."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(width, 2))
        self.head = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layers(x)
        return self.head(h + x)


def test_a_failed_pass_is_drawn_up_to_the_layer_that_failed() -> None:
    drawing = inspect.draw(Failing(5), ones(2, 3))
    assert_laid_out_well(drawing)
    failed = [b for b in drawing.boxes if b.kind == "failed" and not b.frame]
    assert [b.name for b in failed] == ["layers.2"]
    assert "linear" in failed[0].facts["error"]
    assert "head" not in names(drawing)
    assert not [b for b in drawing.boxes if b.kind == "output"]


class Rude(nn.Module):
    """Raises an error with characters that XML does not know."""

    def forward(self, x: Tensor) -> Tensor:
        raise ValueError("wrong: \x00 \x1b[31m <b> & " + "y" * 300)


def test_any_text_can_be_drawn() -> None:
    assert_laid_out_well(inspect.draw(Rude(), ones(1)))
    odd = nn.Sequential()
    odd.add_module('a<b>&"', nn.Linear(1, 1))
    drawing = inspect.draw(odd, ones(1, 1))
    assert_laid_out_well(drawing)
    assert names(drawing) == ["input", 'a<b>&"', "output"]


def test_dicts_and_numbers_among_inputs_and_outputs() -> None:
    class Scaled(nn.Module):
        """Takes keywords, returns a dict in which not all is a tensor."""

        def forward(self, x: Tensor, *, scale: Tensor, power: int = 2) -> dict[str, Any]:
            return {"y": (x * scale) ** power, "power": power, "x": x}

    drawing = inspect.draw(Scaled(), {"x": ones(2), "scale": ones(1), "power": 3})
    assert [b.name for b in drawing.boxes if b.kind == "input"] == ["x", "scale"]
    assert {("pow", "output y"), ("x", "output x")} <= links(drawing)


def test_a_failure_between_modules_is_drawn_after_what_ran() -> None:
    drawing = inspect.draw(Failing(4), ones(2, 3))
    assert_laid_out_well(drawing)
    assert ("layers.2", "") in links(drawing)
    assert names(drawing)[-1] == "failed"
    assert "add" in drawing.boxes[-1].facts["error"]


def test_a_failure_of_functional_code_is_drawn_after_what_ran() -> None:
    class Functional(nn.Module):
        """One operation, and an error in the next."""

        def forward(self, x: Tensor) -> Tensor:
            return chainrule.tanh(x) @ ones(3, 3)

    drawing = inspect.draw(Functional(), ones(2, 4))
    assert_laid_out_well(drawing)
    assert names(drawing) == ["x", "tanh", "failed"]
    assert "matmul" in drawing.boxes[-1].facts["error"]


class InPlace(nn.Module):
    """Changes tensors in place."""

    def forward(self, x: Tensor) -> Tensor:
        h = x * 2
        h += 1
        h.tanh_()
        return h.exp()


def test_operations_in_place_are_in_the_chain() -> None:
    drawing = inspect.draw(InPlace(), ones(2))
    assert links(drawing) == {
        ("x", "mul"), ("mul", "add"), ("add", "tanh"), ("tanh", "exp"), ("exp", "output"),
    }  # fmt: skip


def test_a_module_that_hands_its_input_through_stands_in_the_chain() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 2)).eval()
    found = links(inspect.draw(model, ones(1, 2)))
    assert {("0", "1"), ("1", "2")} <= found
    assert ("0", "2") not in found


class Unrolled(nn.Module):
    """One cell in a loop."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.cell, self.steps = nn.Linear(3, 3), steps

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = chainrule.tanh(self.cell(x)) + x
        return x


def test_what_is_repeated_is_folded() -> None:
    drawing = inspect.draw(Unrolled(100), ones(1, 3))
    assert len(drawing.boxes) <= 12
    assert any("100 \N{MULTIPLICATION SIGN}" in name for name in names(drawing)), names(drawing)
    assert_laid_out_well(drawing)


def test_operations_show_the_weights_that_modules_hold() -> None:
    drawing = inspect.draw(nn.Sequential(nn.Linear(2, 3)), ones(1, 2), level="operations")
    assert {("0.weight", "linear"), ("0.bias", "linear")} <= links(drawing)


def test_files(tmp_path: Path) -> None:
    drawing = inspect.draw(nn.Linear(2, 3), ones(1, 2))
    assert ElementTree.parse(drawing.save(tmp_path / "net.svg"))
    page = drawing.save(tmp_path / "net.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert drawing.svg in page
    assert not re.search(r'(src|href)="', page)  # nothing is asked of anywhere
    with pytest.raises(ValueError, match="svg"):
        drawing.save(tmp_path / "net.png")


def test_it_prints_a_table() -> None:
    text = str(inspect.draw(nn.Sequential(nn.Linear(2, 3)), ones(1, 2)))
    assert "Linear" in text
    assert "(1, 3)" in text


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="level"):
        inspect.draw(nn.Linear(1, 1), ones(1, 1), level="neurons")
    with pytest.raises(ValueError, match="depth"):
        inspect.draw(nn.Linear(1, 1), ones(1, 1), depth=-1)
    with pytest.raises(TypeError, match="inputs are missing"):
        inspect.draw(nn.Linear(1, 1))
