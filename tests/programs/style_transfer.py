"""Style transfer: an image is optimized until its features match a content and a style.

The features are those of fixed random convolutions, whose Gram matrices say enough of a texture.
"""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.set_default_dtype(torch.float64)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def get_style_model_and_losses(cnn, style_img, content_img):
    normalization = Normalization(
        torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    )
    content_losses, style_losses = [], []
    model = nn.Sequential(normalization)
    i = 0
    for layer in copy.deepcopy(cnn).children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = "conv_{}".format(i)
        elif isinstance(layer, nn.ReLU):
            name = "relu_{}".format(i)
            layer = nn.ReLU(inplace=False)
        else:
            name = "pool_{}".format(i)
        model.add_module(name, layer)
        if name == "conv_2":
            content_losses.append(ContentLoss(model(content_img)))
            model.add_module("content_loss_{}".format(i), content_losses[-1])
        if isinstance(layer, nn.Conv2d):
            style_losses.append(StyleLoss(model(style_img)))
            model.add_module("style_loss_{}".format(i), style_losses[-1])
    print(model)
    return model, style_losses, content_losses


def main(num_steps=20, style_weight=1000, content_weight=1):
    torch.manual_seed(0)
    i, j = torch.meshgrid(torch.linspace(0, 1, 20), torch.linspace(0, 1, 20), indexing="ij")
    content_img = torch.stack([i, j, (i - 0.5) ** 2 + (j - 0.5) ** 2]).unsqueeze(0).to(device)
    style_img = torch.stack([torch.sin(25 * (i + j)), torch.cos(25 * i), torch.sin(25 * j)])
    style_img = (0.5 + 0.5 * style_img).unsqueeze(0).to(device)
    cnn = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(8, 12, 3, padding=1),
    ).eval()

    model, style_losses, content_losses = get_style_model_and_losses(cnn, style_img, content_img)
    input_img = content_img.clone().requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.LBFGS([input_img], lr=0.1)
    run, losses = [0], []
    while run[0] <= num_steps:

        def closure():
            with torch.no_grad():
                input_img.clamp_(0, 1)
            optimizer.zero_grad()
            model(input_img)
            style_score = style_weight * sum(sl.loss for sl in style_losses)
            content_score = content_weight * sum(cl.loss for cl in content_losses)
            loss = style_score + content_score
            loss.backward()
            run[0] += 1
            losses.append(loss.item())
            if run[0] % 10 == 0:
                print(f"run {run}: style {style_score.item():4f} content {content_score.item():4f}")
            return loss

        optimizer.step(closure)

    with torch.no_grad():
        input_img.clamp_(0, 1)
    return losses


if __name__ == "__main__":
    main()
