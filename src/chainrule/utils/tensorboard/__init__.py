"""Records of a run for TensorBoard to show: PyTorch's ``torch.utils.tensorboard``.

The files are written here, without the package ``tensorboard``; to look at them it has to be
installed: ``tensorboard --logdir runs``.
"""

from typing import Any

from chainrule.absent import absent
from chainrule.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]

ABSENT = {
    "FileWriter": "it takes messages of the package tensorboard; SummaryWriter makes its own",
    "RecordWriter": "SummaryWriter writes records",
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
