"""A small DDPM: noise is added in a hundred steps, and a network learns to take it away."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, in_ch, out_ch, time_dim):
        super().__init__()
        self.time_mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, 2 * out_ch))
        self.conv1 = nn.Conv2d(in_ch, out_ch, 3, padding=1)
        self.conv2 = nn.Conv2d(out_ch, out_ch, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, out_ch), nn.GroupNorm(4, out_ch)
        self.res = nn.Conv2d(in_ch, out_ch, 1) if in_ch != out_ch else nn.Identity()

    def forward(self, x, t):
        scale, shift = self.time_mlp(t)[:, :, None, None].chunk(2, dim=1)
        h = F.silu(self.norm1(self.conv1(x)) * (scale + 1) + shift)
        return F.silu(self.norm2(self.conv2(h))) + self.res(x)


class SimpleUnet(nn.Module):
    def __init__(self, dim=8, time_dim=16):
        super().__init__()
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(time_dim), nn.Linear(time_dim, time_dim), nn.GELU()
        )
        self.down = Block(1, dim, time_dim)
        self.pool = nn.Conv2d(dim, dim, 4, 2, 1)
        self.mid = Block(dim, 2 * dim, time_dim)
        self.up = nn.ConvTranspose2d(2 * dim, dim, 4, 2, 1)
        self.out = Block(2 * dim, dim, time_dim)
        self.final = nn.Conv2d(dim, 1, 1)

    def forward(self, x, timestep):
        t = self.time_mlp(timestep)
        x1 = self.down(x, t)
        x2 = self.up(self.mid(self.pool(x1), t))
        return self.final(self.out(torch.cat((x1, x2), dim=1), t))


class Diffusion:
    def __init__(self, T=100):
        self.T = T
        self.betas = torch.linspace(1e-4, 0.06, T)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, axis=0)
        previous = F.pad(self.alphas_cumprod[:-1], (1, 0), value=1.0)
        self.posterior_variance = self.betas * (1.0 - previous) / (1.0 - self.alphas_cumprod)

    def extract(self, values, t, x_shape):
        out = values.gather(-1, t.cpu())
        return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)

    def q_sample(self, x_0, t, noise):
        a = self.extract(self.alphas_cumprod, t, x_0.shape)
        return a.sqrt() * x_0 + (1 - a).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, shape):
        img = torch.randn(shape, device=device)
        for i in reversed(range(self.T)):
            t = torch.full((shape[0],), i, device=device, dtype=torch.long)
            beta, alpha = (self.extract(v, t, shape) for v in (self.betas, self.alphas))
            left = (1.0 - self.extract(self.alphas_cumprod, t, shape)).sqrt()
            img = torch.rsqrt(alpha) * (img - beta * model(img, t) / left)
            if i > 0:
                img += self.extract(self.posterior_variance, t, shape).sqrt() * torch.randn_like(
                    img
                )
        return img.clamp(-1, 1)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    spots = rng.integers(1, 7, (256, 2))
    data = -torch.ones(256, 1, 8, 8)
    for image, (i, j) in zip(data, spots):
        image[0, i - 1 : i + 2, j - 1 : j + 2] = 1.0
    model, diffusion = SimpleUnet().to(device), Diffusion()
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    losses = []
    for step in range(60):
        x = data[torch.randint(0, len(data), (32,))].to(device)
        t = torch.randint(0, diffusion.T, (32,), device=device).long()
        noise = torch.randn_like(x)
        loss = F.smooth_l1_loss(model(diffusion.q_sample(x, t, noise), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
        losses.append(loss.item())
        if step % 20 == 0:
            print(f"step {step:03d} loss: {loss.item():.5f}")
    samples = diffusion.sample(ema, (2, 1, 8, 8))
    print(f"mean of samples {samples.mean().item():.4f}")
    return losses


if __name__ == "__main__":
    main()
