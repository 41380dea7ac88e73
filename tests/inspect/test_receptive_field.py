"""L17: what a unit sees is where its gradient with respect to the input is."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import chainrule
from chainrule import Tensor, inspect, models, nn
from chainrule.inspect.core.tracing import trace
from chainrule.inspect.structure.spans import Span, fields_of, places
from chainrule.nn import functional as F


class Branches(nn.Module):
    """Skip links, joined and padded branches, and a sum that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = (
            nn.Conv1d(1, 1, 3, padding=1),
            nn.Conv1d(1, 1, 5, padding=4, dilation=2),
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.narrow(x) + x
        h += self.wide(x)
        h = chainrule.cat([F.pad(h, (1, 0)), self.narrow(F.pad(x, (1, 0)))], 2)
        return h[:, :, 2:-3]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(2, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class Permuted(nn.Module):
    """Time in the middle, as recurrent layers want it, and a mean over it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv1d(2, 2, 3), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.head(self.conv(x.permute(0, 2, 1)).mT)
        return chainrule.stack([h[:, 0], h.mean(1), h.sum(1)], 1)[:, :2]


S = nn.Sequential
CASES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "strided": (S(nn.Conv1d(1, 2, 3, 2, 1), nn.ReLU(), nn.Conv1d(2, 1, 3, 2)), (1, 1, 21)),
    "dilated": (S(nn.Conv1d(1, 1, 3, dilation=3), nn.Conv1d(1, 1, 2, dilation=2)), (1, 1, 14)),
    "padded": (S(nn.Conv1d(1, 1, 5, padding=3), nn.Conv1d(1, 1, 4, padding="same")), (1, 1, 9)),
    "circular": (nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular"), (1, 1, 7)),
    "reflected": (nn.Conv1d(1, 1, 5, padding=2, padding_mode="reflect"), (1, 1, 7)),
    "transposed": (S(nn.ConvTranspose1d(1, 1, 3, 2, 1), nn.Conv1d(1, 1, 2)), (1, 1, 7)),
    "transposed, dilated": (nn.ConvTranspose1d(2, 2, 3, 3, dilation=2, groups=2), (2, 2, 4)),
    "pooled": (S(nn.AvgPool1d(3, 2, 1), nn.Conv1d(1, 1, 2), nn.AdaptiveAvgPool1d(2)), (1, 1, 13)),
    "upsampled": (S(nn.Upsample(scale_factor=2), nn.Conv1d(1, 1, 3)), (1, 1, 6)),
    "groups": (S(nn.Conv2d(2, 4, 2, groups=2), nn.AvgPool2d((2, 1))), (1, 2, 5, 4)),
    "three dimensions": (nn.Conv3d(1, 1, (1, 2, 3)), (1, 1, 2, 3, 4)),
    "branches": (Branches(), (1, 1, 12)),
    "dense at the end": (S(nn.Conv1d(1, 1, 3), nn.Flatten(), nn.Linear(5, 2)), (2, 1, 7)),
    "no batch": (nn.Conv1d(1, 2, 3), (1, 6)),
    "recurrent": (Recurrent(), (2, 5, 2)),
    "permuted": (Permuted(), (1, 6, 2)),
}


def supports(net: nn.Module, x: Tensor) -> dict[tuple[int, ...], list[list[int]]]:
    """For each unit of the output, the places on each axis where its gradient is not zero."""
    x = x.detach().requires_grad_()
    y = net(x)
    found = {}
    for unit in itertools.product(*map(range, y.shape)):
        (g,) = chainrule.autograd.grad(y[unit], x, retain_graph=True)
        at = g.nonzero()
        found[unit] = [sorted(set(at[:, axis].tolist())) for axis in range(x.ndim)]
    return found


def seen_by(span: Span, unit: tuple[int, ...]) -> list[int]:
    return places(span.seen[0] if span.carrier is None else span.seen[unit[span.carrier]])


@pytest.mark.parametrize("name", list(CASES))
def test_a_unit_sees_where_its_gradient_is(name: str) -> None:
    """Positive weights and inputs, so that nothing cancels."""
    net, size = CASES[name]
    net = net.double()
    for p in net.parameters():
        p.detach().fill_(0.5)
    x = chainrule.rand(*size, dtype=chainrule.float64) + 0.5
    seen = trace("test", net, x, gradients=True)
    field = fields_of(seen)[id(seen.root.outputs[0])]
    for unit, support in supports(net, x).items():
        told = [seen_by(field[0, axis], unit) for axis in range(x.ndim)]
        nothing = any(not axis for axis in told)  # the window lies in the padding
        assert support == ([[]] * x.ndim if nothing else told), unit


def test_max_pooling_can_see_its_whole_window() -> None:
    net = nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2))
    told = inspect.receptive_field(net, input_size=(1, 1, 8, 8), unit=(1, 0))
    assert told.seen == [[2, 3, 4, 5], [0, 1, 2, 3]]


def test_lenet() -> None:
    told = inspect.receptive_field(models.LeNet(), input_size=(1, 1, 32, 32), layer="s4")
    sizes = {f.path: (f.size, f.stride) for f in told.layers}
    assert sizes == {
        "c1": ((5, 5), (1, 1)),
        "s2": ((6, 6), (2, 2)),
        "c3": ((14, 14), (2, 2)),
        "s4": ((16, 16), (4, 4)),
    }


def test_it_agrees_with_the_arithmetic_of_stacks() -> None:
    layers = [nn.Conv1d(1, 1, 5, 2), nn.MaxPool1d(3, 2), nn.Conv1d(1, 1, 3, dilation=2)]
    by_hand = nn.arithmetic.receptive_field(layers)
    told = inspect.receptive_field(nn.Sequential(*layers), input_size=(1, 1, 80), unit=2)
    (last,) = (f for f in told.layers if f.path == "2")
    assert (last.size, last.stride) == ((by_hand.size,), (by_hand.stride,))
    assert last.first == (by_hand.start + 2 * by_hand.stride,)


def test_half_precision_is_followed_alike() -> None:
    net = nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Conv1d(2, 1, 3))
    wide = inspect.receptive_field(net, input_size=(1, 1, 12), unit=2)
    assert inspect.receptive_field(net.bfloat16(), input_size=(1, 1, 12), unit=2) == wide


def test_dilation_leaves_gaps() -> None:
    told = inspect.receptive_field(nn.Conv1d(1, 1, 3, dilation=4), input_size=(1, 1, 20), unit=3)
    assert told.seen == [[3, 7, 11]]


def test_long_inputs_are_followed_by_their_ends() -> None:
    net = nn.Sequential(nn.Conv1d(1, 1, 3, stride=2), nn.Conv1d(1, 1, 3, padding=1))
    told = inspect.receptive_field(net, input_size=(1, 1, 5001), unit=1000)
    assert (told.seen[0][0], told.seen[0][-1]) == (1998, 2004)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "nowhere"}, r"there is no layer 'nowhere' with units in space; there are \['0'"),
        ({"layer": "2"}, "there is no layer '2' with units in space"),
        ({"unit": (9, 9)}, "unit must be a place among 6 x 6"),
        ({"unit": (1, 1, 1)}, "unit must be a place among 6 x 6"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten())
    with pytest.raises(ValueError, match=message):
        inspect.receptive_field(net, input_size=(1, 1, 8, 8), **options)
