"""A variational autoencoder of small pictures: the evidence bound, samples of the prior."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

BATCH, LATENT, EPOCHS = 32, 4, 4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pictures(n):
    """Blurred spots at random places of an 8x8 picture, in [0, 1]."""
    rng = np.random.default_rng(0)
    centers, widths = rng.uniform(1, 6, (n, 2, 1, 1)), rng.uniform(0.8, 2, (n, 1, 1))
    i, j = np.mgrid[:8, :8]
    squares = (i - centers[:, 0]) ** 2 + (j - centers[:, 1]) ** 2
    return torch.tensor(np.exp(-squares / widths**2), dtype=torch.float32)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, LATENT)
        self.fc22 = nn.Linear(40, LATENT)
        self.fc3 = nn.Linear(LATENT, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    """Reconstruction and KL divergence, summed over all elements and the batch."""
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def main():
    torch.manual_seed(1)
    data = pictures(480)
    train_loader = torch.utils.data.DataLoader(data[:384], batch_size=BATCH, shuffle=True)
    test_loader = torch.utils.data.DataLoader(data[384:], batch_size=BATCH, shuffle=False)
    model = VAE().to(device)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    losses = []

    for epoch in range(1, EPOCHS + 1):
        model.train()
        train_loss = 0
        for batch in train_loader:
            batch = batch.to(device)
            optimizer.zero_grad()
            recon, mu, logvar = model(batch)
            loss = loss_function(recon, batch, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            losses.append(loss.item() / len(batch))
            optimizer.step()
        print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.4f}")

        model.eval()
        test_loss = 0
        with torch.no_grad():
            for batch in test_loader:
                recon, mu, logvar = model(batch)
                test_loss += loss_function(recon, batch, mu, logvar).item()
        print(f"====> Test set loss: {test_loss / len(test_loader.dataset):.4f}")
        losses.append(test_loss / len(test_loader.dataset))

        with torch.no_grad():
            sample = model.decode(torch.randn(16, LATENT).to(device)).cpu().view(16, 1, 8, 8)
        print("brightness of samples: {:.4f} to {:.4f}".format(sample.min(), sample.max()))

    return losses


if __name__ == "__main__":
    main()
