"""PyTorch's ``torch.utils.data``: what ``chainrule.data`` has under the same names."""

from typing import Any

from chainrule.absent import absent
from chainrule.data.collate import default_collate, default_convert
from chainrule.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from chainrule.data.loader import DataLoader
from chainrule.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from chainrule.data.workers import get_worker_info
from chainrule.utils.data import dataloader, dataset, distributed, sampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "dataloader",
    "dataset",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
    "sampler",
]

ABSENT = {
    "_DatasetKind": "whether a dataset is iterable is asked with isinstance(d, IterableDataset)",
    **dict.fromkeys(
        (
            "DFIterDataPipe",
            "DataChunk",
            "IterDataPipe",
            "MapDataPipe",
            "argument_validation",
            "datapipes",
            "functional_datapipe",
            "guaranteed_datapipes_determinism",
            "non_deterministic",
            "runtime_validation",
            "runtime_validation_disabled",
        ),
        "PyTorch has given up data pipes; a Dataset or an IterableDataset does the same",
    ),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
