"""Averages of the weights over the steps of training: stochastic weight averaging, moving averages.

Izmailov, Podoprikhin, Garipov, Vetrov and Wilson, 2018.
"""

from __future__ import annotations

from chainrule.optim.swa_utils.averages import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)
from chainrule.optim.swa_utils.rates import SWALR

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
