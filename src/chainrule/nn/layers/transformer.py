"""The encoder of a transformer: self-attention and a feed-forward net with residual links."""

from __future__ import annotations

import copy
from collections.abc import Callable

from chainrule.nn.activations.functions import gelu, relu
from chainrule.nn.layers.multihead import MultiheadAttention
from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.layers.dropout import Dropout
from chainrule.nn.layers.linear import Linear
from chainrule.nn.module.base import Module
from chainrule.nn.layers.norm_sample import LayerNorm
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Factory

__all__ = ["TransformerEncoder", "TransformerEncoderLayer", "activation_named"]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": relu, "gelu": gelu}


def activation_named(
    layer: str, activation: str | Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """The function that a transformer's layer names by "relu" or "gelu", or is given."""
    if not isinstance(activation, str):
        return activation
    if activation not in _ACTIVATIONS:
        raise RuntimeError(
            f"{layer}: activation should be relu/gelu, not {activation!r}; pass any other as a "
            "function"
        )
    return _ACTIVATIONS[activation]


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward net, each with a residual link and a normalization.

    h = norm1(x + self_attn(x)); y = norm2(h + linear2(activation(linear1(h)))), or with norm_first
    h = x + self_attn(norm1(x)); y = h + linear2(activation(linear1(norm2(h))))

    Shape: (L, N, D) or (L, D), the same out; with batch_first (N, L, D).

    Args:
        d_model: D, the features.
        nhead: number of heads.
        dim_feedforward: width of the feed-forward net.
        dropout: rate of dropout behind attention, activation and net, and on attention's weights.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the normalizations.
        batch_first: whether the batch comes first.
        norm_first: whether to normalize first.
        bias: whether linear maps and normalizations have a bias.

    >>> from chainrule import nn, ones
    >>> nn.TransformerEncoderLayer(d_model=8, nhead=2)(ones(5, 3, 8)).shape
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
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation_named("TransformerEncoderLayer", activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            out, _ = self.self_attn(
                x,
                x,
                x,
                src_key_padding_mask,
                need_weights=False,
                attn_mask=src_mask,
                is_causal=is_causal,
            )
            return self.dropout1(out)

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._feed_forward(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of an encoder layer and a last normalization: y = norm(layer_n(... layer_1(x))).

    Shape: (L, N, D) or (L, D), the same out; with batch_first (N, L, D).

    Args:
        encoder_layer: the layer; it is copied with its parameters.
        num_layers: how many copies.
        norm: a last normalization, such as LayerNorm.
        enable_nested_tensor: accepted for PyTorch's sake; there is one way to compute.
        mask_check: likewise.

    >>> from chainrule import nn, ones
    >>> layer = nn.TransformerEncoderLayer(d_model=8, nhead=2)
    >>> nn.TransformerEncoder(layer, num_layers=2)(ones(5, 3, 8)).shape
    chainrule.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = bool(is_causal) and mask is not None
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, causal)
        return src if self.norm is None else self.norm(src)
