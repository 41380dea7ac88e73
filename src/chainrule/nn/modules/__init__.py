"""PyTorch's ``torch.nn.modules``: the classes of ``chainrule.nn``, where PyTorch keeps them."""

# Lists of names, packed; tools/names.py writes what is marked, and __all__.
# fmt: off

from chainrule.nn.modules import (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten,
    fold, instancenorm, lazy, linear, loss, module, normalization, padding, pixelshuffle, pooling,
    rnn, sparse, transformer, upsampling, utils,
)
from chainrule.nn.modules.activation import (  # all of it
    CELU, ELU, GELU, GLU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid,
    LogSoftmax, Mish, MultiheadAttention, PReLU, ReLU, ReLU6, RReLU, SELU, Sigmoid, SiLU, Softmax,
    Softmax2d, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink, Threshold,
)
from chainrule.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss  # all of it
from chainrule.nn.modules.batchnorm import (  # all of it
    BatchNorm1d, BatchNorm2d, BatchNorm3d, LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d,
    SyncBatchNorm,
)
from chainrule.nn.modules.channelshuffle import ChannelShuffle  # all of it
from chainrule.nn.modules.container import (  # all of it
    ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential,
)
from chainrule.nn.modules.conv import (  # all of it
    Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, LazyConv1d,
    LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d,
)
from chainrule.nn.modules.distance import CosineSimilarity, PairwiseDistance  # all of it
from chainrule.nn.modules.dropout import (  # all of it
    AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout,
)
from chainrule.nn.modules.flatten import Flatten, Unflatten  # all of it
from chainrule.nn.modules.fold import Fold, Unfold  # all of it
from chainrule.nn.modules.instancenorm import (  # all of it
    InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d,
    LazyInstanceNorm3d,
)
from chainrule.nn.modules.lazy import LazyModuleMixin  # all of it
from chainrule.nn.modules.linear import Bilinear, Identity, LazyLinear, Linear  # all of it
from chainrule.nn.modules.loss import (  # all of it
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, CTCLoss, GaussianNLLLoss,
    HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss, MarginRankingLoss, MSELoss,
    MultiLabelMarginLoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NLLLoss, PoissonNLLLoss,
    SmoothL1Loss, SoftMarginLoss, TripletMarginLoss, TripletMarginWithDistanceLoss,
)
from chainrule.nn.modules.module import (  # all of it
    Module, register_module_backward_hook, register_module_buffer_registration_hook,
    register_module_forward_hook, register_module_forward_pre_hook,
    register_module_full_backward_hook, register_module_full_backward_pre_hook,
    register_module_module_registration_hook, register_module_parameter_registration_hook,
)
from chainrule.nn.modules.normalization import (  # all of it
    GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm,
)
from chainrule.nn.modules.padding import (  # all of it
    CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, ZeroPad1d, ZeroPad2d, ZeroPad3d,
)
from chainrule.nn.modules.pixelshuffle import PixelShuffle, PixelUnshuffle  # all of it
from chainrule.nn.modules.pooling import (  # all of it
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, FractionalMaxPool2d, FractionalMaxPool3d,
    LPPool1d, LPPool2d, LPPool3d, MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d,
    MaxUnpool3d,
)
from chainrule.nn.modules.rnn import (  # all of it
    GRU, GRUCell, LSTM, LSTMCell, RNN, RNNBase, RNNCell, RNNCellBase,
)
from chainrule.nn.modules.sparse import Embedding, EmbeddingBag  # all of it
from chainrule.nn.modules.transformer import (  # all of it
    Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer,
)
from chainrule.nn.modules.upsampling import (  # all of it
    Upsample, UpsamplingBilinear2d, UpsamplingNearest2d,
)

__all__ = [
    "activation", "adaptive", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "batchnorm", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "BCELoss", "BCEWithLogitsLoss", "Bilinear", "CELU",
    "ChannelShuffle", "channelshuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d",
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "container", "conv", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss",
    "CosineSimilarity", "CrossEntropyLoss", "CTCLoss", "distance", "Dropout", "dropout",
    "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout", "Flatten", "flatten", "Fold", "fold", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "GaussianNLLLoss", "GELU", "GLU", "GroupNorm", "GRU", "GRUCell",
    "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss",
    "Identity", "instancenorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss",
    "L1Loss", "LayerNorm", "lazy", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d",
    "LazyLinear", "LazyModuleMixin", "LeakyReLU", "Linear", "linear", "LocalResponseNorm",
    "LogSigmoid", "LogSoftmax", "loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM", "LSTMCell",
    "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Mish", "Module", "module", "ModuleDict", "ModuleList", "MSELoss",
    "MultiheadAttention", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "normalization", "padding", "PairwiseDistance", "ParameterDict", "ParameterList",
    "PixelShuffle", "pixelshuffle", "PixelUnshuffle", "PoissonNLLLoss", "pooling", "PReLU",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook", "ReLU", "ReLU6", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "RMSNorm", "RNN", "rnn", "RNNBase", "RNNCell",
    "RNNCellBase", "RReLU", "SELU", "Sequential", "Sigmoid", "SiLU", "SmoothL1Loss",
    "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "sparse", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "Transformer", "transformer",
    "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten",
    "Unfold", "Upsample", "upsampling", "UpsamplingBilinear2d", "UpsamplingNearest2d", "utils",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]
