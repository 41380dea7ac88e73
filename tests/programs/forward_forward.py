"""The forward-forward algorithm: each layer learns alone to tell right labels from wrong ones."""

import numpy as np
import torch
import torch.nn as nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

N_CLASSES = 4


def overlay_y_on_x(x, y):
    """Replaces the first pixels of the data by a one-hot label."""
    x_ = x.clone()
    x_[:, :N_CLASSES] *= 0.0
    x_[range(x.shape[0]), y] = x.max()
    return x_


class Net(torch.nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = []
        for d in range(len(dims) - 1):
            self.layers += [Layer(dims[d], dims[d + 1])]

    def predict(self, x):
        goodness_per_label = []
        for label in range(N_CLASSES):
            h = overlay_y_on_x(x, label)
            goodness = []
            for layer in self.layers:
                h = layer(h)
                goodness += [h.pow(2).mean(1)]
            goodness_per_label += [sum(goodness).unsqueeze(1)]
        goodness_per_label = torch.cat(goodness_per_label, 1)
        return goodness_per_label.argmax(1)

    def train_layers(self, x_pos, x_neg):
        h_pos, h_neg = x_pos, x_neg
        losses = []
        for i, layer in enumerate(self.layers):
            h_pos, h_neg, history = layer.train_alone(h_pos, h_neg)
            print("layer", i, "loss %.5f -> %.5f" % (history[0], history[-1]))
            losses += history
        return losses


class Layer(nn.Linear):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self.relu = torch.nn.ReLU()
        self.opt = Adam(self.parameters(), lr=0.03)
        self.threshold = 2.0
        self.num_epochs = 40

    def forward(self, x):
        x_direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return self.relu(torch.mm(x_direction, self.weight.T) + self.bias.unsqueeze(0))

    def train_alone(self, x_pos, x_neg):
        history = []
        for _ in range(self.num_epochs):
            g_pos = self.forward(x_pos).pow(2).mean(1)
            g_neg = self.forward(x_neg).pow(2).mean(1)
            # Pushes positive samples above the threshold, and negative ones below it.
            loss = torch.log(
                1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))
            ).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            history.append(loss.item())
        return self.forward(x_pos).detach(), self.forward(x_neg).detach(), history


def main():
    torch.manual_seed(1234)
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(N_CLASSES, 20))
    labels = rng.integers(0, N_CLASSES, 300)
    points = np.concatenate([np.zeros((300, N_CLASSES)), prototypes[labels]], axis=1)
    points[:, N_CLASSES:] += 0.7 * rng.normal(size=(300, 20))
    data = TensorDataset(torch.from_numpy(points).float(), torch.from_numpy(labels))
    x, y = next(iter(DataLoader(data, batch_size=300, shuffle=True)))

    net = Net([20 + N_CLASSES, 40, 40])
    x_pos = overlay_y_on_x(x, y)
    rnd = (y + torch.randint(1, N_CLASSES, y.shape)) % N_CLASSES
    x_neg = overlay_y_on_x(x, rnd)
    losses = net.train_layers(x_pos, x_neg)
    error = 1.0 - net.predict(x).eq(y).float().mean().item()
    print(f"train error: {error:.4f}")
    return [*losses, error]


if __name__ == "__main__":
    main()
