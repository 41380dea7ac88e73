"""A Wasserstein GAN with gradient penalty learns eight spots in the plane."""

import argparse
import math

import torch
import torch.autograd as autograd
import torch.nn as nn

torch.set_default_dtype(torch.float64)

parser = argparse.ArgumentParser()
parser.add_argument("--n_steps", type=int, default=100, help="steps of the generator")
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--latent_dim", type=int, default=4)
parser.add_argument("--n_critic", type=int, default=4, help="steps of the critic for each of those")
parser.add_argument("--lambda_gp", type=float, default=1.0)


class Generator(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent_dim, 32, normalize=False), *block(32, 32), nn.Linear(32, 2)
        )

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(2, 32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 32),
            nn.LeakyReLU(0.2),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.model(x)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.2)
        nn.init.constant_(m.bias.data, 0)


def real_samples(n):
    angle = 2 * math.pi * torch.randint(0, 8, (n,)) / 8
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def compute_gradient_penalty(D, real, fake):
    alpha = torch.rand(real.size(0), 1)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(d_interpolates),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


def main():
    opt = parser.parse_args()
    torch.manual_seed(0)
    generator, discriminator = Generator(opt.latent_dim), Discriminator()
    generator.apply(weights_init)
    discriminator.apply(weights_init)
    optimizer_G = torch.optim.Adam(generator.parameters(), lr=5e-3, betas=(0.5, 0.9))
    optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=5e-3, betas=(0.5, 0.9))
    losses = []

    for step in range(opt.n_steps):
        for _ in range(opt.n_critic):
            optimizer_D.zero_grad()
            real = real_samples(opt.batch_size)
            fake = generator(torch.randn(opt.batch_size, opt.latent_dim)).detach()
            penalty = compute_gradient_penalty(discriminator, real.data, fake.data)
            d_loss = -torch.mean(discriminator(real)) + torch.mean(discriminator(fake))
            (d_loss + opt.lambda_gp * penalty).backward()
            optimizer_D.step()

        optimizer_G.zero_grad()
        g_loss = -torch.mean(discriminator(generator(torch.randn(opt.batch_size, opt.latent_dim))))
        g_loss.backward()
        optimizer_G.step()
        losses += [d_loss.item(), g_loss.item(), penalty.item()]
        if step % 25 == 0:
            print("[Step %d] [D loss: %f] [G loss: %f]" % (step, d_loss.item(), g_loss.item()))

    generator.eval()
    with torch.no_grad():
        radius = generator(torch.randn(500, opt.latent_dim)).norm(dim=1)
    print(f"radius {radius.mean().item():.5f} +- {radius.std().item():.5f}")
    losses.append((radius.mean().item() - 1) ** 2)
    return losses


if __name__ == "__main__":
    main()
