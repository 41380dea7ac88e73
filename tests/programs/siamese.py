"""A siamese network with the contrastive loss, in the style of older programs."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.autograd import Variable
from torch.utils.data import DataLoader, Dataset


class Config:
    train_batch_size = 32
    train_number_epochs = 6
    classes = 5
    side = 10


class SiameseNetworkDataset(Dataset):
    """Pairs of noisy pictures, half of them of the same person."""

    def __init__(self, pairs):
        rng = np.random.RandomState(0)
        faces = rng.rand(Config.classes, 1, Config.side, Config.side)
        self.images = [
            (f + 0.2 * rng.randn(*f.shape), c) for c, f in enumerate(faces) for _ in range(8)
        ]
        self.pairs = pairs

    def __getitem__(self, index):
        img0_tuple = random.choice(self.images)
        should_get_same_class = random.randint(0, 1)
        while True:
            img1_tuple = random.choice(self.images)
            if (img0_tuple[1] == img1_tuple[1]) == bool(should_get_same_class):
                break
        different = torch.from_numpy(np.array([int(img1_tuple[1] != img0_tuple[1])], np.float32))
        return torch.Tensor(img0_tuple[0]), torch.Tensor(img1_tuple[0]), different

    def __len__(self):
        return self.pairs


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.cnn1 = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(4),
            nn.ReflectionPad2d(1),
            nn.Conv2d(4, 8, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(8),
        )
        self.fc1 = nn.Sequential(
            nn.Linear(8 * Config.side * Config.side, 32),
            nn.ReLU(inplace=True),
            nn.Linear(32, 5),
        )

    def forward_once(self, x):
        output = self.cnn1(x)
        output = output.view(output.size()[0], -1)
        return self.fc1(output)

    def forward(self, input1, input2):
        return self.forward_once(input1), self.forward_once(input2)


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        distance = F.pairwise_distance(output1, output2, keepdim=True)
        return torch.mean(
            (1 - label) * torch.pow(distance, 2)
            + label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        )


def main():
    torch.manual_seed(0)
    random.seed(0)
    loader = DataLoader(SiameseNetworkDataset(128), batch_size=Config.train_batch_size)
    net = SiameseNetwork()
    if torch.cuda.is_available():
        net = net.cuda()
    criterion = ContrastiveLoss()
    optimizer = optim.Adam(net.parameters(), lr=0.0005)
    loss_history = []
    for epoch in range(Config.train_number_epochs):
        for img0, img1, label in loader:
            img0, img1, label = Variable(img0), Variable(img1), Variable(label)
            output1, output2 = net(img0, img1)
            optimizer.zero_grad()
            loss_contrastive = criterion(output1, output2, label)
            loss_contrastive.backward()
            optimizer.step()
            loss_history.append(loss_contrastive.data.item())
        print("Epoch number {}\n Current loss {:.5f}\n".format(epoch, loss_history[-1]))

    net.eval()
    img0, img1, label = next(iter(DataLoader(SiameseNetworkDataset(40), batch_size=40)))
    output1, output2 = net(Variable(img0), Variable(img1))
    distance = F.pairwise_distance(output1, output2).data.numpy()
    wrong = ((distance > 1.0) != label.numpy().ravel().astype(bool)).mean()
    print("wrong pairs: {:.3f}".format(wrong))
    return loss_history


if __name__ == "__main__":
    main()
