"""Example 6: a deep convolutional classifier for 32x32 colour images.

The pictures are painted here: stripes that differ in direction and colour by class. Mended: the
state that is saved is that of the network that was trained.
"""

from __future__ import annotations

import copy

import chainrule
from chainrule import Tensor, nn
from chainrule.models import CifarNet

CLASSES = ("horizontal", "vertical", "rising", "falling")


def pictures(count: int) -> tuple[Tensor, Tensor]:
    """Noisy stripes, and which way they run."""
    labels = chainrule.randint(0, len(CLASSES), (count,))
    y = chainrule.arange(32).reshape(-1, 1) / 32.0
    x = chainrule.arange(32) / 32.0
    waves = chainrule.stack([(20 * t).sin() for t in (y + 0 * x, x + 0 * y, x - y, x + y)])
    images = waves[labels].unsqueeze(1).expand(-1, 3, -1, -1)
    return images + 0.3 * chainrule.randn(count, 3, 32, 32), labels


def main(epochs: int = 6, batch: int = 16, rate: float = 0.01, momentum: float = 0.9) -> float:
    """The accuracy on new pictures."""
    chainrule.manual_seed(0)
    h_theta = CifarNet(num_classes=len(CLASSES))
    criterion = nn.CrossEntropyLoss()
    images, labels = pictures(160)
    velocity = [chainrule.zeros_like(p) for p in h_theta.parameters()]
    for epoch in range(epochs):
        total = 0.0
        for i in range(0, len(labels), batch):
            loss = criterion(h_theta(images[i : i + batch]), labels[i : i + batch])
            h_theta.zero_grad()
            loss.backward()
            with chainrule.no_grad():
                for p, v in zip(h_theta.parameters(), velocity, strict=True):
                    v.mul_(momentum).add_(p.grad)
                    p -= rate * v
            total += loss.item() * batch
        print(f"epoch {epoch + 1}: loss {total / len(labels):.3f}")
    best = copy.deepcopy(h_theta.state_dict())
    again = CifarNet(num_classes=len(CLASSES))
    again.load_state_dict(best)
    images, labels = pictures(80)
    with chainrule.no_grad():
        accuracy = (again(images).argmax(1) == labels).float().mean().item()
    print(f"accuracy on 80 new pictures: {accuracy:.2f}")
    return accuracy


if __name__ == "__main__":
    main()
