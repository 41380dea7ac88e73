"""A physics-informed network solves the Korteweg-de Vries equation: u_t + 6 u u_x + u_xxx = 0."""

import torch
import torch.nn as nn
from torch.autograd import grad

torch.set_default_dtype(torch.float64)


class MLP(nn.Module):
    def __init__(self, sizes=(2, 20, 20, 1)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x, t):
        z = torch.cat([x, t], dim=1)
        for layer in self.layers[:-1]:
            z = torch.tanh(layer(z))
        return self.layers[-1](z)


def soliton(x, t, c=1.0):
    return 0.5 * c / torch.cosh(0.5 * c**0.5 * (x - c * t)) ** 2


def derivative(u, x):
    return grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]


def residual(model, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = model(x, t)
    u_t, u_x = derivative(u, t), derivative(u, x)
    u_xx = derivative(u_x, x)
    u_xxx = derivative(u_xx, x)
    return u_t + 6 * u * u_x + u_xxx


def main():
    torch.manual_seed(0)
    model = MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.995)

    # Points of the initial state, of the two ends, and inside.
    x0 = torch.linspace(-5, 5, 41).unsqueeze(1)
    t0 = torch.zeros_like(x0)
    tb = torch.linspace(0, 1, 11).unsqueeze(1)
    losses = []
    for epoch in range(400):
        optimizer.zero_grad()
        x = 10 * torch.rand(64, 1) - 5
        t = torch.rand(64, 1)
        loss_pde = residual(model, x, t).pow(2).mean()
        loss_initial = (model(x0, t0) - soliton(x0, t0)).pow(2).mean()
        loss_ends = sum(
            (model(torch.full_like(tb, end), tb) - soliton(torch.full_like(tb, end), tb))
            .pow(2)
            .mean()
            for end in (-5.0, 5.0)
        )
        loss = loss_pde + 10 * (loss_initial + loss_ends)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if epoch % 100 == 0:
            print(f"epoch {epoch:4d}  pde {loss_pde.item():.3e}  initial {loss_initial.item():.3e}")

    with torch.no_grad():
        t1 = torch.ones_like(x0)
        error = (model(x0, t1) - soliton(x0, t1)).norm() / soliton(x0, t1).norm()
    print(f"relative error at t = 1: {error:.6f}")
    losses.append(error.item())
    return losses


if __name__ == "__main__":
    main()
