"""The layers as functions: PyTorch's ``torch.nn.functional``."""

# Lists of names, packed; tools/names.py writes what is marked, and __all__.
# fmt: off

from typing import Any as _Any

from chainrule.absent import absent as _absent
from chainrule.nn.activations.functions import (  # all of it
    binary_step, celu, celu_, elu, elu_, gaussian, gelu, glu, gumbel_softmax, hardshrink,
    hardsigmoid, hardswish, hardtanh, hardtanh_, leaky_relu, leaky_relu_, lecun_tanh, log_softmax,
    logsigmoid, mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_, sigmoid, sign, silu,
    soboleva_tanh, softmax, softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold,
    threshold_,
)
from chainrule.nn.layers.attention import scaled_dot_product_attention
from chainrule.nn.layers.multihead import multi_head_attention_forward
from chainrule.nn.recurrent.cells import gru_cell, lstm_cell, rnn_cell, rnn_relu_cell, rnn_tanh_cell
from chainrule.clustering import (
    growing_neural_gas, kmeans, kmeans_plus_plus, squared_distances, uniform_centers,
)
from chainrule.nn.layers.conv import convolve
from chainrule.nn.layers.dropout import (
    alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout,
    unscaled_dropout,
)
from chainrule.nn.layers.embedding import embedding, embedding_bag, one_hot
from chainrule.nn.layers.folding import (
    channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold,
)
from chainrule.nn.layers.fractional_pooling import (
    fractional_max_pool2d, fractional_max_pool2d_with_indices, fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from chainrule.nn.layers.older import (  # all of it
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices, max_pool1d_with_indices, max_pool2d_with_indices,
    max_pool3d_with_indices, native_channel_shuffle, pdist, upsample, upsample_bilinear,
    upsample_nearest,
)
from chainrule.nn.layers.grid import affine_grid, grid_sample
from chainrule.nn.layers.linear import bilinear, linear, second_order
from chainrule.nn.losses.likelihoods import gaussian_nll_loss, kl_div, poisson_nll_loss
from chainrule.nn.losses.numbers import (
    half_squared_loss, huber_loss, l1_loss, mse_loss, smooth_l1_loss,
)
from chainrule.nn.losses.classes import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, nll_loss,
    perceptron_loss, soft_margin_loss, zero_one_loss,
)
from chainrule.nn.losses.ctc import ctc_loss
from chainrule.nn.losses.ordered import ordinal_loss, pinball_loss
from chainrule.nn.losses.distance import (
    cosine_embedding_loss, cosine_similarity, pairwise_distance, triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from chainrule.nn.losses.margin import (
    hinge_embedding_loss, margin_ranking_loss, multi_margin_loss, multilabel_margin_loss,
    multilabel_soft_margin_loss,
)
from chainrule.nn.layers.maxout import maxout
from chainrule.nn.layers.noise import gaussian_noise, monte_carlo_predict, weight_noise
from chainrule.nn.layers.norm_functions import batch_norm, instance_norm
from chainrule.nn.layers.norm_sample import (
    group_norm, layer_norm, local_response_norm, normalize, rms_norm,
)
from chainrule.nn.layers.weight_scaling import weight_scaled
from chainrule.nn.losses.objective import weighted_sum
from chainrule.nn.layers.padding import pad
from chainrule.ops.layers.conv import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)
from chainrule.ops.layers.avg_pool import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d,
    avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d,
)
from chainrule.ops.layers.max_pool import (
    adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d, max_pool1d, max_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from chainrule.nn.layers.rbf import fit_rbf, rbf
from chainrule.nn.recurrent.functions import gru, lstm, rnn, rnn_relu, rnn_tanh
from chainrule.ops.recurrent.gru import gru_sequence
from chainrule.ops.recurrent.lstm import lstm_sequence
from chainrule.ops.recurrent.rnn import rnn_sequence
from chainrule.nn.recurrent.conv import (
    conv_lstm_cell, conv_lstm_sequence, conv_rnn_cell, conv_rnn_sequence,
)
from chainrule.nn.recurrent.variants import (
    deep_rnn_sequence, peephole_lstm, peephole_sequence, time_summed,
)
from chainrule.nn.layers.upsample import interpolate


def __getattr__(name: str) -> _Any:
    raise _absent(__name__, name, ABSENT)


ABSENT = {
    "grad": "autograd.grad differentiates convolutions like all else",
    "conv_tbc": "conv1d is the same with the time last: conv1d(x.permute(1, 2, 0), ...)",
    "linear_cross_entropy": (
        "it saves memory on a GPU; cross_entropy(linear(x, weight, bias), target) has its value"
    ),
    "grouped_mm": "a kernel of PyTorch for GPUs; use matmul for each group, or einsum",
    **dict.fromkeys(
        ("ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"),
        "products of numbers of 8 bits on a GPU; use matmul",
    ),
    **dict.fromkeys(
        (
            "assert_int_or_pair",
            "boolean_dispatch",
            "handle_torch_function",
            "has_torch_function",
            "has_torch_function_unary",
            "has_torch_function_variadic",
        ),
        "it belongs to the inside of PyTorch",
    ),
    "Tensor": "it is chainrule.Tensor",
}

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "binary_step", "celu", "celu_", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_lstm_cell", "conv_lstm_sequence", "conv_rnn_cell",
    "conv_rnn_sequence", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolve",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "deep_rnn_sequence",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fit_rbf", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "gaussian", "gaussian_nll_loss", "gaussian_noise", "gelu",
    "glu", "grid_sample", "group_norm", "growing_neural_gas", "gru", "gru_cell", "gru_sequence",
    "gumbel_softmax", "half_squared_loss", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "kmeans", "kmeans_plus_plus", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_",
    "lecun_tanh", "linear", "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d",
    "lp_pool2d", "lp_pool3d", "lstm", "lstm_cell", "lstm_sequence", "margin_ranking_loss",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "maxout", "mish",
    "monte_carlo_predict", "mse_loss", "multi_head_attention_forward", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss",
    "normalize", "one_hot", "ordinal_loss", "pad", "pairwise_distance", "pdist", "peephole_lstm",
    "peephole_sequence", "perceptron_loss", "pinball_loss", "pixel_shuffle", "pixel_unshuffle",
    "poisson_nll_loss", "prelu", "rbf", "relu", "relu6", "relu_", "rms_norm", "rnn", "rnn_cell",
    "rnn_relu", "rnn_relu_cell", "rnn_sequence", "rnn_tanh", "rnn_tanh_cell", "rrelu", "rrelu_",
    "scaled_dot_product_attention", "second_order", "selu", "selu_", "sigmoid", "sign", "silu",
    "smooth_l1_loss", "soboleva_tanh", "soft_margin_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "squared_distances", "tanh", "tanhshrink", "threshold", "threshold_",
    "time_summed", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
    "uniform_centers", "unscaled_dropout", "upsample", "upsample_bilinear", "upsample_nearest",
    "weight_noise", "weight_scaled", "weighted_sum", "zero_one_loss",
]
