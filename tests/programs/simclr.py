"""SimCLR: two views of each signal attract each other, all others repel; then a linear probe."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    """Four kinds of waves, 32 samples long; an item is two random views of one, and its kind."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        t = np.linspace(0, 4 * np.pi, 32)
        waves = [np.sin(t), np.sign(np.sin(t)), np.sin(2 * t), np.abs(np.sin(t)) - 0.6]
        self.kind = rng.integers(0, 4, n)
        self.x = torch.stack([torch.tensor(waves[k], dtype=torch.float32) for k in self.kind])

    def view(self, x):
        x = torch.roll(x, int(torch.randint(0, 32, (1,))), dims=0)
        if torch.rand(1).item() < 0.5:
            x = x.flip(0)
        return (0.5 + torch.rand(1)) * x + 0.2 * torch.randn(32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.view(self.x[i]), self.view(self.x[i]), self.kind[i]


class SimCLR(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 8, 5, stride=2, padding=2),
            nn.BatchNorm1d(8),
            nn.ReLU(),
            nn.Conv1d(8, dim, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(dim, dim, bias=False), nn.ReLU(), nn.Linear(dim, 8, bias=False)
        )

    def forward(self, x):
        h = self.encoder(x.unsqueeze(1))
        return h, self.projector(h)


def nt_xent(z_i, z_j, temperature=0.5):
    batch_size = z_i.shape[0]
    z = F.normalize(torch.cat([z_i, z_j], dim=0), dim=1)
    similarity = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2)
    sim_ij = torch.diag(similarity, batch_size)
    sim_ji = torch.diag(similarity, -batch_size)
    positives = torch.cat([sim_ij, sim_ji], dim=0)
    mask = (~torch.eye(2 * batch_size, dtype=torch.bool)).float()
    nominator = torch.exp(positives / temperature)
    denominator = mask * torch.exp(similarity / temperature)
    return torch.sum(-torch.log(nominator / torch.sum(denominator, dim=1))) / (2 * batch_size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--batch-size", default=32, type=int)
    parser.add_argument("--temperature", default=0.5, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    args = parser.parse_args()

    torch.manual_seed(0)
    dataset = Signals(160)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = SimCLR()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=args.weight_decay)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=len(loader) * args.epochs, eta_min=0, last_epoch=-1
    )
    losses = []
    for epoch in range(args.epochs):
        for x_i, x_j, _ in loader:
            _, z_i = model(x_i)
            _, z_j = model(x_j)
            loss = nt_xent(z_i, z_j, args.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        print(f"Epoch: {epoch}\tLoss: {losses[-1]:.4f}")

    model.eval()
    with torch.no_grad():
        x, _, kind = next(iter(DataLoader(dataset, batch_size=len(dataset))))
        features, _ = model(x)
    probe = nn.Linear(features.shape[1], 4)
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.5)
    for _ in range(40):
        loss = F.cross_entropy(probe(features), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    acc = (probe(features).argmax(dim=1) == kind).float().mean().item()
    print(f"linear probe: loss {loss.item():.4f}, accuracy {acc:.4f}")
    return [*losses, loss.item()]


if __name__ == "__main__":
    main()
