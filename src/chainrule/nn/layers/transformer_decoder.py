"""The decoder of a transformer, and the whole: a source is read, a target is written from it.

Letters (docs/conventions.md): N batch, L length of the target, S length of the source, D features.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

from chainrule.nn.activations.functions import relu
from chainrule.nn.init.tensors import xavier_uniform_
from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.layers.dropout import Dropout
from chainrule.nn.layers.linear import Linear
from chainrule.nn.layers.multihead import MultiheadAttention
from chainrule.nn.layers.norm_sample import LayerNorm
from chainrule.nn.layers.transformer import (
    TransformerEncoder,
    TransformerEncoderLayer,
    activation_named,
)
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import full
from chainrule.ops.shape.diagonal import triu
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Factory

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer"]


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory and a feed-forward net, each with a residual link.

    h = norm1(x + self_attn(x)); g = norm2(h + multihead_attn(h, memory));
    y = norm3(g + linear2(activation(linear1(g)))); with norm_first the normalizations stand before
    the attentions and the net instead of behind the sums.

    Shape: target (L, N, D) and memory (S, N, D), or without N -> (L, N, D); with batch_first
        (N, L, D) and (N, S, D).

    Args:
        d_model: D, the features.
        nhead: number of heads.
        dim_feedforward: width of the feed-forward net.
        dropout: rate of dropout behind attentions, activation and net, and on attention's weights.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the normalizations.
        batch_first: whether the batch comes first.
        norm_first: whether to normalize first.
        bias: whether linear maps and normalizations have a bias.

    >>> from chainrule import nn, ones
    >>> nn.TransformerDecoderLayer(d_model=8, nhead=2)(ones(5, 3, 8), ones(4, 3, 8)).shape
    chainrule.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        factory: Factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **factory
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **factory
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation_named("TransformerDecoderLayer", activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend_self(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x,
                x,
                x,
                tgt_key_padding_mask,
                need_weights=False,
                attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )
            return self.dropout1(out)

        def attend_memory(x: Tensor) -> Tensor:
            out, _ = self.multihead_attn(
                x,
                memory,
                memory,
                memory_key_padding_mask,
                need_weights=False,
                attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )
            return self.dropout2(out)

        x = tgt
        if self.norm_first:
            x = x + attend_self(self.norm1(x))
            x = x + attend_memory(self.norm2(x))
            return x + self._feed_forward(self.norm3(x))
        x = self.norm1(x + attend_self(x))
        x = self.norm2(x + attend_memory(x))
        return self.norm3(x + self._feed_forward(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """Copies of a decoder layer and a last normalization: y = norm(layer_n(... layer_1(x, m), m)).

    Shape: target (L, N, D) and memory m (S, N, D), or without N -> (L, N, D); with batch_first
        (N, L, D) and (N, S, D).

    Args:
        decoder_layer: the layer; it is copied with its parameters.
        num_layers: how many copies.
        norm: a last normalization, such as LayerNorm.

    >>> from chainrule import nn, ones
    >>> layer = nn.TransformerDecoderLayer(d_model=8, nhead=2)
    >>> nn.TransformerDecoder(layer, num_layers=2)(ones(5, 3, 8), ones(4, 3, 8)).shape
    chainrule.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of the source and a decoder of the target: y = decoder(tgt, encoder(src)).

    Vaswani et al., Attention is all you need (2017). Matrices start by Xavier's rule.

    Shape: source (S, N, D) and target (L, N, D), or without N -> (L, N, D); with batch_first
        (N, S, D) and (N, L, D).

    Args:
        d_model: D, the features.
        nhead: number of heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: width of the feed-forward nets.
        dropout: rate of dropout in the layers.
        activation: "relu", "gelu" or a function.
        custom_encoder: a module instead of the encoder.
        custom_decoder: a module instead of the decoder.
        layer_norm_eps: eps of the normalizations.
        batch_first: whether the batch comes first.
        norm_first: whether the layers normalize first.
        bias: whether linear maps and normalizations have a bias.

    >>> from chainrule import nn, ones
    >>> net = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1)
    >>> mask = nn.Transformer.generate_square_subsequent_mask(5)
    >>> net(ones(4, 3, 8), ones(5, 3, 8), tgt_mask=mask).shape
    chainrule.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()

        def layer(cls: Callable[..., Module]) -> Module:
            return cls(
                d_model,
                nhead,
                dim_feedforward,
                dropout,
                activation,
                layer_norm_eps,
                batch_first,
                norm_first,
                bias,
                device=device,
                dtype=dtype,
            )

        def norm() -> Module:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            layer(TransformerEncoderLayer), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            layer(TransformerDecoderLayer), num_decoder_layers, norm()
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for p in self.parameters():
            if p.ndim > 1:
                xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | None = None, dtype: DType | None = None
    ) -> Tensor:
        """The mask by which position i reads from positions up to i: 0 there, -inf elsewhere.

        >>> from chainrule import nn
        >>> nn.Transformer.generate_square_subsequent_mask(3)
        tensor([[0., -inf, -inf],
                [0., 0., -inf],
                [0., 0., 0.]])
        """
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), 1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        self._check(src, tgt)
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    def _check(self, src: Tensor, tgt: Tensor) -> None:
        shapes = f"got {tuple(src.shape)} and {tuple(tgt.shape)}"
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"Transformer: the batch number of src and tgt must be equal, {shapes} "
                f"with batch_first={self.batch_first}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                "Transformer: the feature number of src and tgt must be equal to d_model="
                f"{self.d_model}, {shapes}"
            )
