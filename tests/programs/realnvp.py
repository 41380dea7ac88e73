"""A normalizing flow of masked affine couplings learns the density of two moons."""

import numpy as np
import torch
from torch import distributions, nn
from torch.nn.parameter import Parameter


torch.set_default_dtype(torch.float64)


class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask, prior):
        super(RealNVP, self).__init__()
        self.prior = prior
        self.mask = Parameter(mask, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(mask))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s = self.s[i](x_) * (1 - self.mask[i])
            t = self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp

    def sample(self, batchSize):
        z = self.prior.sample((batchSize, 1))
        return self.g(z.squeeze(1))


def moons(n, noise=0.05):
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, n)
    upper = rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + noise * rng.normal(size=(n, 2))


def main():
    torch.manual_seed(0)

    def nets():
        return nn.Sequential(
            nn.Linear(2, 32),
            nn.LeakyReLU(),
            nn.Linear(32, 32),
            nn.LeakyReLU(),
            nn.Linear(32, 2),
            nn.Tanh(),
        )

    def nett():
        return nn.Sequential(
            nn.Linear(2, 32), nn.LeakyReLU(), nn.Linear(32, 32), nn.LeakyReLU(), nn.Linear(32, 2)
        )

    masks = torch.from_numpy(np.array([[0.0, 1.0], [1.0, 0.0]] * 2))
    prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    flow = RealNVP(nets, nett, masks, prior)
    trainable = [p for p in flow.parameters() if p.requires_grad is True]
    optimizer = torch.optim.Adam(trainable, lr=5e-3)
    data = moons(512)
    losses = []
    for t in range(81):
        x = torch.from_numpy(data[(64 * t) % 512 : (64 * t) % 512 + 64])
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss.item())
        if t % 20 == 0:
            print("iter %s:" % t, "loss = %.3f" % loss.item())

    with torch.no_grad():
        x = flow.sample(200)
        z, _ = flow.f(x)
        print("inverse off by less than 0.001:", bool((flow.g(z) - x).abs().max() < 1e-3))
        print("mean of samples: %.3f %.3f" % tuple(x.mean(dim=0)))
    return losses


if __name__ == "__main__":
    main()
