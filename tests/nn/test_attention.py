"""Attention and the transformer: masks, symmetries, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn import functional as F
from chainrule.tensor import Tensor, of_array

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Tensor:
    return of_array(RNG.normal(size=shape))


def test_heads_are_attention_in_subspaces() -> None:
    """Written out head by head from the parameters."""
    layer, x = nn.MultiheadAttention(6, 2).double(), normal(4, 1, 6)
    out, weights = layer(x, x, x, average_attn_weights=False)
    w, b = layer.in_proj_weight.numpy(force=True), layer.in_proj_bias.numpy(force=True)
    q, k, v = np.split(x.numpy()[:, 0] @ w.T + b, 3, axis=1)
    heads = []
    for h in range(2):
        part = slice(3 * h, 3 * h + 3)
        scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(3))
        p = scores / scores.sum(1, keepdims=True)
        assert_close(weights[0, h], p, rtol=1e-10)
        heads.append(p @ v[:, part])
    last = layer.out_proj
    expected = np.hstack(heads) @ last.weight.numpy(force=True).T + last.bias.numpy(force=True)
    assert_close(out[:, 0], expected, rtol=1e-10)


def test_weights_are_a_distribution_over_the_keys() -> None:
    layer = nn.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True)
    x = chainrule.randn(4, 2, 6)
    weights = layer(x, x, x)[1]
    assert weights.shape == (2, 4, 6)
    assert_close(weights.sum(-1), np.ones((2, 4), "float32"), rtol=1e-6)


def test_order_of_keys_does_not_matter() -> None:
    layer, q, k = nn.MultiheadAttention(4, 2).double(), normal(3, 1, 4), normal(5, 1, 4)
    turned = k[[4, 2, 0, 1, 3]]
    assert_close(layer(q, turned, turned)[0], layer(q, k, k)[0], rtol=1e-10)


def test_padded_keys_are_not_read() -> None:
    layer, x = nn.MultiheadAttention(4, 2).double(), normal(5, 2, 4)
    mask = chainrule.tensor([[False] * 3 + [True] * 2, [False] * 5])
    out, weights = layer(x, x, x, key_padding_mask=mask)
    assert weights[0, :, 3:].abs().max().item() == 0
    short = layer(x[:, :1], x[:3, :1], x[:3, :1])[0]
    assert_close(out[:, :1], short, rtol=1e-10)


def test_a_query_that_may_read_nothing_gets_zero_and_a_finite_gradient() -> None:
    x = chainrule.randn(1, 3, 4, requires_grad=True)
    mask = chainrule.tensor([[True, True, True], [False, False, False], [True, False, False]])
    out = F.scaled_dot_product_attention(x, x, x, mask)
    assert out[0, 1].tolist() == [0, 0, 0, 0]
    out.sum().backward()
    assert x.grad is not None
    assert bool(chainrule.isfinite(x.grad).all())


def test_causal_attention_does_not_see_the_future() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0).double()
    model = nn.TransformerEncoder(layer, 2)
    x = normal(5, 1, 4).requires_grad_()
    mask = chainrule.triu(chainrule.ones(5, 5), 1).bool()
    (model(x, mask, is_causal=True)[2, 0] * chainrule.arange(4.0).double()).sum().backward()
    assert x.grad is not None
    slopes = x.grad.abs().sum((1, 2)).tolist()
    assert min(slopes[:3]) > 0
    assert slopes[3:] == [0, 0]


def test_a_causal_decoder_does_not_see_the_future_but_all_of_the_source() -> None:
    model = nn.Transformer(4, 2, 1, 2, 8, dropout=0.0).double()
    src, tgt = normal(3, 1, 4).requires_grad_(), normal(5, 1, 4).requires_grad_()
    mask = nn.Transformer.generate_square_subsequent_mask(5).double()
    out = model(src, tgt, tgt_mask=mask, tgt_is_causal=True)
    (out[2, 0] * chainrule.arange(4.0).double()).sum().backward()
    slopes = tgt.grad.abs().sum((1, 2)).tolist()
    assert min(slopes[:3]) > 0
    assert slopes[3:] == [0, 0]
    assert min(src.grad.abs().sum((1, 2)).tolist()) > 0


def test_parts_of_a_transformer_may_be_given() -> None:
    layer = nn.TransformerDecoderLayer(4, 2, 8)
    decoder = nn.TransformerDecoder(layer, 1)
    model = nn.Transformer(4, 2, 1, custom_decoder=decoder)
    assert model.decoder is decoder
    assert isinstance(model.encoder, nn.TransformerEncoder)


def test_is_causal_is_the_lower_triangle() -> None:
    q, k = normal(2, 3, 4), normal(2, 5, 4)
    mask = chainrule.tril(chainrule.ones(3, 5)).bool()
    causal = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    assert_close(causal, F.scaled_dot_product_attention(q, k, k, mask), rtol=0, atol=0)


def test_large_scores_do_not_overflow() -> None:
    x = 1e4 * chainrule.randn(1, 3, 4)
    assert bool(chainrule.isfinite(F.scaled_dot_product_attention(x, x, x)).all())


def test_dropout_of_weights_keeps_the_mean() -> None:
    chainrule.manual_seed(0)
    q, v = chainrule.zeros(4000, 1, 2), chainrule.ones(4000, 5, 3)
    out = F.scaled_dot_product_attention(q, chainrule.zeros(4000, 5, 2), v, dropout_p=0.4)
    assert abs(out.mean().item() - 1) < 0.03
    layer, x = nn.MultiheadAttention(4, 2, dropout=0.5), chainrule.randn(3, 1, 4)
    assert not bool((layer(x, x, x)[0] == layer(x, x, x)[0]).all())
    layer.eval()
    assert bool((layer(x, x, x)[0] == layer(x, x, x)[0]).all())


def test_static_keys_take_the_place_of_projected_ones() -> None:
    layer, x = nn.MultiheadAttention(4, 2).double(), normal(3, 1, 4)

    def forward(**given: Any) -> Tensor:
        return F.multi_head_attention_forward(
            x,
            x,
            x,
            4,
            2,
            layer.in_proj_weight,
            layer.in_proj_bias,
            None,
            None,
            False,
            0.0,
            layer.out_proj.weight,
            layer.out_proj.bias,
            need_weights=False,
            **given,
        )[0]

    projected = x[:, 0] @ layer.in_proj_weight.mT + layer.in_proj_bias
    k, v = (t.reshape(3, 2, 2).transpose(0, 1) for t in (projected[:, 4:8], projected[:, 8:]))
    assert_close(forward(static_k=k, static_v=v), forward(), rtol=1e-10)
    with pytest.raises(AssertionError, match="static_k of shape"):
        forward(static_k=k[:1])


def test_parameters_start_as_pytorch_s_do() -> None:
    layer = nn.MultiheadAttention(64, 4, add_bias_kv=True)
    bound = np.sqrt(6 / (4 * 64))
    w = layer.in_proj_weight.numpy(force=True)
    assert np.abs(w).max() <= bound
    assert abs(w.std() - bound / np.sqrt(3)) < 0.01 * bound
    assert layer.in_proj_bias.abs().max().item() == 0
    assert layer.out_proj.bias.abs().max().item() == 0
    assert 0.5 < layer.bias_k.std().item() * 8 < 1.5


X = chainrule.ones(3, 2, 4)
M = nn.MultiheadAttention(4, 2)
WHOLE = nn.Transformer(4, 2, 1, 1, 4)
SDPA = F.scaled_dot_product_attention
CASES: list[Any] = [
    (lambda: M(X[..., :3], X[..., :3], X[..., :3]), AssertionError, "embedding dimension of 4"),
    (lambda: M(X[None], X, X), AssertionError, "4-D query"),
    (lambda: M(X, X[0], X[0]), AssertionError, "expected key and value to be 3-D"),
    (lambda: M(X, X, X[:2]), AssertionError, "does not match value shape"),
    (lambda: M(X, X[:, :1], X[:, :1]), AssertionError, "different batches"),
    (lambda: M(X, X, X, attn_mask=chainrule.zeros(2, 2)), RuntimeError, r"should be \(3, 3\)"),
    (lambda: M(X, X, X, attn_mask=chainrule.zeros(3, 3, 3)), RuntimeError, r"\(4, 3, 3\)"),
    (lambda: M(X, X, X, attn_mask=chainrule.zeros(3)), AssertionError, "2-D or 3-D"),
    (
        lambda: M(X, X, X, attn_mask=chainrule.zeros(3, 3).long()),
        AssertionError,
        "only bool and floating types of attn_mask",
    ),
    (
        lambda: M(X, X, X, key_padding_mask=chainrule.zeros(3, 2).bool()),
        AssertionError,
        r"shape \(2, 3\)",
    ),
    (lambda: M(X, X, X, is_causal=True), RuntimeError, "Need attn_mask"),
    (lambda: nn.MultiheadAttention(5, 2), AssertionError, "divisible by num_heads"),
    (lambda: nn.MultiheadAttention(0, 2), ValueError, "embed_dim=0"),
    (lambda: SDPA(X, X, X, chainrule.zeros(2, 2), is_causal=True), RuntimeError, "Explicit"),
    (lambda: SDPA(X, X[..., :3], X), RuntimeError, "agree in the last dimension"),
    (lambda: SDPA(X[0, 0], X, X), RuntimeError, "at least 2 dimensional"),
    (lambda: SDPA(X, X, X.double()), RuntimeError, "same dtype"),
    (lambda: SDPA(X, X, X, chainrule.zeros(2, 2).long()), RuntimeError, "bool and floating"),
    (lambda: SDPA(X, X, X, dropout_p=1.5), RuntimeError, "between 0 and 1, but got 1.5"),
    (
        lambda: SDPA(
            chainrule.ones(1, 4, 3, 2), *[chainrule.ones(1, 3, 3, 2)] * 2, enable_gqa=True
        ),
        RuntimeError,
        "must divide",
    ),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), RuntimeError, "relu/gelu"),
    (lambda: nn.TransformerDecoderLayer(4, 2, activation="tanh"), RuntimeError, "DecoderLayer"),
    (lambda: WHOLE(X, X[:, :1]), RuntimeError, "batch number of src and tgt must be equal"),
    (lambda: WHOLE(X, chainrule.ones(2, 2, 5)), RuntimeError, "equal to d_model=4, got"),
]


@pytest.mark.parametrize(("call", "error", "match"), CASES)
def test_errors(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
