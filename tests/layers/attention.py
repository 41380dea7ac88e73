"""Records of attention and of the transformer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from layers.record import Layer

__all__ = ["LAYERS"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]


def one(*shape: int) -> Args:
    """One tensor, for self-attention."""
    return lambda r: (r.normal(size=shape),)


def three(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...]) -> Args:
    return lambda r: tuple(r.normal(size=s) for s in (query, key, value))


def own(**kwargs: Any) -> Callable[..., Any]:
    """Calls attention with one tensor as query, key and value."""
    return lambda module, x, *masks: module(x, x, x, *masks, **kwargs)


def causal(length: int) -> np.ndarray:
    return np.triu(np.ones((length, length), bool), 1)


def padded(r: np.random.Generator) -> tuple[Any, ...]:
    mask = np.array([[False, False, False, True], [False, False, True, True]])
    return (r.normal(size=(4, 2, 6)), mask)


def encoder(nn: Any, **kwargs: Any) -> Any:
    return nn.TransformerEncoderLayer(4, 2, 6, 0.0, **kwargs)


def stack(nn: Any) -> Any:
    return nn.TransformerEncoder(encoder(nn), 2, nn.LayerNorm(4), enable_nested_tensor=False)


def attention(note: str, inputs: Args, call: Any = None, **kwargs: Any) -> Layer:
    return Layer(
        "MultiheadAttention",
        lambda nn: nn.MultiheadAttention(6, 2, **kwargs),
        inputs,
        call=call,
        same_repr=False,
        note=note,
    )


def layer(note: str, inputs: Args, call: Any = None, **kwargs: Any) -> Layer:
    return Layer(
        "TransformerEncoderLayer",
        lambda nn: encoder(nn, **kwargs),
        inputs,
        call=call,
        same_repr=False,
        note=note,
    )


def whole(nn: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of a fast path that it does not take
        return nn.Transformer(4, 2, 1, 2, 6, 0.0, **kwargs)


def two(*shapes: tuple[int, ...]) -> Args:
    return lambda r: tuple(r.normal(size=s) for s in shapes)


def masked_decoding(r: np.random.Generator) -> tuple[Any, ...]:
    """Target, memory, the masks of both, the paddings of both."""
    paddings = np.zeros((2, 3), bool), np.array([[False] * 4, [False, False, True, True]])
    memory_mask = r.normal(size=(3, 4)) < -0.7
    memory_mask[:, 0] = False
    return (r.normal(size=(3, 2, 4)), r.normal(size=(4, 2, 4)), causal(3), memory_mask, *paddings)


def decoder(note: str, inputs: Args, **kwargs: Any) -> Layer:
    return Layer(
        "TransformerDecoderLayer",
        lambda nn: nn.TransformerDecoderLayer(4, 2, 6, 0.0, **kwargs),
        inputs,
        same_repr=False,
        note=note,
    )


LAYERS: list[Layer] = [
    attention("self", one(3, 2, 6), own()),
    attention("no batch", one(3, 6), own()),
    attention("batch first", one(2, 3, 6), own(average_attn_weights=False), batch_first=True),
    attention("cross", three((3, 2, 6), (4, 2, 6), (4, 2, 6)), bias=False),
    attention("no weights", one(3, 2, 6), own(need_weights=False)),
    attention("kdim, vdim", three((3, 2, 6), (4, 2, 5), (4, 2, 3)), kdim=5, vdim=3),
    attention("bias_kv, zero", one(3, 2, 6), own(), add_bias_kv=True, add_zero_attn=True),
    attention("padding", padded, own(), add_zero_attn=True),
    attention("causal", lambda r: (r.normal(size=(3, 2, 6)), None, True, causal(3)), own()),
    attention(
        "added mask",
        lambda r: (r.normal(size=(3, 2, 6)), None, True, r.normal(size=(4, 3, 3))),
        own(),
    ),
    layer("after", one(3, 2, 4)),
    layer("before, gelu", one(2, 3, 4), norm_first=True, activation="gelu", batch_first=True),
    layer("causal, no bias", lambda r: (r.normal(size=(3, 2, 4)), causal(3)), bias=False),
    Layer("TransformerEncoder", stack, one(3, 2, 4), same_repr=False),
    decoder("after", two((3, 2, 4), (5, 2, 4))),
    decoder("no batch, gelu", two((3, 4), (5, 4)), activation="gelu"),
    decoder("before, batch first", two((2, 3, 4), (2, 5, 4)), norm_first=True, batch_first=True),
    decoder("masks, no bias", masked_decoding, bias=False),
    Layer(
        "TransformerDecoder",
        lambda nn: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(4, 2, 6, 0.0), 2, nn.LayerNorm(4)
        ),
        two((3, 2, 4), (5, 2, 4)),
        same_repr=False,
    ),
    Layer("Transformer", whole, two((5, 2, 4), (3, 2, 4)), same_repr=False),
    Layer(
        "Transformer",
        lambda nn: whole(nn, batch_first=True, norm_first=True),
        lambda r: (r.normal(size=(2, 5, 4)), r.normal(size=(2, 3, 4)), None, causal(3)),
        same_repr=False,
        note="causal, batch first",
    ),
]
