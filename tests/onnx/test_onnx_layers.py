"""Every layer of the library: written and computed by others, or refused by name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from layers import BY_FAMILY
from layers.record import Layer
from onnx_running import assert_same, engines, kinds

import chainrule
import chainrule.nn.functional as F
from chainrule import nn, onnx
from chainrule.autograd.nested import map_tree

RECORDS = [layer for name, layers in BY_FAMILY.items() if name != "loss" for layer in layers]
# What is refused, and what the error says of it.
REFUSED = {
    "BinaryStep": "'binary_step' in the model .BinaryStep.",
    "ParametricActivation[random]": "drawn at random",
    "Embedding[frequency]": "'bincount'",
    "EmbeddingBag[offsets]": "a second time with other values: embedding_bag: offsets must",
    "EmbeddingBag[offsets, max]": "a second time with other values: embedding_bag: offsets must",
    "EmbeddingBag[weights]": "a second time with other values: embedding_bag: offsets must",
    "EmbeddingBag[last offset]": "a second time with other values: embedding_bag: offsets must",
    "EmbeddingBag[padding, sum]": "a second time with other values: embedding_bag: offsets must",
    "EmbeddingBag[padding]": "'index_place'",
    "EmbeddingBag[padding, max]": "'scatter_extreme'",
    "EmbeddingBag[frequency]": "'bincount'",
    "AvgPool2d[dilated]": "AveragePool of ONNX has no dilation",
    "RNN[packed]": "'index' in layer 'module' .RNN.",
    "RNN[masked]": "sequences of different lengths",
    "GRU[packed]": "'index' in layer 'module' .GRU.",
    "GRU[masked]": "sequences of different lengths",
    "LSTM[packed]": "'index' in layer 'module' .LSTM.",
    "LSTM[masked]": "sequences of different lengths",
    "LSTM[projected]": r"LSTM of ONNX has no projection \(proj_size\)",
    "PeepholeLSTM[diagonal]": "'peephole_sequence' in the model .PeepholeLSTM.",
    "PeepholeLSTM[full, masked]": "'peephole_sequence' in layer 'module' .PeepholeLSTM.",
    "Bidirectional": "in layer 'module.forward_layer' .RNN.",
    "ConvRNN[masked]": "'conv_rnn_sequence'",
    "ConvLSTM": "'conv_lstm_sequence'",
    "RecurrentConv": "'conv_rnn_sequence'",
    "Unfold": "'im2col'",
    "Fold": "'col2im'",
}
# What the reference of the package onnx cannot compute.
BEYOND_REFERENCE = ("ConvTranspose", "FractionalMaxPool3d", "RNN[relu]", "RNNCell[relu]")


class Called(nn.Module):
    """A module that is called in its own way."""

    def __init__(self, module: nn.Module, call: Any):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *args: Any) -> Any:
        return self.call(self.module, *args)


def of_record(layer: Layer) -> tuple[nn.Module, tuple[Any, ...]]:
    """The layer in float32 and evaluation, and what it is called with."""

    def argument(v: Any) -> Any:
        if not isinstance(v, np.ndarray):
            return v
        return chainrule.tensor(v.astype(np.float32) if v.dtype == np.float64 else v)

    module = layer.make(nn).float()
    args = map_tree(argument, layer.inputs(np.random.default_rng(0)))
    if layer.call is not None:
        module = Called(module, layer.call)
    return module.eval(), tuple(args)


@pytest.mark.parametrize(
    "layer", [r for r in RECORDS if r.label not in REFUSED], ids=lambda layer: layer.label
)
def test_every_layer(layer: Layer) -> None:
    module, args = of_record(layer)
    module(*args)  # so that a lazy one has its shapes
    state = copy.deepcopy(module.state_dict())
    program = onnx.export(module, args)
    assert all(bool((state[name] == t).all()) for name, t in module.state_dict().items())
    grouped = layer.name.startswith("ConvTranspose") and layer.note == "all"
    beyond = layer.label.startswith(BEYOND_REFERENCE[1:]) or grouped
    assert_same(program, module, [args], reference=not beyond)


@pytest.mark.parametrize("label", REFUSED)
def test_what_is_refused_is_named(label: str) -> None:
    module, args = of_record({r.label: r for r in RECORDS}[label])
    with pytest.raises(onnx.OnnxExporterError, match=REFUSED[label]):
        onnx.export(module, args)


# --- free axes ------------------------------------------------------------------------------------


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def rand(*shape: int) -> chainrule.Tensor:
    return chainrule.randn(*shape)


IMAGES: dict[str, Any] = {
    "convolution": lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1),
    "same padding": lambda: nn.Conv2d(3, 4, 4, padding="same"),
    "reflected": lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
    "depthwise": lambda: nn.Conv2d(3, 6, 3, groups=3, dilation=2),
    "transposed": lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
    "batch norm": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
    "group norm": lambda: nn.GroupNorm(3, 3),
    "instance norm": lambda: nn.InstanceNorm2d(3, affine=True),
    "layer norm": lambda: nn.LayerNorm([3, 8, 8]),
    "local response": lambda: nn.LocalResponseNorm(2),
    "max pool, ceil": lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    "max pool, indices": lambda: nn.MaxPool2d(2, return_indices=True),
    "avg pool, ceil": lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    "avg pool, divisor": lambda: nn.AvgPool2d(3, 2, divisor_override=5),
    "global pool": lambda: nn.AdaptiveAvgPool2d(1),
    "adaptive avg": lambda: nn.AdaptiveAvgPool2d((3, 5)),
    "adaptive max": lambda: nn.AdaptiveMaxPool2d((4, 3)),
    "constant pad": lambda: nn.ConstantPad2d((1, 2, 0, 1), 2.0),
    "nearest": lambda: nn.Upsample(scale_factor=2),
    "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "flatten": lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.Softmax(1)),
    "pixel shuffle": lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.PixelShuffle(2)),
    "dropout": lambda: nn.Sequential(nn.Dropout(), nn.Dropout2d()),
}


@pytest.mark.parametrize("make", IMAGES.values(), ids=IMAGES)
def test_other_batches_of_images(make: Any) -> None:
    module, sizes = make().eval(), (3, 8, 8)
    program = onnx.export(module, rand(2, *sizes), dynamic_axes={"input": {0: "batch"}})
    assert_same(program, module, [(rand(n, *sizes),) for n in (2, 1, 5)])


def test_other_images() -> None:
    """Height and width are free, too, where the layers take any."""
    pooled = (nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    module = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), *pooled, nn.Linear(4, 2)
    ).eval()
    axes = {"input": {0: "batch", 2: "height", 3: "width"}}
    program = onnx.export(module, rand(2, 1, 8, 8), dynamic_axes=axes)
    assert_same(program, module, [(rand(2, 1, 8, 8),), (rand(3, 1, 13, 6),)])


RECURRENT: dict[str, Any] = {
    "RNN": lambda: nn.RNN(3, 4),
    "RNN, both": lambda: nn.RNN(3, 4, 2, bidirectional=True, batch_first=True),
    "GRU": lambda: nn.GRU(3, 4, bias=False),
    "GRU, both": lambda: nn.GRU(3, 4, 2, bidirectional=True, batch_first=True),
    "LSTM": lambda: nn.LSTM(3, 4),
    "LSTM, both": lambda: nn.LSTM(3, 4, 3, bidirectional=True, batch_first=True, dropout=0.5),
}


@pytest.mark.parametrize("make", RECURRENT.values(), ids=RECURRENT)
def test_other_lengths_and_batches(make: Any) -> None:
    """Each layer and direction is one node, whatever the length is."""
    module = make().eval()
    names = {0: "batch", 1: "time"} if module.batch_first else {0: "time", 1: "batch"}
    program = onnx.export(module, rand(4, 5, 3), dynamic_axes={"input": names})
    assert_same(program, module, [(rand(4, 5, 3),), (rand(1, 1, 3),), (rand(7, 2, 3),)])
    count = module.num_layers * (2 if module.bidirectional else 1)
    assert kinds(program).count(type(module).__name__) == count
    assert "Gemm" not in kinds(program)
    assert "MatMul" not in kinds(program)


def test_a_recurrent_layer_with_given_states() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4)

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            out, (h, c) = self.lstm(x, (h, c))
            return out * 2, h, c

    axes = {"x": {0: "time", 1: "batch"}, "h": {1: "batch"}, "c": {1: "batch"}}
    net = Net().eval()
    args = (rand(5, 2, 3), rand(1, 2, 4), rand(1, 2, 4))
    program = onnx.export(net, args, input_names=["x", "h", "c"], dynamic_axes=axes)
    assert_same(program, net, [args, (rand(2, 3, 3), rand(1, 3, 4), rand(1, 3, 4))])


def test_all_cell_states_are_refused() -> None:
    from chainrule.ops.recurrent.lstm import lstm_sequence

    w = rand(16, 4)
    first = chainrule.zeros(2, 4)
    all_of_them = Apply(lambda x: lstm_sequence(x, first, first, w)[1]).eval()
    with pytest.raises(onnx.OnnxExporterError, match="lstm_sequence"):
        onnx.export(all_of_them, rand(5, 2, 16))
    part = Apply(lambda x: lstm_sequence(x, first, first, w)[1][2]).eval()
    with pytest.raises(onnx.OnnxExporterError, match="cell state of the last step only"):
        onnx.export(part, rand(5, 2, 16))
    # Products that no linear layer makes are handed through.
    plain = Apply(lambda x: lstm_sequence(x * 2, first, first, w)[0]).eval()
    assert_same(onnx.export(plain, rand(5, 2, 16)), plain, [(rand(5, 2, 16),)])


def test_cells_in_a_loop() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru, self.rnn = nn.LSTMCell(3, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4)

        def forward(self, x: Any) -> Any:
            h = c = g = r = chainrule.zeros(x.shape[0], 4)
            out = chainrule.zeros(x.shape[0], x.shape[1], 4)
            for t in range(x.shape[1]):
                h, c = self.lstm(x[:, t], (h, c))
                g = self.gru(h, g)
                r = self.rnn(g, r)
                out[:, t] = r
            return out, c

    net = Net().eval()
    program = onnx.export(net, rand(2, 4, 3), dynamic_axes={"input": {0: "batch"}})
    assert_same(program, net, [(rand(2, 4, 3),), (rand(5, 4, 3),)])
    with pytest.raises(onnx.OnnxExporterError, match="loop in Python depends"):
        onnx.export(net, rand(2, 4, 3), dynamic_axes={"input": {1: "time"}})


class LanguageModel(nn.Module):
    """Positions and a mask whose sizes follow from the length."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(50, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(8, 20)

    def forward(self, tokens: Any) -> Any:
        n = tokens.shape[1]
        h = self.tokens(tokens) + self.places(chainrule.arange(n))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.head(self.encoder(h, mask=mask, is_causal=True))


def test_a_language_model() -> None:
    net = LanguageModel().eval()

    def sentence(n: int, length: int) -> tuple[Any]:
        return (chainrule.randint(0, 20, (n, length)),)

    program = onnx.export(net, sentence(2, 6), dynamic_axes={"input": {0: "batch", 1: "time"}})
    assert_same(program, net, [sentence(2, 6), sentence(1, 3), sentence(3, 11)])


def test_encoder_and_decoder() -> None:
    net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    axes = {"source": {0: "batch", 1: "from"}, "target": {0: "batch", 1: "to"}}
    args = (rand(2, 5, 8), rand(2, 3, 8))
    program = onnx.export(net, args, input_names=["source", "target"], dynamic_axes=axes)
    assert_same(program, net, [args, (rand(1, 2, 8), rand(1, 7, 8))])


# --- operations -----------------------------------------------------------------------------------

FUNCTIONS: dict[str, Any] = {
    "arithmetic": lambda x: ((x + 1) * 2 / 3 - x) ** 2 + (1 - x) + 2**x,
    "activations": lambda x: [
        f(x) for f in (F.hardswish, F.mish, F.silu, F.gelu, F.logsigmoid, F.selu, F.relu6, F.elu)
    ],
    "comparisons": lambda x: (x > 0, x != x.round(), (x <= 1) & ~(x < -1), x == x, x >= 0.5),
    "where": lambda x: chainrule.where(x > 0, x, 0.0) + x.masked_fill(x > 1, -1.0),
    "clamp": lambda x: x.clamp(0, 1) + x.clamp(min=-0.5) + x.clamp(max=0.5),
    "reductions": lambda x: (x.mean(-1), x.sum((1, 2)), x.amax(1, keepdim=True), x.prod(1)),
    "statistics": lambda x: (x.var(1), x.std(-1), x.norm(dim=1), x.logsumexp(2), x.argmax(1)),
    "over the batch": lambda x: (
        x.mean(0),
        x.sum(0) / x.shape[0],
        x.var(0, correction=0),
        x - x.mean(),
    ),
    "extremes": lambda x: (*x.max(1), *x.min(2), x.max()),
    "all and any": lambda x: ((x > 0).all(1), (x > 1).any(2)),
    "scans": lambda x: (x.cumsum(1), x.cumprod(2), x.cummax(1)[0], x.cummin(2)[0]),
    "sorted": lambda x: (x.topk(2)[0], x.sort(1)[0], x.sort(2, descending=True)[0]),
    "slices": lambda x: (x[:, 1:, ::2], x[:, -1], x[..., None], x[:, -2:], x.flip(1), x[:, ::-1]),
    "choices": lambda x: (x[:, chainrule.tensor([0, 2])], x.unbind(1), x.chunk(2, -1)),
    "joined": lambda x: (chainrule.stack([x, x], 1), chainrule.cat([x, x * 2], 2)),
    "views": lambda x: (x.transpose(1, 2).reshape(-1, 12), x.view(x.size(0), -1), x.unsqueeze(1)),
    "spread": lambda x: (x[:, :1].expand(-1, 3, -1), x.repeat(1, 2, 1), x.repeat(2, 1, 1)),
    "products": lambda x: (chainrule.einsum("bij,bkj->bik", x, x), chainrule.bmm(x, x.mT)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "types": lambda x: (x.double(), x.long(), x.bool(), (x > 0).float()),
    "triangles": lambda x: (chainrule.tril(x), chainrule.triu(x, 1)),
    "in place": lambda x: F.relu(x + 1, inplace=True).add_(1).mul_(x),
    "of the input in place": lambda x: x.mul_(2) + 1,
    "detached": lambda x: x.detach() * 2 + x.data,
    "assigned": lambda x: _assigned(x),
    "distances": lambda x: (chainrule.cdist(x, x + 1), F.cosine_similarity(x, x * 2 + 1)),
    "sizes": lambda x: x * x.shape[0] + chainrule.arange(x.shape[0]).sum() + x.shape[0] ** -0.5,
}


def _assigned(x: Any) -> Any:
    out = chainrule.zeros(x.shape[0], 3, 4)
    out[:, 1] = x[:, 0]
    out[..., 2:] = 1.0
    out += 1
    return out


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_operations(function: Any) -> None:
    module = Apply(function).eval()
    program = onnx.export(module, rand(2, 3, 4), dynamic_axes={"input": {0: "batch"}})
    assert_same(program, module, [(rand(n, 3, 4),) for n in (2, 1, 4)])


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23])
def test_all_opsets(opset: int) -> None:
    net = LanguageModel().eval()
    tokens = chainrule.randint(0, 20, (2, 4))
    assert_same(onnx.export(net, tokens, opset_version=opset), net, [(tokens,)])
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Flatten()).eval()
    x = rand(2, 1, 6, 6)
    assert_same(onnx.export(net, x, opset_version=opset), net, [(x,)])
    net = nn.LSTM(3, 4, bidirectional=True).eval()
    x = rand(5, 2, 3)
    program = onnx.export(net, x, opset_version=opset)
    assert_same(program, net, [(x,)])
    assert program.model_proto.opset_import[0].version == opset


def test_the_comparison_can_fail() -> None:
    net = nn.Linear(3, 2)
    program = onnx.export(net.eval(), rand(2, 3))
    engines(program)  # skips where there is none
    with pytest.raises(AssertionError):
        assert_same(program, nn.Linear(3, 2), [(rand(2, 3),)])
