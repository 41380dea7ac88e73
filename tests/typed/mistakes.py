"""Ten mistakes of users, each in a line of its own; mypy and pyright find every one."""

from __future__ import annotations

import chainrule as torch
from chainrule import Tensor, nn, optim
from chainrule.nn import functional as F

x = torch.randn(4, 3)
net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())

x.tahn()  # mistake: no such method
x.sum(dim="rows")  # mistake: a dimension is a number
x.reshape("2, 6")  # mistake: sizes are numbers
x + "1"  # mistake: text is no operand
nn.Linear(3)  # mistake: the number of outputs is missing
nn.Conv2d(3, 8, kernel="3")  # mistake: the argument is called kernel_size
optim.SGD(net.parameters(), lr="fast")  # mistake: a rate is a number
F.softmax(x, dims=1)  # mistake: the argument is called dim
torch.zeros(2, 3, dtype=32)  # mistake: a type is no number
best: Tensor = x.max(dim=1)  # mistake: values and places, not a tensor
x.backward(retain_grpah=True)  # mistake: misspelled
