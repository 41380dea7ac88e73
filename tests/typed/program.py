"""Sixty lines as a user writes them, which mypy and pyright (strict) find no fault with."""

from __future__ import annotations

import chainrule as torch
from chainrule import Tensor, data, nn, optim
from chainrule.nn import functional as F


class Net(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, classes)
        nn.init.kaiming_normal_(self.first.weight)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm(self.first(x)))
        out: Tensor = self.last(F.dropout(h, 0.1, self.training))
        return out


def points(count: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 2)
    x[:, 0] *= 2.0
    inside = (x**2).sum(axis=1, keepdims=True).squeeze(1).sqrt() < 1.5
    return x, inside.long()


def train(net: nn.Module, loader: data.DataLoader, epochs: int) -> list[float]:
    optimizer = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=1e-4)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    losses: list[float] = []
    for _ in range(epochs):
        net.train()
        for x, y in loader:
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    return losses


@torch.no_grad()
def accuracy(net: nn.Module, x: Tensor, y: Tensor) -> float:
    net.eval()
    scores: Tensor = net(x)
    return float((scores.argmax(axis=1) == y).float().mean())


def slopes(x: Tensor) -> Tensor:
    x = x.detach().clone().requires_grad_()
    y = torch.tanh(x).mul(2).add(1.0).clamp(min=-0.5)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    values, places = first.abs().max(dim=1)
    return torch.stack([values, places.to(values.dtype), x.norm(dim=1)], dim=-1)


torch.manual_seed(0)
x, y = points(200)
net = Net(x.shape[1], hidden=8, classes=2)
losses = train(net, data.DataLoader(data.TensorDataset(x, y), batch_size=50, shuffle=True), 4)
table = torch.cat((x[:3], slopes(x)[:3].reshape(3, -1)), dim=1).T.detach()
print(
    f"{accuracy(net, x, y):.2f}", table.shape, table.numpy().round(2).tolist()[0][:2], len(losses)
)
