"""Convolution and back-propagation, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looking.nets import NETS, Net

import chainrule
from chainrule import inspect, nn, tensor
from chainrule.ops.core.apply import apply, watching

LAYERS: dict[str, Any] = {
    "plain": lambda: (nn.Conv2d(1, 1, 3), (1, 5, 6)),
    "stride and padding": lambda: (nn.Conv2d(2, 2, 3, stride=2, padding=1), (2, 5, 5)),
    "dilation": lambda: (nn.Conv2d(1, 2, (2, 3), dilation=(2, 1), bias=False), (1, 5, 4)),
    "groups": lambda: (nn.Conv2d(4, 4, 2, groups=2), (4, 3, 3)),
    "same": lambda: (nn.Conv2d(1, 1, 3, padding="same"), (1, 3, 4)),
    "reflect": lambda: (nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), (1, 4, 4)),
    "transposed": lambda: (nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1), (2, 3, 3)),
    "signal": lambda: (nn.Conv1d(2, 1, 3, dilation=2, padding=2), (2, 7)),
    "transposed signal": lambda: (nn.ConvTranspose1d(1, 1, 2, stride=2), (1, 4)),
    "max": lambda: (nn.MaxPool2d(2, padding=1), (2, 4, 4)),
    "overlapping max": lambda: (nn.MaxPool1d(3, stride=1), (1, 6)),
    "mean": lambda: (nn.AvgPool2d(2, ceil_mode=True), (1, 5, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_sums_are_the_output_of_the_layer(name: str) -> None:
    chainrule.manual_seed(0)
    layer, shape = LAYERS[name]()
    layer = layer.double()
    x = chainrule.randn(*shape, dtype="float64")
    out = layer(x[None])[0].detach()
    for channel in range(len(out)):
        seen = inspect.convolution_steps(layer, x, channel=channel)
        sums = [seen.bias + sum(t.weight * t.value for t in terms) for terms in seen.terms]
        got = np.array(sums).reshape(out[channel].shape)
        np.testing.assert_allclose(got, out[channel].numpy(), rtol=1e-6, atol=1e-12)
        for terms in seen.terms:
            for t in terms:
                at = (t.channel, t.row, t.column) if x.ndim == 3 else (t.channel, t.column)
                assert t.value == float(x[at])


def test_weights_are_those_of_the_kernel_in_their_order() -> None:
    """The picture of the courses: ((1,0,1),(0,1,0),(1,0,1)) over an image of 5 x 5."""
    layer = nn.Conv2d(1, 1, 3, bias=False)
    layer.weight.data.copy_(tensor([[[[1.0, 0, 1], [0, 1, 0], [1, 0, 1]]]]))
    image = tensor(
        [[1.0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
    )
    seen = inspect.convolution_steps(layer, image)
    assert seen.output.tolist() == [[4, 3, 4], [2, 4, 3], [2, 3, 4]]
    # Weights that are zero are read as well: a window has nine cells.
    assert [len(terms) for terms in seen.terms] == [9] * 9
    assert [t.weight for t in seen.terms[4]] == [1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert [(t.row, t.column) for t in seen.terms[4]][:4] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert seen.sentence(0).endswith("= 4")


def test_padding_that_is_read_is_shown() -> None:
    seen = inspect.convolution_steps(nn.Conv2d(1, 1, 3, padding=1), (4, 4))
    assert sorted(seen.padding[0]) == [(-1, -1), (-1, 0), (-1, 1), (0, -1), (1, -1)]
    assert seen.padding[5] == []
    scene = seen.scene(0)
    assert sum(cell.dashed for cell in scene.cells) == 6 * 6 - 4 * 4


@pytest.mark.parametrize("name", LAYERS)
def test_a_scene_has_no_cell_on_another_and_all_inside(name: str) -> None:
    chainrule.manual_seed(0)
    seen = inspect.convolution_steps(*LAYERS[name]())
    for step in (0, len(seen) - 1):
        scene = seen.scene(step)
        boxes = [(c.x, c.y, c.x + c.size, c.y + c.size) for c in scene.cells]
        for x0, y0, x1, y1 in boxes:
            assert 0 <= x0 < x1 <= scene.width
            assert 0 <= y0 < y1 <= scene.height
        corners = [(x0, y0) for x0, y0, _, _ in boxes]
        assert len(set(corners)) == len(corners)
        for words in scene.words:
            assert words.x + 6.0 * len(words.text) <= scene.width + 1, words
            for x0, y0, x1, y1 in boxes:
                end = words.x + 6.0 * len(words.text)
                assert not (words.x < x1 and x0 < end and y0 < words.y - 8 and words.y < y1)
        marked = [c for c in scene.cells if c.mark]
        read = len(seen.terms[step]) + 1 + len(seen.padding[step]) * len(seen.input)
        used = len(seen.used[step]) if seen.kernel is not None else 0
        assert len(marked) == read + (used if used < _size(seen.kernel) else 0)


def _size(kernel: Any) -> int:
    return 0 if kernel is None else kernel.numel()


def test_numbers_of_the_kernel_that_meet_the_image() -> None:
    border = inspect.convolution_steps(nn.Conv2d(1, 1, 3, padding=1), (4, 4))
    assert border.used[0] == {(0, 1, 1), (0, 1, 2), (0, 2, 1), (0, 2, 2)}
    assert len(border.used[5]) == 9
    spread = inspect.convolution_steps(nn.ConvTranspose2d(1, 1, 3, stride=2), (3, 3))
    # One number of the kernel makes each output between two of the image.
    assert spread.used[5] == {(0, 0, 1)}
    assert [t.weight for t in spread.terms[5]] == [float(spread.kernel[0, 0, 1])]


def test_a_long_number_stays_in_its_cell() -> None:
    layer = nn.Conv2d(1, 1, 2, bias=False)
    seen = inspect.convolution_steps(layer, tensor([[-0.000123, 1.0], [2.0, 3.0]]))
    svg = seen.scene(0).to_svg()
    size = float(svg.split("-0.00012</text>")[0].rpartition("font-size:")[2].partition("px")[0])
    assert 0.6 * size * len("-0.00012") < 30


def test_all_steps_are_one_page_or_one_film(tmp_path: Path) -> None:
    seen = inspect.convolution_steps(nn.AvgPool2d(2), 4)
    page = seen.save(tmp_path / "steps.html").read_text("utf-8")
    assert page.count("<svg") == 4
    assert "src=" not in page
    pytest.importorskip("matplotlib").use("agg")
    image = pytest.importorskip("PIL.Image")
    with image.open(seen.save(tmp_path / "steps.gif")) as gif:
        assert gif.n_frames == 4


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: inspect.convolution_steps(nn.Linear(2, 2), 4), "no convolution"),
        (lambda: inspect.convolution_steps(nn.Conv3d(1, 1, 2), 4), "three dimensions"),
        (lambda: inspect.convolution_steps(nn.Conv2d(1, 1, 2), 40), "more than 1024"),
        (lambda: inspect.convolution_steps(nn.Conv2d(1, 1, 2), 4, channel=3), "no output channel"),
        (lambda: inspect.convolution_steps(nn.Conv2d(1, 1, 2), tensor([1.0])), "rows, columns"),
    ],
)
def test_what_has_no_steps(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


# --- back-propagation -----------------------------------------------------------------------------


class _Replay:
    """The operations of a pass, to be computed again from one of them on."""

    def __init__(self, net: Net):
        self.ops: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        given = net.inputs if isinstance(net.inputs, tuple) else (net.inputs,)
        with watching(lambda *all: self.ops.append(all)), chainrule.no_grad():
            self.loss = net.loss(net.model(*given), net.targets)

    def loss_with(self, number: int, value: Any) -> float:
        """The loss if the result of one operation were another."""
        first = self.ops[number - 1][3]
        known: dict[int, Any] = {id(first[0] if isinstance(first, tuple) else first): value}
        with chainrule.no_grad():
            for op, inputs, params, result in self.ops[number:]:
                again = apply(op, tuple(known.get(id(t), t) for t in inputs), params)
                parts = result if isinstance(result, tuple) else (result,)
                fresh = again if isinstance(again, tuple) else (again,)
                known |= {id(a): b for a, b in zip(parts, fresh, strict=True)}
        return float(known[id(self.loss)])


@pytest.mark.parametrize("name", NETS)
def test_every_gradient_on_the_way_is_a_finite_difference(name: str) -> None:
    chainrule.manual_seed(0)
    net = NETS[name]()
    net.model.double().eval()
    inputs = net.inputs if isinstance(net.inputs, tuple) else (net.inputs,)
    net.inputs = tuple(x.double() for x in inputs)
    seen = inspect.back_propagation(net.model, net.inputs, net.targets, net.loss)
    replay = _Replay(net)
    assert [s.operation for s in seen.forward] == [op.name for op, *_ in replay.ops]
    assert len(seen.backward) >= 4
    reached = {s.of: s.gradient for s in seen.backward}
    for of, gradient in reached.items():
        value = seen.forward[of - 1].value
        direction = chainrule.randn(tuple(value.shape), dtype="float64")
        step = 1e-5
        ahead, behind = (replay.loss_with(of, value + s * direction) for s in (step, -step))
        expected = (ahead - behind) / (2 * step)
        assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_what_is_handed_on_is_the_gradient_times_the_local_derivative() -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x, t = chainrule.randn(2, 3, dtype="float64"), tensor([0, 1])
    seen = inspect.back_propagation(net, x, t, nn.functional.cross_entropy)
    kinds = set()
    for step in seen.backward:
        for h in step.handed:
            kinds.add(h.kind)
            if h.kind == "derivative":
                np.testing.assert_allclose(h.gradient, step.gradient * h.local, rtol=1e-12)
            if h.kind == "jacobian":
                flat = step.gradient.reshape(-1) @ h.local
                np.testing.assert_allclose(h.gradient.reshape(-1), flat, rtol=1e-10, atol=1e-15)
    assert kinds >= {"derivative", "jacobian"}
    nn.functional.cross_entropy(net(x), t).backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(seen.gradients[name], p.grad, rtol=1e-12)
    assert set(seen.gradients) == {"input", *dict(net.named_parameters())}


def test_the_page_of_a_network_stands_alone(tmp_path: Path) -> None:
    chainrule.manual_seed(0)
    net = NETS["lenet"]()
    seen = inspect.back_propagation(net.model, net.inputs, net.targets, net.loss)
    text = seen.save(tmp_path / "steps.html").read_text("utf-8")
    assert text.count('class="step"') == len(seen.forward) + len(seen.backward)
    assert "handed to 0.weight" in text
    assert "src=" not in text
    with pytest.raises(ValueError, match=r"\*\.html"):
        seen.save(tmp_path / "steps.svg")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: inspect.back_propagation(nn.Linear(2, 2), chainrule.ones(1, 2)), "one number"),
        (lambda: inspect.back_propagation(nn.Linear(2, 2), None), "inputs are missing"),
        (
            lambda: inspect.back_propagation(
                nn.Sequential(*[nn.Tanh() for _ in range(401)]), chainrule.ones(1)
            ),
            "402|401",
        ),
    ],
)
def test_what_cannot_be_stepped_through(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()
