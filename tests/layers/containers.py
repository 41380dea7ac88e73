"""Records of networks put together from layers."""

from __future__ import annotations

from collections import OrderedDict

from layers.record import Layer

LAYERS = [
    Layer(
        "Sequential",
        lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)),
        lambda r: (r.normal(size=(5, 3)),),
    ),
    Layer(
        "Sequential",
        lambda nn: nn.Sequential(
            OrderedDict(
                hidden=nn.Linear(3, 4),
                block=nn.Sequential(nn.Sigmoid(), nn.Linear(4, 4)),
                out=nn.Linear(4, 1),
            )
        ),
        lambda r: (r.normal(size=(2, 3)),),
        note="nested, by name",
    ),
    Layer("Sequential", lambda nn: nn.Sequential(), lambda r: (r.normal(size=(2,)),), note="empty"),
    Layer(
        "DataParallel",
        lambda nn: nn.DataParallel(nn.Sequential(nn.Linear(3, 4), nn.Tanh())),
        lambda r: (r.normal(size=(5, 3)),),
    ),
]
