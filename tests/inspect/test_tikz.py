"""Drawings for LaTeX: the same boxes, links and words as in the picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from looking.diagrams import tikz_lines
from looking.nets import NETS

import chainrule
from chainrule import inspect, models, nn, randn
from chainrule.inspect.structure.scene import Drawing


def assert_all_of_it(drawing: Drawing) -> None:
    body = tikz_lines(drawing.to_tikz())
    assert sum(" rectangle " in line for line in body) == len(drawing.boxes)
    assert sum(line.startswith("  \\draw") and " rectangle " not in line for line in body) == len(
        drawing.edges
    )
    titles = 2  # of the picture: a paper has its caption
    assert sum(line.startswith("  \\node") for line in body) == len(drawing.labels) - titles


@pytest.mark.parametrize("level", ["modules", "operations"])
@pytest.mark.parametrize("name", NETS)
def test_networks(name: str, level: str) -> None:
    net = NETS[name]()
    assert_all_of_it(inspect.draw(net.model, net.inputs, level=level))


def test_frames_lie_below_what_they_hold() -> None:
    drawing = inspect.draw(models.ResNet(8, width=4), randn(1, 3, 8, 8))
    assert_all_of_it(drawing)
    body = tikz_lines(drawing.to_tikz())
    frames = [i for i, line in enumerate(body) if "fill opacity" in line]
    assert len(frames) == sum(box.frame for box in drawing.boxes)
    assert frames == list(range(len(frames)))


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_the_inside_of_a_step(kind: type[nn.Module]) -> None:
    assert_all_of_it(inspect.wiring(kind(3, 5), cell=True))  # type: ignore[call-arg]


def test_any_text_is_text_for_latex() -> None:
    class Rude(nn.Module):
        """Raises an error with all kinds of characters."""

        def forward(self, x: chainrule.Tensor) -> chainrule.Tensor:
            raise ValueError("50% of \x00 \x1b[31m <b> & $x_1^2$ {~} # \\ \N{SNOWMAN}")

    assert_all_of_it(inspect.draw(Rude(), randn(1)))


def test_the_graph_of_a_tensor_and_a_failed_pass(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(100, 3))
    failed = inspect.draw(net, randn(2, 1, 6, 6))
    assert_all_of_it(failed)
    assert "RuntimeError" in failed.save(tmp_path / "failed.tex").read_text("utf-8")
    graph = inspect.make_dot(
        nn.functional.cross_entropy(net[:3](randn(2, 1, 6, 6)), chainrule.tensor([0, 1])),
        show_attrs=True,
        show_saved=True,
    )
    assert_all_of_it(graph)
