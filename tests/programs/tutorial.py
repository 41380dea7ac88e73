"""The loop of the tutorials: a dataset, a loader, a small CNN, an accuracy, a checkpoint."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noisy 12x12 pictures of a horizontal bar, a vertical bar, a cross and a square."""

    def __init__(self, n, seed, transform=None):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, n)
        self.images = 0.3 * rng.standard_normal((n, 1, 12, 12)).astype(np.float32)
        self.transform = transform
        for image, label in zip(self.images, self.labels):
            i, j = rng.integers(2, 10, 2)
            if label in (0, 2):
                image[0, i, max(0, j - 4) : j + 4] += 1
            if label in (1, 2):
                image[0, max(0, i - 4) : i + 4, j] += 1
            if label == 3:
                image[0, i - 2 : i + 2, j - 2 : j + 2] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        image = torch.from_numpy(self.images[idx])
        if self.transform:
            image = self.transform(image)
        return image, int(self.labels[idx])


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(256, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, device, loader, optimizer, epoch):
    model.train()
    losses = []
    for batch_idx, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if batch_idx % 6 == 0:
            done, total = batch_idx * len(data), len(loader.dataset)
            print(f"Train Epoch: {epoch} [{done}/{total}]\tLoss: {loss.item():.5f}")
    return losses


def test(model, device, loader):
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    test_loss /= len(loader.dataset)
    print(f"Test set: average loss {test_loss:.4f}, accuracy {correct}/{len(loader.dataset)}")
    return test_loss


def main():
    parser = argparse.ArgumentParser(description="pictures of four kinds")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N")
    parser.add_argument("--epochs", type=int, default=10, metavar="N")
    parser.add_argument("--lr", type=float, default=0.01, metavar="LR")
    parser.add_argument("--gamma", type=float, default=0.9, metavar="M")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(Shapes(384, 0), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(Shapes(128, 1, transform=lambda x: x.clone()), batch_size=64)

    model = Net().to(device)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses = []
    for epoch in range(1, args.epochs + 1):
        losses += train(model, device, train_loader, optimizer, epoch)
        losses.append(test(model, device, test_loader))
        scheduler.step()

    torch.save(model.state_dict(), "shapes_cnn.pt")
    restored = Net()
    restored.load_state_dict(torch.load("shapes_cnn.pt", map_location=device))
    losses.append(test(restored, device, test_loader))
    return losses


if __name__ == "__main__":
    main()
