"""Networks whose output is an image, and convolutions over volumes."""

from __future__ import annotations

from typing import Any

from architectures.task import Task, classifying, normal, same_weights

__all__ = ["autoencoder", "conv3d", "dcgan", "unet", "vae"]


def unet(lib: Any, batch: int, size: int, width: int = 32, depth: int = 4) -> Task:
    """U-Net of Ronneberger et al., 2015, with batch normalization: a mask of each image."""
    nn = lib.nn

    def double(into: int, out: int) -> Any:
        layers: list[Any] = []
        for i in (into, out):
            layers += [nn.Conv2d(i, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        return nn.Sequential(*layers)

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        """Down, and up again beside what was seen on the way down."""

        def __init__(self) -> None:
            super().__init__()
            widths = [width << i for i in range(depth)]
            self.down = nn.ModuleList(map(double, [3, *widths[:-1]], widths))
            self.pool, self.bottom = nn.MaxPool2d(2), double(widths[-1], 2 * widths[-1])
            self.up = nn.ModuleList(
                nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths)
            )
            self.join = nn.ModuleList(double(2 * w, w) for w in reversed(widths))
            self.head = nn.Conv2d(width, 1, 1)

        def forward(self, x: Any) -> Any:
            seen = []
            for down in self.down:
                seen.append(down(x))
                x = self.pool(seen[-1])
            x = self.bottom(x)
            for up, join in zip(self.up, self.join, strict=True):
                x = join(lib.cat([seen.pop(), up(x)], 1))
            return self.head(x)

    model = same_weights(lib, UNet())
    x = normal(lib, batch, 3, size, size)
    mask = (normal(lib, batch, 1, size, size, seed=1) > 0).to(x.dtype)
    criterion = nn.BCEWithLogitsLoss()
    options: dict[str, Any] = {"optimizer": "Adam", "options": {}}
    return Task(lib, model, lambda: criterion(model(x), mask), lambda: model(x), **options)


def vae(lib: Any, batch: int, width: int = 400, code: int = 20, fixed: bool = False) -> Task:
    """The variational autoencoder of Kingma and Welling, 2014: 784-400-20-400-784.

    Args:
        fixed: the same noise in every step, for a comparison of libraries.
    """
    nn = lib.nn
    noise = normal(lib, batch, code, seed=1)

    class VAE(nn.Module):  # type: ignore[misc, name-defined]
        """Encoder, a draw, decoder."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(784, width)
            self.mean, self.log_variance = nn.Linear(width, code), nn.Linear(width, code)
            self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 784))

        def forward(self, x: Any) -> Any:
            h = self.hidden(x).relu()
            mean, log_variance = self.mean(h), self.log_variance(h)
            std = (0.5 * log_variance).exp()
            drawn = mean + std * (noise if fixed else lib.randn_like(std))
            return self.decoder(drawn), mean, log_variance

    model = same_weights(lib, VAE())
    x = normal(lib, batch, 784).sigmoid()

    def loss() -> Any:
        logits, mean, log_variance = model(x)
        rebuilt = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
        return (rebuilt + divergence) / batch

    return Task(lib, model, loss, lambda: model(x), "Adam", {})


def dcgan(lib: Any, batch: int, width: int = 64) -> Task:
    """DCGAN of Radford et al., 2016, on 3x32x32: a step of both networks."""
    nn = lib.nn

    def up(into: int, out: int, stride: int, padding: int) -> list[Any]:
        conv = nn.ConvTranspose2d(into, out, 4, stride, padding, bias=False)
        return [conv, nn.BatchNorm2d(out), nn.ReLU(inplace=True)]

    def down(into: int, out: int) -> list[Any]:
        conv = nn.Conv2d(into, out, 4, 2, 1, bias=False)
        return [conv, nn.BatchNorm2d(out), nn.LeakyReLU(0.2, inplace=True)]

    generator = nn.Sequential(
        *up(100, 4 * width, 1, 0),
        *up(4 * width, 2 * width, 2, 1),
        *up(2 * width, width, 2, 1),
        nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        *down(width, 2 * width),
        *down(2 * width, 4 * width),
        nn.Conv2d(4 * width, 1, 4, bias=False),
        nn.Flatten(0),
    )
    both = same_weights(lib, nn.ModuleList([generator, judge]))
    real, noise = normal(lib, batch, 3, 32, 32), normal(lib, batch, 100, 1, 1, seed=1)
    true, false = lib.ones(batch), lib.zeros(batch)
    criterion = nn.BCEWithLogitsLoss()

    def judged() -> Any:
        fake = generator(noise).detach()
        return criterion(judge(real), true) + criterion(judge(fake), false)

    def generated() -> Any:
        return criterion(judge(generator(noise)), true)

    options = {"betas": (0.5, 0.999), "lr": 2e-4}
    return Task(
        lib,
        both,
        judged,
        lambda: generator(noise),
        "Adam",
        options,
        then=[(generated, generator)],
        part=judge,
    )


def autoencoder(lib: Any, batch: int, width: int = 16) -> Task:
    """An autoencoder of 1x28x28: strided convolutions, and transposed ones back."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, width, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 7),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * width, 2 * width, 7),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 3, 2, 1, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 3, 2, 1, 1),
        nn.Sigmoid(),
    )
    model = same_weights(lib, model)
    x = normal(lib, batch, 1, 28, 28).sigmoid()
    criterion = nn.MSELoss()
    return Task(lib, model, lambda: criterion(model(x), x), lambda: model(x), "Adam", {})


def conv3d(lib: Any, batch: int, size: int = 16, width: int = 16) -> Task:
    """Classes of volumes: three 3x3x3 convolutions with batch normalization and pooling."""
    nn = lib.nn
    layers: list[Any] = []
    into = 1
    for factor in (1, 2, 4):
        layers += [nn.Conv3d(into, factor * width, 3, padding=1), nn.BatchNorm3d(factor * width)]
        layers += [nn.ReLU(), nn.MaxPool3d(2)]
        into = factor * width
    head = [nn.Flatten(), nn.Linear(into * (size // 8) ** 3, 10)]
    return classifying(lib, nn.Sequential(*layers, *head), (1, size, size, size), batch)
