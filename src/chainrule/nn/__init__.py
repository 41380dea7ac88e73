"""Layers, losses and what they are made of: PyTorch's ``torch.nn``, and the courses' own."""

# Lists of names, packed; tools/names.py writes what is marked, and __all__.
# fmt: off

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from chainrule.absent import absent as _absent
from chainrule.nn import functional, init, parallel, utils
from chainrule.nn.activations.learned import ParametricActivation, PReLU  # all of it
from chainrule.nn.activations.piecewise import (  # all of it
    BinaryStep, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, ReLU, ReLU6, RReLU, Sign,
    Softshrink, Threshold,
)
from chainrule.nn.activations.properties import activation_properties
from chainrule.nn.activations.smooth import (  # all of it
    CELU, ELU, Gaussian, GELU, LeCunTanh, LogSigmoid, Mish, SELU, Sigmoid, SiLU, SobolevaTanh,
    Softplus, Softsign, Tanh, Tanhshrink,
)
from chainrule.nn.activations.vector import (  # all of it
    GLU, LogSoftmax, Softmax, Softmax2d, Softmin,
)
from chainrule.nn.layers import arithmetic
from chainrule.nn.layers.adaptive_pooling import (
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d,
)
from chainrule.nn.layers.multihead import MultiheadAttention
from chainrule.nn.recurrent.cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from chainrule.nn.layers.containers import ModuleDict, ModuleList, Sequential
from chainrule.nn.layers.conv import Conv1d, Conv2d, Conv3d
from chainrule.nn.layers.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from chainrule.nn.layers.dropout import (
    AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout, UnscaledDropout,
)
from chainrule.nn.layers.embedding import Embedding, EmbeddingBag
from chainrule.nn.layers.feedback import FeedbackLinear, feedback_alignment
from chainrule.nn.layers.folding import ChannelShuffle, Fold, PixelShuffle, PixelUnshuffle, Unfold
from chainrule.nn.layers.lazy import (
    LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyConv1d, LazyConv2d, LazyConv3d,
    LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyInstanceNorm1d,
    LazyInstanceNorm2d, LazyInstanceNorm3d, LazyLinear, LazyModuleMixin,
)
from chainrule.nn.layers.linear import Bilinear, Linear, SecondOrder
from chainrule.nn.layers.fractional_pooling import FractionalMaxPool2d, FractionalMaxPool3d
from chainrule.nn.losses.adaptive import AdaptiveLogSoftmaxWithLoss
from chainrule.nn.losses.likelihoods import GaussianNLLLoss, KLDivLoss, PoissonNLLLoss
from chainrule.nn.losses.numbers import (
    HalfSquaredLoss, HuberLoss, L1Loss, MSELoss, SmoothL1Loss,
)
from chainrule.nn.losses.classes import (
    BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, NLLLoss, PerceptronLoss, SoftMarginLoss,
    ZeroOneLoss,
)
from chainrule.nn.losses.ctc import CTCLoss
from chainrule.nn.losses.ordered import OrdinalLoss, PinballLoss
from chainrule.nn.losses.distance import (
    CosineEmbeddingLoss, CosineSimilarity, PairwiseDistance, TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from chainrule.nn.losses.margin import (
    HingeEmbeddingLoss, MarginRankingLoss, MultiLabelMarginLoss, MultiLabelSoftMarginLoss,
    MultiMarginLoss,
)
from chainrule.nn.layers.maxout import Maxout
from chainrule.nn.module.base import Module
from chainrule.nn.layers.noise import GaussianNoise, WeightNoise
from chainrule.nn.layers.norm import (
    BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
    SyncBatchNorm,
)
from chainrule.nn.layers.norm_sample import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
from chainrule.nn.losses.objective import CANONICAL_LINKS
from chainrule.nn.layers.padding import (
    CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, ZeroPad1d, ZeroPad2d, ZeroPad3d,
)
from chainrule.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from chainrule.nn.layers.parameter_containers import ParameterDict, ParameterList
from chainrule.nn.layers.pooling import (
    AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d, MaxPool1d, MaxPool2d, MaxPool3d,
)
from chainrule.nn.layers.rbf import RBF, RBFNetwork
from chainrule.nn.recurrent.base import RNNBase
from chainrule.nn.recurrent.layers import GRU, LSTM, RNN
from chainrule.nn.recurrent.conv import ConvLSTM, ConvLSTMCell, ConvRNN, ConvRNNCell, RecurrentConv
from chainrule.nn.layers.residual import Highway, Residual, ResidualBlock, SkipConcat
from chainrule.nn.recurrent.variants import Bidirectional, DeepRNN, PeepholeLSTM, TimeDistributed
from chainrule.nn.layers.shape import Flatten, Identity, Unflatten
from chainrule.nn.layers.transformer import TransformerEncoder, TransformerEncoderLayer
from chainrule.nn.layers.transformer_decoder import (
    Transformer, TransformerDecoder, TransformerDecoderLayer,
)
from chainrule.nn.layers.unit_graph import UnitGraph
from chainrule.nn.layers.upsample import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
from chainrule.nn.parallel.data_parallel import DataParallel

if _TYPE_CHECKING:
    from chainrule.nn import modules


def __getattr__(name: str) -> _Any:
    if name == "modules":  # PyTorch's homes of what is here: imported when first asked for
        return _import_module("chainrule.nn.modules")
    raise _absent(__name__, name, ABSENT)


ABSENT = {
    "attention": "it chooses kernels of GPUs; functional.scaled_dot_product_attention computes",
    "common_types": "it belongs to the inside of PyTorch; chainrule.typing has the types here",
    "grad": "autograd.grad differentiates convolutions like all else",
    "Container": "an old base class of PyTorch; write nn.Module, or nn.Sequential for a row",
    "CrossMapLRN2d": "nn.LocalResponseNorm is the same, for inputs of any number of dimensions",
    "LinearCrossEntropyLoss": (
        "it saves memory on a GPU; nn.CrossEntropyLoss()(linear(x), target) has its value"
    ),
    "LinearCrossEntropyOptions": "it belongs to LinearCrossEntropyLoss; use nn.CrossEntropyLoss",
    "NLLLoss2d": "nn.NLLLoss takes inputs of any number of dimensions",
    "factory_kwargs": "it belongs to the inside of PyTorch; layers take device= and dtype=",
    **dict.fromkeys(
        ("intrinsic", "qat", "quantizable", "quantized"),
        "chainrule does not quantize; float32 and float64 are computed with",
    ),
}


__all__ = [
    "activation_properties", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AlphaDropout", "arithmetic", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "BCELoss", "BCEWithLogitsLoss", "Bidirectional", "Bilinear",
    "BinaryStep", "Buffer", "CANONICAL_LINKS", "CELU", "ChannelShuffle", "CircularPad1d",
    "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d",
    "Conv2d", "Conv3d", "ConvLSTM", "ConvLSTMCell", "ConvRNN", "ConvRNNCell", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "CTCLoss", "DataParallel", "DeepRNN", "Dropout", "Dropout1d", "Dropout2d",
    "Dropout3d", "ELU", "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "feedback_alignment",
    "FeedbackLinear", "Flatten", "Fold", "FractionalMaxPool2d", "FractionalMaxPool3d", "functional",
    "Gaussian", "GaussianNLLLoss", "GaussianNoise", "GELU", "GLU", "GroupNorm", "GRU", "GRUCell",
    "HalfSquaredLoss", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Highway",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "init", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "KLDivLoss", "L1Loss", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear", "LazyModuleMixin", "LeakyReLU", "LeCunTanh", "Linear",
    "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM",
    "LSTMCell", "MarginRankingLoss", "Maxout", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d",
    "MaxUnpool2d", "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList", "modules",
    "MSELoss", "MultiheadAttention", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "OrdinalLoss", "PairwiseDistance", "parallel", "Parameter",
    "ParameterDict", "ParameterList", "ParametricActivation", "PeepholeLSTM", "PerceptronLoss",
    "PinballLoss", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "PReLU", "RBF", "RBFNetwork",
    "RecurrentConv", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReLU", "ReLU6",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Residual", "ResidualBlock",
    "RMSNorm", "RNN", "RNNBase", "RNNCell", "RNNCellBase", "RReLU", "SecondOrder", "SELU",
    "Sequential", "Sigmoid", "Sign", "SiLU", "SkipConcat", "SmoothL1Loss", "SobolevaTanh",
    "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "TimeDistributed", "Transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten",
    "Unfold", "UninitializedBuffer", "UninitializedParameter", "UnitGraph", "UnscaledDropout",
    "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "utils", "WeightNoise",
    "ZeroOneLoss", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]
