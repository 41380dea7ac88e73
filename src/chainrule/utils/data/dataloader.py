"""The loader, where PyTorch has it."""

from chainrule.data.collate import default_collate, default_convert
from chainrule.data.dataset import Dataset, IterableDataset
from chainrule.data.loader import DataLoader
from chainrule.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from chainrule.data.workers import get_worker_info

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
