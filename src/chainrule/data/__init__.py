"""Data: datasets, loaders, samplers, splits and folds; tables and preprocessing."""

from chainrule.data import transforms, transforms_functional
from chainrule.data.cifar import CIFAR10, CIFAR100
from chainrule.data.collate import default_collate, default_convert
from chainrule.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset,
    random_split,
)  # fmt: skip
from chainrule.data.folders import ImageFolder, ImageNet
from chainrule.data.folds import (
    CrossValidationRisk, GroupKFold, KFold, LeaveOneOut, StratifiedKFold, TimeSeriesSplit,
    cross_validation_risk,
)  # fmt: skip
from chainrule.data.categories import CategoryEncoder, OneHot
from chainrule.data.decorrelation import PCA, Whitening
from chainrule.data.downloads import DownloadError, download
from chainrule.data.embedded import EMBEDDED, EmbeddedTable, embedded
from chainrule.data.encoding import TableEncoder, TargetEncoder, detect_task
from chainrule.data.image_encoder import ImageEncoder, image_files
from chainrule.data.images import (
    ImageError, imshow, make_grid, read_image, to_float, to_uint8, unnormalize, write_image,
)  # fmt: skip
from chainrule.data.imputation import Imputer
from chainrule.data.loader import DataLoader
from chainrule.data.power import LogTransform, PowerTransform
from chainrule.data.preprocess import Pipeline, Transform
from chainrule.data.sampler import (
    BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
    WeightedRandomSampler,
)  # fmt: skip
from chainrule.data.scaling import MinMaxScaler, RobustScaler, StandardScaler, TargetScaler
from chainrule.data.splits import train_test_split, train_validation_test_split
from chainrule.data.table import Column, Table, TableError, read_table
from chainrule.data.transforms import (
    AutoAugment, CenterCrop, ColorJitter, Compose, GaussianNoise, Grayscale, ImageTransform,
    InterpolationMode, Normalize, Pad, RandAugment, RandomAffine, RandomApply, RandomCrop,
    RandomErasing, RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop, RandomRotation,
    RandomTransform, RandomVerticalFlip, Resize, ToPILImage, ToTensor,
)  # fmt: skip
from chainrule.data.vision import MNIST, DatasetError, FashionMNIST, ImagesInMemory, data_root
from chainrule.data.windows import WindowDataset
from chainrule.data.workers import WorkerInfo, get_worker_info

__all__ = [
    "AutoAugment", "BatchSampler", "CIFAR10", "CIFAR100", "CategoryEncoder", "CenterCrop",
    "ChainDataset", "ColorJitter", "Column", "Compose", "ConcatDataset", "CrossValidationRisk",
    "DataLoader", "Dataset", "DatasetError", "DownloadError", "EMBEDDED", "EmbeddedTable",
    "FashionMNIST", "GaussianNoise", "Grayscale", "GroupKFold", "ImageEncoder", "ImageError",
    "ImageFolder", "ImageNet", "ImageTransform", "ImagesInMemory", "Imputer", "InterpolationMode",
    "IterableDataset", "KFold", "LeaveOneOut", "LogTransform", "MNIST", "MinMaxScaler", "Normalize",
    "OneHot", "PCA", "Pad", "Pipeline", "PowerTransform", "RandAugment", "RandomAffine",
    "RandomApply", "RandomCrop", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip",
    "RandomResizedCrop", "RandomRotation", "RandomSampler", "RandomTransform", "RandomVerticalFlip",
    "Resize", "RobustScaler", "Sampler", "SequentialSampler", "StackDataset", "StandardScaler",
    "StratifiedKFold", "Subset", "SubsetRandomSampler", "Table", "TableEncoder", "TableError",
    "TargetEncoder", "TargetScaler", "TensorDataset", "TimeSeriesSplit", "ToPILImage", "ToTensor",
    "Transform", "WeightedRandomSampler", "Whitening", "WindowDataset", "WorkerInfo",
    "cross_validation_risk", "data_root", "default_collate", "default_convert", "detect_task",
    "download", "embedded", "get_worker_info", "image_files", "imshow", "make_grid", "random_split",
    "read_image", "read_table", "to_float", "to_uint8", "train_test_split",
    "train_validation_test_split", "transforms", "transforms_functional", "unnormalize",
    "write_image",
]  # fmt: skip
