"""Steps as they are, compiled, and in compiled epochs, beside ``jax.jit`` and ``jax.lax.scan``.

    python benchmarks/compiled.py [part of a row's name]

Microseconds a step, the best of interleaved turns. Without JAX its columns are empty.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _timing import best_of
from compiled_jax import jax_functions, jax_training

import chainrule
from chainrule import func, nn, optim

COLUMNS = ("as it is", "compiled", "epoch", "jax.jit", "scan")
F = nn.functional


@dataclass
class Training:
    """A training step, and the samples of an epoch of so many steps."""

    step: Callable[..., Any]
    data: tuple[Any, ...] = ()
    batch: int = 0
    steps: int = 100


def _trained(net: nn.Module, optimizer: Any, loss: Any) -> Callable[..., Any]:
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        return value

    return step


def _mlp(widths: list[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n, m in itertools.pairwise(widths):
        layers += [nn.Linear(n, m), activation()]
    return nn.Sequential(*layers[:-1])


def classes(widths: list[int], activation: type[nn.Module], batch: int, steps: int) -> Training:
    """A classifier with Adam."""
    net = _mlp(widths, activation)
    x = chainrule.randn(batch * steps, widths[0])
    y = chainrule.arange(batch * steps) % widths[-1]
    step = _trained(net, optim.Adam(net.parameters()), F.cross_entropy)
    return Training(step, (x, y), batch, steps)


def regression(steps: int = 100) -> Training:
    """2-100-100-1 with AdamW, batch 100."""
    net = _mlp([2, 100, 100, 1], nn.Tanh)
    x = chainrule.randn(100 * steps, 2)
    step = _trained(net, optim.AdamW(net.parameters()), F.mse_loss)
    return Training(step, (x, x[:, :1] * x[:, 1:]), 100, steps)


def pictures(net: nn.Module, size: tuple[int, ...], batch: int, steps: int) -> Training:
    """A classifier of pictures or sequences with Adam."""
    x, y = chainrule.randn(batch * steps, *size), chainrule.arange(batch * steps) % 10
    return Training(
        _trained(net, optim.Adam(net.parameters()), F.cross_entropy), (x, y), batch, steps
    )


class Last(nn.Module):
    """A recurrent layer and a linear one on its last output."""

    def __init__(self, kind: type[nn.Module]):
        super().__init__()
        self.layer, self.head = kind(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.layer(x)[0][:, -1])


def lenet() -> nn.Sequential:
    """LeNet with ReLU, on 28x28."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


def normalized_convnet() -> nn.Sequential:
    """Two convolutions with batch normalization and dropout."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.2), nn.Linear(784, 10)),
    )


def xor() -> Training:
    """2-4-1 of raw tensors with sigmoid and binary cross-entropy, all four corners."""
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]])
    w1, b1 = chainrule.randn(2, 4).requires_grad_(), chainrule.zeros(4, requires_grad=True)
    w2, b2 = chainrule.randn(4, 1).requires_grad_(), chainrule.zeros(1, requires_grad=True)
    optimizer = optim.SGD([w1, b1, w2, b2], lr=0.5)

    def step() -> Any:
        optimizer.zero_grad()
        h = chainrule.sigmoid(x @ w1 + b1)
        p = chainrule.sigmoid(h @ w2 + b2)
        loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, steps=400)


def surface(name: str) -> Training:
    """Rosenbrock's valley by two raw numbers."""
    x, y = [chainrule.tensor(v, requires_grad=True) for v in (-1.0, 1.5)]
    optimizer = getattr(optim, name)([x, y], lr=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, steps=1000)


def chain() -> Training:
    """Some 15 elementwise operations on 256x1024, with their gradients."""
    w = chainrule.randn(256, 1024).requires_grad_()
    optimizer = optim.SGD([w], lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        a = chainrule.tanh(w * 2 + 1)
        b = chainrule.sigmoid(a * w - 0.5)
        loss = ((a * b + w.exp() * 0.01 - b / (1 + a * a)) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Training(step, steps=20)


TRAININGS: dict[str, Callable[[], Training]] = {
    "4-8-3, batch 5, Adam": lambda: classes([4, 8, 3], nn.ReLU, 5, 400),
    "ten layers of 5, batch 5, Adam": lambda: classes([4, *[5] * 10, 3], nn.ReLU, 5, 400),
    "XOR of raw tensors, SGD": xor,
    "surface of raw numbers, SGD": lambda: surface("SGD"),
    "surface of raw numbers, Adam": lambda: surface("Adam"),
    "surface of raw numbers, RMSprop": lambda: surface("RMSprop"),
    "surface of raw numbers, Adadelta": lambda: surface("Adadelta"),
    "64-32-10, batch 32, Adam": lambda: classes([64, 32, 10], nn.Tanh, 32, 200),
    "2-100-100-1, batch 100, AdamW": regression,
    "784-512x3-10, batch 128, Adam": lambda: classes([784, 512, 512, 512, 10], nn.ReLU, 128, 8),
    "elementwise chain, 256x1024": chain,
    "LeNet, batch 32": lambda: pictures(lenet(), (1, 28, 28), 32, 10),
    "conv-norm net, batch 32": lambda: pictures(normalized_convnet(), (1, 28, 28), 32, 10),
    "RNN 12 steps of 32, batch 16": lambda: pictures(Last(nn.RNN), (12, 8), 16, 40),
    "LSTM 12 steps of 32, batch 16": lambda: pictures(Last(nn.LSTM), (12, 8), 16, 40),
    "GRU 12 steps of 32, batch 16": lambda: pictures(Last(nn.GRU), (12, 8), 16, 40),
}


def of_training(label: str) -> dict[str, float]:
    """Seconds of a step, each way."""
    plain, repeated = TRAININGS[label](), TRAININGS[label]()
    compiled = chainrule.compile(repeated.step, fullgraph=True)

    def epoch() -> Any:
        if not repeated.data:
            return compiled.repeat(repeated.steps)
        return compiled.epoch(*repeated.data, batch_size=repeated.batch)

    def single(t: Training, step: Callable[..., Any]) -> Callable[[], Any]:
        some = [part[: t.batch] for part in t.data]
        return lambda: step(*some)

    epoch()
    candidates = {
        "as it is": single(plain, plain.step),
        "compiled": single(repeated, compiled),
        "epoch": epoch,
        **jax_training(label, repeated.steps),
    }
    best = best_of(candidates, repeats=11)
    for name in ("epoch", "scan"):
        if name in best:
            best[name] /= repeated.steps
    return best


def _small_loss() -> tuple[Callable[[Any], Any], Any]:
    """The loss of 4-16-3 as a function of its 131 numbers."""
    x, y = chainrule.randn(30, 4), chainrule.arange(30) % 3

    def loss(w: Any) -> Any:
        h = chainrule.tanh(x @ w[:64].reshape(4, 16) + w[64:80])
        return F.cross_entropy(h @ w[80:128].reshape(16, 3) + w[128:131], y)

    return loss, chainrule.randn(131) * 0.3


def _function(label: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    loss, w = _small_loss()
    if label.startswith("Hessian-vector"):
        return lambda w, v: func.jvp(func.grad(loss), (w,), (v,))[1], (w, chainrule.ones(131))
    if label.startswith("Hessian"):
        return func.hessian(loss), (w,)
    if label.startswith("gradient"):
        return func.grad(loss), (w,)
    net = {"4-8-3": _mlp([4, 8, 3], nn.ReLU), "ten layers": _mlp([4, *[5] * 10, 3], nn.ReLU)}.get(
        label.split(",")[0], lenet()
    )
    net.eval()
    size = (1, 1, 28, 28) if label.startswith("LeNet") else (1, 4)
    return net, (chainrule.randn(*size),)


FUNCTIONS = (
    "Hessian of 131 numbers",
    "Hessian-vector product, 131",
    "gradient, 131 numbers",
    "4-8-3, one sample, no gradient",
    "ten layers, one sample, no gradient",
    "LeNet, one sample, no gradient",
)


def of_function(label: str) -> dict[str, float]:
    """Seconds of a call, each way."""
    function, arguments = _function(label)
    compiled = chainrule.compile(function)
    with chainrule.set_grad_enabled(not isinstance(function, nn.Module)):
        for _ in range(4):
            compiled(*arguments)
        candidates = {
            "as it is": lambda: function(*arguments),
            "compiled": lambda: compiled(*arguments),
            **jax_functions(label),
        }
        return best_of(candidates, repeats=11)


def line(label: str, best: dict[str, float]) -> str:
    """Times, and how often the better of ours goes into the better of JAX's and into eager's."""
    cells = [f"{best[c] * 1e6:>11.2f}" if c in best else f"{'':>11}" for c in COLUMNS]
    ours = min(best[c] for c in ("compiled", "epoch") if c in best)
    theirs = [best[c] for c in ("jax.jit", "scan") if c in best]
    against = f"{min(theirs) / ours:>9.2f}" if theirs else " " * 9
    return f"{label:<38}{''.join(cells)}{best['as it is'] / ours:>9.1f}{against}"


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chainrule.manual_seed(0)
    print(f"{'':<38}{''.join([f'{c:>11}' for c in COLUMNS])}{'x eager':>9}{'x jax':>9}")
    for labels, of in ((TRAININGS, of_training), (FUNCTIONS, of_function)):
        for label in labels:
            if wanted in label:
                print(line(label, of(label)), flush=True)


if __name__ == "__main__":
    main()
