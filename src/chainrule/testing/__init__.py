"""PyTorch's ``torch.testing``: comparing what a program computed with what it should have."""

from typing import Any

from chainrule.absent import absent
from chainrule.testing.comparison import assert_allclose, assert_close
from chainrule.testing.making import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

ABSENT = {"FileCheck": "it searches programs in TorchScript, of which there are none"}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)
