"""Networks as units and weights, and cascades with what is trained and what is frozen."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from looking.diagrams import assert_laid_out_well, tikz_lines
from looking.nets import NETS

import chainrule
from chainrule import inspect, models, nn, randn, regularize, tensor
from chainrule.inspect.structure.canvas import Sketch
from chainrule.inspect.structure.units import FROZEN, NEGATIVE, POSITIVE, PRUNED
from chainrule.regularize import prune


def units(model: nn.Module, **options: object) -> Sketch:
    drawing = inspect.draw(model, level="units", **options)  # type: ignore[arg-type]
    assert isinstance(drawing, Sketch)
    assert_laid_out_well(drawing)
    return drawing


def small() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    with chainrule.no_grad():
        net[0].weight.copy_(tensor([[1.0, -2.0], [0.5, 4.0]]))
        net[2].weight.copy_(tensor([[-1.0, 2.0]]))
        net[2].bias.fill_(0.25)
    return net


def lines(drawing: Sketch) -> dict[str, tuple[str, float, str]]:
    """Color, width and dashes of each weight, by what is shown on hover."""
    found = {}
    for path in ElementTree.fromstring(drawing.svg).iter("{http://www.w3.org/2000/svg}path"):
        title = path.find("{http://www.w3.org/2000/svg}title")
        if title is not None and "→" in (title.text or ""):
            key = str(title.text).split(":")[0]
            width = float(path.get("stroke-width", "0"))
            found[key] = (path.get("stroke", ""), width, path.get("stroke-dasharray", ""))
    return found


def test_links_are_the_weights() -> None:
    found = {(k.source, k.target): k.weight for k in units(small()).links}
    assert found == {
        ("x1", "h1"): 1.0, ("x2", "h1"): -2.0, ("x1", "h2"): 0.5, ("x2", "h2"): 4.0,
        ("h1", "y1"): -1.0, ("h2", "y1"): 2.0,
    }  # fmt: skip


def test_color_is_the_sign_and_width_the_size() -> None:
    drawn = lines(units(small(), weights=True))
    assert drawn["x1 → h1"][0] == POSITIVE
    assert drawn["x2 → h1"][0] == NEGATIVE
    widths = {key: width for key, (_, width, _) in drawn.items()}
    assert widths["x2 → h2"] == max(widths.values()) == 4.5
    # linear in the size: 0.5 and 4 at the ends
    assert widths["x1 → h1"] == pytest.approx(0.5 + 4 * 1 / 4)
    assert len({width for _, width, _ in lines(units(small())).values()}) == 1


def test_numbers_are_shown_on_hover() -> None:
    svg = units(small()).svg
    assert "x2 → h1: -2 (0.weight, trained)" in svg
    assert "y1 (2: Linear), bias 0.25" in svg
    assert "h1 (0: Linear), tanh, bias" in svg


def test_pruned_and_frozen_links_are_marked() -> None:
    net = small()
    prune.set_masks(net, {"0.weight": tensor([[True, False], [True, True]])})
    net[2].requires_grad_(False)
    drawing = units(net, weights=True)
    states = {(k.source, k.target): k.state for k in drawing.links}
    assert states["x2", "h1"] == "pruned"
    assert states["x1", "h1"] == "trained"
    assert states["h1", "y1"] == "frozen"
    drawn = lines(drawing)
    assert drawn["x2 → h1"][0] == PRUNED
    assert drawn["x2 → h1"][2] == "1.5 3"
    assert drawn["h1 → y1"][0] == FROZEN
    words = [label.words for label in drawing.labels]
    assert {"positive", "frozen", "pruned"} <= set(words)
    assert "negative" not in words  # the only trained ones left are positive


def test_many_units_are_shortened() -> None:
    net = nn.Sequential(nn.Linear(300, 50), nn.ReLU(), nn.Linear(50, 10))
    drawing = units(net)
    assert len(drawing.boxes) == 7 + 7 + 7
    assert {"x1", "x300", "h50", "y10"} <= {box.name for box in drawing.boxes}
    assert "50 units" in [label.words for label in drawing.labels]
    assert len(units(net, most=4).boxes) == 9
    weight = next(k for k in drawing.links if (k.source, k.target) == ("x300", "h50"))
    assert weight.weight == pytest.approx(net[0].weight[49, 299].item())


def test_layers_of_their_own_have_names_of_their_own() -> None:
    names = [box.name for box in units(models.MLP(2, [3, 2], 1)).boxes]
    assert names == ["x1", "x2", "h1.1", "h1.2", "h1.3", "h2.1", "h2.2", "y1"]


def test_parts_of_the_inputs_lead_where_they_lead() -> None:
    model = models.AdditiveModel([[0], [1, 2]], [2])
    pairs = {(k.source, k.target) for k in units(model, inputs=randn(1, 3)).links}
    assert ("x1", "h1.1") in pairs
    assert not any(s in ("x2", "x3") and t.startswith("h1.") for s, t in pairs)


def test_sums_of_units_are_links_without_a_weight() -> None:
    net = NETS["two_inputs"]()
    net.model.eval()
    drawing = units(net.model, inputs=net.inputs, weights=True)
    fixed = [k for k in drawing.links if k.state == "fixed"]
    assert len(fixed) == 8
    drawn = lines(drawing)
    assert {drawn[f"{k.source} → {k.target}"][1] for k in fixed} == {1.0}
    assert "fixed at 1" in [label.words for label in drawing.labels]


def test_units_are_normalized_one_by_one() -> None:
    words = [w.words for w in units(models.MLP(3, [4], 2, norm="batch")).labels]
    assert any("relu" in line and "," in line for line in words)


def test_a_cascade_shows_what_is_trained_and_what_is_frozen() -> None:
    chainrule.manual_seed(0)
    x = randn(30, 2)
    y = (x[:, 0] * x[:, 1] > 0).float()
    model = regularize.cascade_correlation(x, y, max_units=3, candidate_epochs=20).model
    drawing = units(model, weights=True)
    states = {(k.source, k.target): k.state for k in drawing.links}
    hidden = [f"h{i}" for i in range(1, len(model.units) + 1)]
    for i, h in enumerate(hidden):
        for source in ("x1", "x2", *hidden[:i]):
            assert states[source, h] == "frozen"
    assert all(states[source, "y1"] == "trained" for source in ("x1", "x2", *hidden))
    assert len(states) == sum(2 + i for i in range(len(hidden))) + 2 + len(hidden)
    value = next(k.weight for k in drawing.links if (k.source, k.target) == ("h1", "h2"))
    assert value == pytest.approx(model.units[1].weight[0, 2].item())
    words = [label.words for label in drawing.labels]
    assert {"trained", "frozen", "+1"} <= set(words)


@pytest.mark.parametrize("cascade", [False, True])
def test_tikz_is_a_whole_document(cascade: bool) -> None:
    model = models.CascadeNetwork(2, 1, units=3) if cascade else small()
    body = tikz_lines(units(model, weights=True).to_tikz())
    circles = sum("circle[" in line for line in body)
    assert circles == len(units(model).boxes)


def test_special_characters_are_escaped_in_tikz() -> None:
    class My_Net(nn.Sequential):
        """A name with an underscore."""

    tikz = units(nn.Sequential(My_Net(nn.Linear(1, 1)), nn.Linear(1, 1))).to_tikz()
    assert not re.search(r"(?<!\\)_", tikz[tikz.index("\\node") :])


@pytest.mark.parametrize("name", ["lenet", "residual", "lstm"])
def test_other_networks_are_refused(name: str) -> None:
    net = NETS[name]()
    with pytest.raises(
        ValueError, match=r"level='units' draws networks of Linear.*level='modules'"
    ):
        inspect.draw(net.model, net.inputs, level="units")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="give inputs"):
        inspect.draw(nn.Tanh(), level="units")
    with pytest.raises(ValueError, match="most must be at least 3"):
        inspect.draw(small(), level="units", most=1)
    with pytest.raises(ValueError, match="depth is for modules"):
        inspect.draw(small(), level="units", depth=1)
    with pytest.raises(ValueError, match="weights and most are for level='units'"):
        inspect.draw(small(), randn(1, 2), weights=True)


def test_weights_that_are_not_finite_are_said_to_be() -> None:
    net = small()
    with chainrule.no_grad():
        net[0].weight[0, 0] = float("nan")
    drawing = units(net, weights=True)
    assert "not finite" in [label.words for label in drawing.labels]
    assert "x1 → h1: nan" in drawing.svg
