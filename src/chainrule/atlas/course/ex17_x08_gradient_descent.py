"""Example 17 of document 000 (X08): gradient descent on a line, written with autodiff alone.

1000 epochs over all 160 points of y = 14.735 + 10.184 e^x + 0.1 N(0, 1) at rate 0.1. Mended
(erratum 52): no undefined device, and the data's offset and the parameter b have their own names.
"""

from __future__ import annotations

import chainrule
from chainrule import optim
from chainrule.atlas.course.course_table import show
from chainrule.atlas.course.ex09_x07_exponential import points

RATE = 0.1


def main(epochs: int = 1000, seed: int = 0) -> dict[str, tuple[float, float]]:
    """(w, b) by descent, and by least squares."""
    x, y = points(10.1842550, 1.0, 0.1)
    chainrule.manual_seed(seed)
    w = chainrule.randn(1, requires_grad=True)
    b = chainrule.randn(1, requires_grad=True)
    for _ in range(epochs):
        loss = ((y - (b + w * x)) ** 2).mean()
        loss.backward()
        with chainrule.no_grad():
            w -= RATE * w.grad
            b -= RATE * b.grad
        w.grad.zero_()
        b.grad.zero_()
    loss = ((y - (b + w * x)) ** 2).mean()
    weight, bias, _ = optim.least_squares(x.double(), y.double())
    found, best = (w.item(), b.item()), (weight.item(), bias.item())
    rows = [
        (name, printed, f"{f:.4f}", f"{o:.4f}", "yes" if abs(f - o) < 1e-3 else "no")
        for name, printed, f, o in zip("wb", ("17.1042", "23.7503"), found, best, strict=True)
    ]
    show(
        f"Example 17: gradient descent, {epochs} epochs, loss {loss.item():.4f}",
        ("parameter", "PyTorch", "obtained", "least squares", "within 0.001"),
        rows,
    )
    return {"found": found, "least squares": best}


if __name__ == "__main__":
    main()
