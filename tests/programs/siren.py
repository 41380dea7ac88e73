"""A SIREN is shown only the gradient of a picture, and finds the picture up to a constant."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def get_mgrid(sidelen, dim=2):
    """A flattened grid of coordinates from -1 to 1."""
    tensors = tuple(dim * [torch.linspace(-1, 1, steps=sidelen)])
    return torch.stack(torch.meshgrid(*tensors, indexing="ij"), dim=-1).reshape(-1, dim)


class SineLayer(nn.Module):
    def __init__(self, in_features, out_features, bias=True, is_first=False, omega_0=30):
        super().__init__()
        self.omega_0 = omega_0
        self.is_first = is_first
        self.in_features = in_features
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.init_weights()

    def init_weights(self):
        with torch.no_grad():
            if self.is_first:
                self.linear.weight.uniform_(-1 / self.in_features, 1 / self.in_features)
            else:
                bound = np.sqrt(6 / self.in_features) / self.omega_0
                self.linear.weight.uniform_(-bound, bound)

    def forward(self, input):
        return torch.sin(self.omega_0 * self.linear(input))


class Siren(nn.Module):
    def __init__(self, in_features, hidden_features, hidden_layers, out_features, omega_0=10.0):
        super().__init__()
        net = [SineLayer(in_features, hidden_features, is_first=True, omega_0=omega_0)]
        for _ in range(hidden_layers):
            net.append(SineLayer(hidden_features, hidden_features, omega_0=omega_0))
        final_linear = nn.Linear(hidden_features, out_features)
        with torch.no_grad():
            bound = np.sqrt(6 / hidden_features) / omega_0
            final_linear.weight.uniform_(-bound, bound)
        self.net = nn.Sequential(*net, final_linear)

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)
        return self.net(coords), coords


def gradient(y, x, grad_outputs=None):
    if grad_outputs is None:
        grad_outputs = torch.ones_like(y)
    return torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]


def laplace(y, x):
    grad = gradient(y, x)
    div = 0.0
    for i in range(grad.shape[-1]):
        div += torch.autograd.grad(
            grad[..., i], x, torch.ones_like(grad[..., i]), create_graph=True
        )[0][..., i : i + 1]
    return div


class PoissonEqn(Dataset):
    """The picture sin(3 x) cos(2 y) with its gradient and its Laplacian."""

    def __init__(self, sidelength):
        super().__init__()
        self.coords = get_mgrid(sidelength, 2)
        x, y = self.coords.unbind(-1)
        self.pixels = (torch.sin(3 * x) * torch.cos(2 * y)).unsqueeze(-1)
        grads_x = 3 * torch.cos(3 * x) * torch.cos(2 * y)
        grads_y = -2 * torch.sin(3 * x) * torch.sin(2 * y)
        self.grads = torch.stack((grads_x, grads_y), dim=-1)

    def __len__(self):
        return 1

    def __getitem__(self, idx):
        return self.coords, {"pixels": self.pixels, "grads": self.grads}


def main():
    torch.manual_seed(0)
    dataloader = DataLoader(PoissonEqn(16), batch_size=1, pin_memory=False, num_workers=0)
    siren = Siren(in_features=2, hidden_features=32, hidden_layers=2, out_features=1)
    optim = torch.optim.Adam(lr=1e-3, params=siren.parameters())
    model_input, gt = next(iter(dataloader))
    losses = []
    for step in range(50):
        model_output, coords = siren(model_input)
        loss = ((gradient(model_output, coords) - gt["grads"]) ** 2).sum(-1).mean()
        losses.append(loss.item())
        if not step % 10:
            img_laplacian = laplace(model_output, coords)
            expected = -13 * gt["pixels"]
            error = (img_laplacian - expected).abs().mean().item()
            print(
                "Step %d, gradient loss %0.5f, Laplacian off by %0.4f" % (step, loss.item(), error)
            )
        optim.zero_grad()
        loss.backward()
        optim.step()

    difference = siren(model_input)[0].detach() - gt["pixels"]
    losses.append((difference - difference.mean()).pow(2).mean().item())
    print(f"picture: mean square error {losses[-1]:.6f}")
    return losses


if __name__ == "__main__":
    main()
