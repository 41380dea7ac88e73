"""What instruments are made of: traces, results, pages, and leaving things as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import chainrule
from chainrule import nn, ones, randn
from chainrule.inspect.core.pages import Frames, page, steps_page
from chainrule.inspect.core.registry import INSTRUMENTS, instrument
from chainrule.inspect.core.results import Diagram, Result
from chainrule.inspect.core.tracing import trace
from chainrule.inspect.core.untouched import untouched


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.inner = nn.Sequential(nn.Tanh(), nn.Linear(3, 2))

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.inner(self.layer(self.layer(x)) * scale + x)


def test_a_trace_tells_calls_and_operations_in_order() -> None:
    seen = trace("example", Twice(), {"x": ones(2, 3), "scale": 2.0})
    assert [(c.path, c.depth) for c in seen.calls] == [
        ("", 0), ("layer", 1), ("layer", 1), ("inner", 1), ("inner.0", 2), ("inner.1", 2)
    ]  # fmt: skip
    names = [(op.name, op.call.path) for op in seen.operations]
    assert names == [
        ("linear", "layer"), ("linear", "layer"), ("mul", ""), ("add", ""),
        ("tanh", "inner.0"), ("linear", "inner.1"),
    ]  # fmt: skip
    assert seen.calls[1].outputs[0] is seen.calls[2].inputs[0]
    assert tuple(seen.output.shape) == (2, 2)
    assert [c.path for c in seen.root.below()] == [c.path for c in seen.calls]


def test_a_trace_of_a_pass_that_fails_ends_there() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(5, 2)))
    with pytest.raises(RuntimeError, match="linear"):
        trace("example", net, ones(1, 3))
    seen = trace("example", net, ones(1, 3), partial=True)
    assert seen.failed is not None
    assert seen.failed.path == "1.0"
    assert [c.finished for c in seen.calls] == [False, True, False, False]
    assert "linear" in str(seen.error)
    assert not any(m._forward_hooks for m in net.modules())


def disturb(net: nn.Sequential) -> None:
    with untouched(net):
        assert net[0].weight.grad is None
        net(randn(4, 3)).sum().backward()
        net.eval()
        net[0].register_forward_hook(lambda *_: None)
        net[0].weight.requires_grad_(False)
        net[1].running_mean = ones(3)
        raise RuntimeError("stop")


def test_untouched_restores_what_was_changed_inside() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    net(randn(4, 3)).sum().backward()
    weight, before = net[0].weight, net[0].weight.grad
    held, mean = before.clone(), net[1].running_mean.clone()
    buffer, following = net[1].running_mean, chainrule.get_rng_state()
    with pytest.raises(RuntimeError, match="stop"):
        disturb(net)
    assert weight.grad is before
    assert chainrule.equal(before, held)
    assert net[1].running_mean is buffer
    assert chainrule.equal(buffer, mean)
    assert net.training
    assert weight.requires_grad
    assert not net[0]._forward_hooks
    assert chainrule.equal(chainrule.get_rng_state(), following)
    assert net[0]._calls_forward_alone


def test_an_instrument_may_see_the_gradients_that_are_there() -> None:
    net = nn.Linear(2, 1)
    net(ones(1, 2)).sum().backward()
    with untouched(net, gradients=True):
        assert chainrule.equal(net.weight.grad, ones(1, 2))
        net.weight.grad.zero_()
    assert chainrule.equal(net.weight.grad, ones(1, 2))


def test_a_name_is_given_once() -> None:
    @instrument("V01")
    def looked_at(model: nn.Module) -> int:
        """Looks at a model for a test."""
        model.eval()
        return 1

    try:
        net = nn.Linear(1, 1)
        assert looked_at(net) == 1
        assert net.training
        assert INSTRUMENTS["looked_at"].purpose == "Looks at a model for a test."
        with pytest.raises(ValueError, match="two of the name 'looked_at'"):
            instrument()(looked_at)
    finally:
        del INSTRUMENTS["looked_at"]


def test_results_without_a_picture_say_so() -> None:
    class Number(Result):
        def __str__(self) -> str:
            return "1 < 2"

    with pytest.raises(TypeError, match="Number has no picture"):
        Number().plot()
    assert Number()._repr_html_() == "<div><pre>1 &lt; 2</pre></div>"


def test_a_diagram_is_written_as_svg(tmp_path: Path) -> None:
    class Box(Diagram):
        svg = "<svg></svg>"

        def __str__(self) -> str:
            return "a box"

    assert Box().save(tmp_path / "box.svg").read_text() == "<svg></svg>"
    with pytest.raises(ValueError, match=r"\*\.svg"):
        Box().save(tmp_path / "box.png")
    assert "<svg></svg>" in Box()._repr_html_()


def test_pages_stand_alone() -> None:
    text = steps_page("a < b", ["<p>one</p>", "<p>two</p>"])
    assert text.count('class="step"') == 2
    assert "<title>a &lt; b</title>" in text
    assert "http" not in text
    assert "http" not in page("x", "")
    with pytest.raises(ValueError, match="no frames"):
        steps_page("nothing", [])


def test_what_frames_share_is_written_once() -> None:
    pytest.importorskip("matplotlib")
    wave = [i * (-1) ** i for i in range(60)]

    def draw(figure: Any, i: int) -> None:
        ax = figure.subplots()
        ax.plot(wave)
        ax.plot([0, 50], [0, i])

    whole = Frames("waves", 4, draw, (8, 3)).to_html()
    (once,) = set(re.findall(r'<use href="#(once\d+)"', whole))
    assert whole.count(f'<use href="#{once}"') == 4
    assert whole.count(f'<path id="{once}"') == 1
    letters = re.findall(r'<path id="(DejaVuSans[^"]*)" d=', whole)
    assert len(letters) == len(set(letters)) > 3
    assert 'class="frame wide"' in whole


def test_films_are_pages_or_gifs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    film = Frames("growing", 3, lambda figure, i: figure.subplots().plot([0, i]), (2, 1))
    assert film.save(tmp_path / "film.html").read_text("utf-8").count("<section") == 3
    image = pytest.importorskip("PIL.Image")
    with image.open(film.save(tmp_path / "film.gif")) as gif:
        assert gif.n_frames == 3
    with pytest.raises(ValueError, match=r"\.html or \.gif"):
        film.save(tmp_path / "film.mp4")
