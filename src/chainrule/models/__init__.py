"""Ready networks: made of ``chainrule.nn``, to be trained, read and taken apart."""

from chainrule.models.autoencoder import Autoencoder, ConvAutoencoder, DenoisingAutoencoder
from chainrule.models.convnet import AlexNet, CifarNet, ConvBlock, LeNet, MnistConvNet
from chainrule.models.heads import BinaryClassifier, Classifier, FeatureMapModel
from chainrule.models.linear import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    SoftmaxRegression,
)
from chainrule.models.mlp import (
    MLP,
    SelfNormalizingMLP,
    activation_module,
    xor_from_ands,
    xor_network,
)
from chainrule.models.resnet import ResNet
from chainrule.models.sequence import SequenceModel
from chainrule.models.structured import AdditiveModel, DictionaryModel, MultiTaskNet, capacity
from chainrule.models.tabular import MemberLinear, TabularNetwork, WeightedNetworks
from chainrule.clustering import growing_neural_gas, kmeans, kmeans_plus_plus
from chainrule.nn.layers.rbf import RBFNetwork, fit_rbf
from chainrule.regularize.cascade import CascadeNetwork

__all__ = [
    "AdditiveModel",
    "AlexNet",
    "Autoencoder",
    "CascadeNetwork",
    "BinaryClassifier",
    "CifarNet",
    "Classifier",
    "ConvAutoencoder",
    "ConvBlock",
    "DenoisingAutoencoder",
    "DictionaryModel",
    "FeatureMapModel",
    "LeNet",
    "LinearRegression",
    "LogisticRegression",
    "MLP",
    "MemberLinear",
    "MnistConvNet",
    "MultiTaskNet",
    "Perceptron",
    "RBFNetwork",
    "ResNet",
    "SelfNormalizingMLP",
    "SequenceModel",
    "SoftmaxRegression",
    "TabularNetwork",
    "WeightedNetworks",
    "activation_module",
    "capacity",
    "fit_rbf",
    "growing_neural_gas",
    "kmeans",
    "kmeans_plus_plus",
    "xor_from_ands",
    "xor_network",
]
