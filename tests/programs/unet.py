"""A U-Net finds disks in noise: transposed convolutions, skip connections, Dice and entropy."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


torch.set_default_dtype(torch.float64)


class DoubleConv(nn.Module):
    """(convolution => BatchNorm => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels + out_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
            self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes):
        super(UNet, self).__init__()
        self.inc = DoubleConv(n_channels, 6)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(6, 12))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(12, 24))
        self.up1 = Up(24, 12, bilinear=False)
        self.up2 = Up(12, 6, bilinear=True)
        self.outc = nn.Conv2d(6, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def disks(n, size=18):
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:size, :size]
    center, radius = rng.uniform(4, size - 4, (n, 2, 1, 1)), rng.uniform(2, 5, (n, 1, 1))
    masks = (i - center[:, 0]) ** 2 + (j - center[:, 1]) ** 2 < radius**2
    images = masks + rng.normal(0, 0.5, masks.shape)
    return TensorDataset(*(torch.from_numpy(a[:, None]).double() for a in (images, masks)))


def dice_coeff(input, target, epsilon=1e-6):
    inter = 2 * (input * target).sum(dim=(-1, -2))
    sets_sum = input.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


@torch.inference_mode()
def evaluate(net, loader, device):
    net.eval()
    score = 0
    for image, mask in loader:
        pred = (torch.sigmoid(net(image.to(device))) > 0.5).to(mask.dtype)
        score += dice_coeff(pred, mask.to(device))
    net.train()
    return score / max(len(loader), 1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(0)
    train_set, val_set = random_split(disks(80), [64, 16], generator=generator)
    train_loader = DataLoader(train_set, shuffle=True, batch_size=8, drop_last=True)
    val_loader = DataLoader(val_set, shuffle=False, batch_size=8)
    model = UNet(1, 1).to(device=device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, weight_decay=1e-8, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
    criterion = nn.BCEWithLogitsLoss()
    losses = []
    for epoch in range(1, 5):
        model.train()
        for images, masks in train_loader:
            logits = model(images.to(device))
            loss = criterion(logits, masks) + 1 - dice_coeff(torch.sigmoid(logits), masks)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        val_score = evaluate(model, val_loader, device)
        scheduler.step(val_score)
        print(f"epoch {epoch}: validation Dice score {val_score:.4f}")
    losses.append(1 - float(val_score))
    return losses


if __name__ == "__main__":
    main()
