"""The networks that people train on a CPU: one definition each, for chainrule and PyTorch."""

from __future__ import annotations

from typing import Any

from architectures import generative, mobile, others, residual, sequences
from architectures.task import Network, Task

__all__ = ["NETWORKS", "Network", "Task"]

IMAGES: dict[str, Any] = {"batch": 32, "size": 32}
PHOTOS: dict[str, Any] = {"batch": 4, "size": 224}
SMALL: dict[str, Any] = {"batch": 3, "size": 16, "width": 4}
QUARTER: dict[str, Any] = {"batch": 3, "size": 32, "width": 0.25}
GRAPH: dict[str, Any] = {"nodes": 40, "edges": 80, "features": 12}

NETWORKS = [
    Network("resnet18", "ResNet-18, 3x32x32, batch 32", residual.resnet18, IMAGES, SMALL),
    Network(
        "resnet50",
        "ResNet-50, 3x32x32, batch 32",
        residual.resnet50,
        IMAGES,
        {**SMALL, "depths": (2, 1)},
    ),
    Network(
        "resnet18-224",
        "ResNet-18, 3x224x224, batch 4",
        residual.resnet18,
        PHOTOS,
        {"batch": 2, "size": 128, "width": 4},
    ),
    Network(
        "resnet50-224",
        "ResNet-50, 3x224x224, batch 4",
        residual.resnet50,
        PHOTOS,
        {"batch": 2, "size": 128, "width": 4, "depths": (1, 1)},
    ),
    Network(
        "vgg11",
        "VGG-11, 3x32x32, batch 32",
        mobile.vgg11,
        IMAGES,
        {"batch": 3, "width": 4},
    ),
    Network(
        "mobilenet",
        "MobileNet, 3x32x32, batch 32",
        mobile.mobilenet,
        IMAGES,
        {**SMALL, "size": 32},
    ),
    Network("mobilenetv2", "MobileNetV2, 3x32x32, batch 32", mobile.mobilenet_v2, IMAGES, QUARTER),
    Network(
        "efficientnet",
        "EfficientNet-B0, 3x64x64, batch 16",
        mobile.efficientnet,
        {"batch": 16, "size": 64},
        {**QUARTER, "size": 64},
    ),
    Network(
        "densenet",
        "DenseNet-121, growth 12, 3x32x32, batch 32",
        residual.densenet,
        IMAGES,
        {"batch": 3, "size": 16, "growth": 4, "depths": (2, 2)},
    ),
    Network(
        "resnext",
        "ResNeXt-29, 8 groups, 3x32x32, batch 32",
        residual.resnext,
        IMAGES,
        {**SMALL, "groups": 2},
    ),
    Network(
        "shufflenet",
        "ShuffleNetV2, 3x32x32, batch 32",
        mobile.shufflenet_v2,
        IMAGES,
        {"batch": 3, "widths": (4, 8, 12, 16, 20)},
    ),
    Network(
        "convnext",
        "ConvNeXt-atto, 3x64x64, batch 16",
        mobile.convnext,
        {"batch": 16, "size": 64},
        {"batch": 3, "widths": (4, 8, 12), "depths": (1, 1, 1)},
    ),
    Network(
        "unet64",
        "U-Net, 3x64x64, batch 8",
        generative.unet,
        {"batch": 8, "size": 64},
        {"batch": 2, "size": 16, "width": 4, "depth": 2},
    ),
    Network(
        "unet128",
        "U-Net, 3x128x128, batch 4",
        generative.unet,
        {"batch": 4, "size": 128},
        {"batch": 2, "size": 16, "width": 4, "depth": 3},
    ),
    Network(
        "vit",
        "ViT, 6 layers of 192, 3x32x32, batch 32",
        sequences.vit,
        {"batch": 32},
        {"batch": 2, "size": 16, "layers": 2, "width": 12},
    ),
    Network(
        "gpt128",
        "GPT, 4 layers of 128, 4 x 128 letters",
        sequences.gpt,
        {},
        {"batch": 2, "length": 9, "layers": 1, "width": 16},
    ),
    Network(
        "gpt384",
        "GPT, 6 layers of 384, 4 x 128 letters",
        sequences.gpt,
        {"layers": 6, "width": 384, "heads": 6},
        {"batch": 2, "length": 9, "layers": 2, "width": 24},
    ),
    Network(
        "encoder",
        "transformer encoder, padded, 16 x 64 words",
        sequences.encoder,
        {},
        {"batch": 3, "length": 8, "layers": 2, "width": 8, "heads": 2},
    ),
    Network(
        "lstm",
        "LSTM language model, 20,000 words, 16 x 35",
        sequences.lstm_language_model,
        {},
        {"batch": 2, "length": 7, "vocabulary": 90, "width": 8, "hidden": 9},
    ),
    Network(
        "seq2seq",
        "GRU seq2seq with attention, 32 x 20 words",
        sequences.seq2seq,
        {},
        {"batch": 3, "length": 5, "vocabulary": 30, "width": 8},
    ),
    Network(
        "vae",
        "VAE 784-400-20, batch 128",
        generative.vae,
        {"batch": 128},
        {"batch": 5, "width": 16, "code": 3, "fixed": True},
    ),
    Network(
        "dcgan",
        "DCGAN, 3x32x32, batch 32",
        generative.dcgan,
        {"batch": 32},
        {"batch": 3, "width": 4},
    ),
    Network("gcn", "GCN, 2,708 nodes", others.gcn, {}, GRAPH),
    Network("gat", "GAT, 2,708 nodes, 8 heads", others.gat, {}, GRAPH),
    Network(
        "autoencoder",
        "autoencoder of convolutions, 1x28x28, batch 64",
        generative.autoencoder,
        {"batch": 64},
        {"batch": 3, "width": 2},
    ),
    Network(
        "bags",
        "embedding bags, 50,000 words, batch 64",
        others.embedding_bag,
        {},
        {"batch": 5, "words": 4, "vocabulary": 60, "width": 6},
    ),
    Network(
        "pinn2",
        "PINN, second derivatives, 1,000 points",
        others.pinn,
        {"order": 2},
        {"points": 7, "width": 6},
    ),
    Network(
        "pinn3",
        "PINN, third derivatives, 1,000 points",
        others.pinn,
        {"order": 3},
        {"points": 7, "width": 6},
    ),
    Network(
        "conv3d",
        "3-D convolutions, 16x16x16, batch 8",
        generative.conv3d,
        {"batch": 8},
        {"batch": 2, "size": 8, "width": 3},
    ),
]
