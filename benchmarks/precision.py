"""What the precision of numbers costs in error and gains in speed.

    python benchmarks/precision.py                  on the CPU: sums, small gradients, training
    python benchmarks/precision.py --device cuda    products, a network of convolutions, training
    python benchmarks/precision.py --write          puts what is printed into docs/precision.md

Errors are relative to float64. It takes about a minute, and prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from pages import write_part

import chainrule
from chainrule import backend, data, nn, optim
from chainrule.amp import GradScaler
from chainrule.nn import functional as F

__all__ = ["lost_gradients", "products", "steps_of_convolutions", "sums", "training"]

PAGE = Path(__file__).parents[1] / "docs" / "precision.md"
UNIT = {np.float16: 2.0**-11, np.float32: 2.0**-24}  # the largest relative error of rounding


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown: the first column is text, the others are numbers."""
    lines = [title, "", f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
    return [*lines, *[f"| {' | '.join(row)} |" for row in rows], ""]


def told(error: float) -> str:
    """An error with two digits."""
    return "0" if error == 0 else f"{error:.1e}" if math.isfinite(error) else "-"


# --- sums -----------------------------------------------------------------------------------------


def one_by_one(x: np.ndarray) -> float:
    """The sum in the order of the numbers, rounded after each."""
    return float(np.add.accumulate(x, dtype=x.dtype)[-1])


def in_pairs(x: np.ndarray) -> float:
    """The sum of sums of halves, rounded after each."""
    with np.errstate(over="ignore"):
        while len(x) > 1:
            odd = x[-1:] if len(x) % 2 else x[:0]
            x = np.concatenate([x[: len(x) - len(odd) : 2] + x[1::2], odd])
    return float(x[0])


def sums(device: str = "cpu", sizes: Sequence[int] = (10**3, 10**4, 10**5, 10**6, 10**7)) -> Any:
    """Relative errors of sums of n numbers between 0 and 1, as of the losses of a batch."""
    rows = []
    for n in sizes:
        numbers = np.random.default_rng(0).random(n)
        for dtype in (np.float32, np.float16):
            x, unit = numbers.astype(dtype), UNIT[dtype]
            exact = math.fsum(x.astype(np.float64))
            ours = chainrule.tensor(x, device=device).mean().double().item() * n
            mean = math.fsum(x.astype(np.float64)) / n
            found = [abs(s - exact) / exact for s in (one_by_one(x), in_pairs(x))]
            bounds = [(n - 1) * unit, math.ceil(math.log2(n)) * unit]
            last = abs(ours / n - mean) / mean
            of = [told(v) for pair in zip(found, bounds, strict=True) for v in pair]
            rows.append([f"{dtype.__name__}, n = {n:,}", *of, told(last)])
    heads = ("sum of", "one by one", "bound n u", "in pairs", "bound log2(n) u", "`Tensor.mean`")
    return table("Relative errors of sums of n numbers between 0 and 1:", heads, rows)


# --- gradients too small for float16 --------------------------------------------------------------


def digits() -> tuple[chainrule.Tensor, chainrule.Tensor]:
    """Pictures of 8 by 8 pixels, from 0 to 1, in an order that is drawn once; and their labels."""
    x, y = data.embedded("digits").tensors()
    order = chainrule.randperm(len(x), generator=chainrule.Generator().manual_seed(0))
    return x[order] / 16, y[order]


def deep() -> nn.Sequential:
    """Six layers of sigmoids, whose first gradients are small."""
    chainrule.manual_seed(0)
    widths = [64, 64, 64, 64, 64, 64]
    layers = [m for n in widths for m in (nn.Linear(n, 64), nn.Sigmoid())]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def lost_gradients(scales: Sequence[int] = (0, 4, 8, 12, 16, 24)) -> list[str]:
    """Which part of the gradients a type of 16 bits makes zero, blurs or cannot hold, and what the
    gradient of the first layer is, computed in it."""
    x, y = digits()
    rows = []
    for name, s in [*[("float16", s) for s in scales], ("bfloat16", 0)]:
        dtype = getattr(chainrule, name)
        net, wide = deep().to(dtype), deep().to(dtype).double()
        F.cross_entropy(wide(x[:64].double()), y[:64]).backward()
        (F.cross_entropy(net(x[:64].to(dtype)), y[:64]).float() * 2.0**s).backward()
        exact = [p.grad.numpy() for p in wide.parameters()]
        size = np.concatenate([np.abs(g[g != 0]) for g in exact]) * 2.0**s
        tiny, normal, top = (2.0**-25, 2.0**-14, 65504.0) if name == "float16" else BFLOAT16
        parts = [size <= tiny, (size > tiny) & (size < normal), size > top]
        first = next(net.parameters()).grad.double().numpy() / 2.0**s
        error = np.linalg.norm(first - exact[0]) / np.linalg.norm(exact[0])
        row = [f"{100 * p.mean():.1f} %" for p in parts]
        rows.append([f"{name}, loss times 2^{s}", *row, told(float(error))])
    heads = ("gradients in", "become 0", "lose digits", "become infinite", "error, first layer")
    return table("Gradients of a network of six layers of sigmoids on digits:", heads, rows)


BFLOAT16 = (2.0**-134, 2.0**-126, 3.3895313892515355e38)


# --- training -------------------------------------------------------------------------------------


class Way(NamedTuple):
    """A choice of precision: a type of parameters, a level of products, an autocast block."""

    name: str
    dtype: Any = chainrule.float32
    level: str = "highest"
    autocast: Any = None
    scaled: bool = False
    loss_scale: float = 1.0


ON_CPU = (
    Way("float64", chainrule.float64),
    Way("float32"),
    Way("bfloat16", chainrule.bfloat16),
    Way("float16", chainrule.float16),
    Way("float16, loss times 2^12", chainrule.float16, loss_scale=2.0**12),
)
ON_DEVICES = (
    Way("float64", chainrule.float64),
    Way("float32, highest"),
    Way("float32, high", level="high"),
    Way("float32, medium", level="medium"),
    Way("autocast, bfloat16", autocast=chainrule.bfloat16),
    Way("autocast, float16, GradScaler", autocast=chainrule.float16, scaled=True),
    Way("bfloat16", chainrule.bfloat16),
    Way("float16, loss times 2^12", chainrule.float16, loss_scale=2.0**12),
)


@contextlib.contextmanager
def levels_of(way: Way) -> Iterator[None]:
    """The levels of products for the time of a measurement."""
    cudnn = chainrule.backends.cudnn
    before = chainrule.get_float32_matmul_precision(), cudnn.allow_tf32
    chainrule.set_float32_matmul_precision(way.level)
    cudnn.allow_tf32 = way.level == "high"
    try:
        yield
    finally:
        chainrule.set_float32_matmul_precision(before[0])
        cudnn.allow_tf32 = before[1]


def step_of(
    loss_of: Callable[..., Any], net: nn.Module, way: Way, device: str, rate: float
) -> Callable[..., Any]:
    """A step of gradient descent with momentum, compiled on a device."""
    rate = rate / way.loss_scale
    optimizer = optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    scaler = GradScaler(device, enabled=way.scaled)

    def step(x: chainrule.Tensor, y: chainrule.Tensor) -> chainrule.Tensor:
        optimizer.zero_grad()
        with autocast_of(way, device):
            loss = loss_of(net(x), y)
        scaler.scale(loss * way.loss_scale).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step if device == "cpu" else chainrule.compile(step)


def autocast_of(way: Way, device: str) -> Any:
    """The block that a way of computing is in."""
    if way.autocast is None:
        return contextlib.nullcontext()
    return chainrule.autocast(device, dtype=way.autocast)


def classifier() -> nn.Sequential:
    """Two hidden layers of tanh."""
    chainrule.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10)
    )


def autoencoder() -> nn.Sequential:
    """Pictures through eight numbers."""
    chainrule.manual_seed(0)
    sizes = (64, 64, 8, 64)
    pairs = [(nn.Linear(m, n), nn.Tanh()) for m, n in itertools.pairwise(sizes)]
    return nn.Sequential(*[m for pair in pairs for m in pair], nn.Linear(64, 64))


class Task(NamedTuple):
    """A network for digits, and how it is trained."""

    title: str
    make: Callable[[], nn.Sequential]
    loss: Callable[[Any, Any], chainrule.Tensor]
    batch: int
    rate: float
    epochs: int


SEEN = 1500  # digits to train with; the others are held out
CLASSES = Task("A network of 64-128-64-10 units", classifier, F.cross_entropy, 50, 0.05, 10)
PIXELS = Task("An autoencoder of 64-64-8-64-64 units", autoencoder, F.mse_loss, 1500, 2.0, 150)


def flat_gradient(task: Task, net: nn.Module, x: Any, y: Any, block: Any) -> np.ndarray:
    """All numbers of the gradient of a loss."""
    with block:
        loss = task.loss(net(x), y)
    loss.backward()
    parts = [p.grad.double().cpu().numpy().ravel() for p in net.parameters()]
    net.zero_grad()
    return np.concatenate(parts)


def gradient_error(task: Task, way: Way, device: str, x: Any, y: Any) -> float:
    """How far a way of computing is from float64, which starts from the same parameters."""
    x, y = x[: task.batch], y[: task.batch]
    net, wide = task.make().to(way.dtype), task.make().to(way.dtype).double()
    exact = flat_gradient(task, wide, x.double(), _to(y, x.double()), contextlib.nullcontext())
    x = x.to(way.dtype).to(device)
    found = flat_gradient(task, net.to(device), x, _to(y, x), autocast_of(way, device))
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _to(y: chainrule.Tensor, x: chainrule.Tensor) -> chainrule.Tensor:
    """What is to come out, beside what goes in; classes stay integers."""
    return y.to(x.dtype).to(x.device) if y.is_floating_point() else y.to(x.device)


def training(device: str, task: Task) -> list[str]:
    """A network in each of the ways."""
    x, classes = digits()
    y = classes if task is CLASSES else x
    rows = []
    for way in ON_CPU if device == "cpu" else ON_DEVICES:
        with levels_of(way):
            error = gradient_error(task, way, device, x, y)
            net = task.make().to(way.dtype).to(device)
            rows.append([way.name, told(error), *trained(task, net, way, device, x, y)])
    heads = ("computed in", "error of the gradient", "loss", "loss held out", "microseconds")
    title = (
        f"{task.title} on {SEEN} digits, {task.epochs} epochs of batches of {task.batch}: the "
        "error of its first gradient, its losses in the end, and the time of a step:"
    )
    return table(title, heads, rows)


def trained(task: Task, net: nn.Module, way: Way, device: str, x: Any, y: Any) -> list[str]:
    """The losses in the end, seen and held out, and the best time of a step."""
    step = step_of(task.loss, net, way, device, task.rate)
    inputs = x[:SEEN].to(way.dtype).to(device)
    labels = _to(y[:SEEN], inputs)
    starts = range(0, SEEN, task.batch)
    pairs = [(inputs[i : i + task.batch], labels[i : i + task.batch]) for i in starts]
    best = math.inf
    for _ in range(task.epochs):
        start = perf_counter()
        for pair in pairs:
            loss = step(*pair)
        loss.item()  # which waits for the device
        best = min(best, (perf_counter() - start) / len(pairs))
    wide, x = net.to("cpu").double(), x.double()
    with chainrule.no_grad():
        losses = [task.loss(wide(x[s]), _to(y[s], x)).item() for s in HALVES]
    return [*[f"{loss:.5f}" for loss in losses], f"{1e6 * best:.0f}"]


HALVES = (slice(0, SEEN), slice(SEEN, None))


# --- on a device ----------------------------------------------------------------------------------


def products(device: str, n: int, times: int = 10) -> list[str]:
    """Products of square matrices: their errors, and how many operations a second they come to."""
    rows = []
    chainrule.manual_seed(0)
    wide = [chainrule.randn(n, n, dtype=chainrule.float64, device=device) for _ in range(2)]
    exact = wide[0] @ wide[1]
    for way in ON_DEVICES[:-1]:
        if way.scaled:
            way = way._replace(name="autocast, float16")
        a, b = (m.to(way.dtype) for m in wide)
        with levels_of(way), autocast_of(way, device):
            out = a @ b
            error = ((out.double() - exact).norm() / exact.norm()).item()
            start = perf_counter()
            for _ in range(times):
                out = a @ b
            out[0, 0].item()
            spent = (perf_counter() - start) / times
        rows.append([way.name, told(error), f"{2 * n**3 / spent / 1e12:.1f}"])
    heads = ("computed in", "error", "TFLOP/s")
    return table(f"Products of matrices of {n} by {n} normal numbers:", heads, rows)


def of_convolutions() -> nn.Sequential:
    """Convolutions for pictures of 32 by 32 pixels, with batch norm."""
    chainrule.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs, stride in ((3, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)]
        layers += [nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


OF_CONVOLUTIONS = ("float32, highest", "float32, high", "autocast, bfloat16", "bfloat16")


def steps_of_convolutions(device: str, batch: int, times: int = 20) -> list[str]:
    """The time of a compiled training step of a network of convolutions."""
    x, y = chainrule.randn(batch, 3, 32, 32), chainrule.randint(0, 10, (batch,))
    rows = []
    for way in (w for w in ON_DEVICES if w.name in OF_CONVOLUTIONS):
        net = of_convolutions().to(way.dtype).to(device)
        a, b = x.to(way.dtype).to(device), y.to(device)
        with levels_of(way):
            step = step_of(F.cross_entropy, net, way, device, 0.01)
            for _ in range(5):
                loss = step(a, b)
            first = loss.item()
            start = perf_counter()
            for _ in range(times):
                loss = step(a, b)
            loss.item()
            spent = (perf_counter() - start) / times
        rows.append([way.name, f"{first:.4f}", f"{1e6 * spent:.0f}"])
    heads = ("computed in", "loss after 5 steps", "microseconds")
    title = f"A compiled step of four convolutions with batch norm on {batch} pictures:"
    return table(title, heads, rows)


def measured(device: str) -> list[str]:
    """All tables for a device."""
    if device == "cpu":
        lines = [*sums(), *lost_gradients(), *training(device, CLASSES), *training(device, PIXELS)]
        return [f"Kernels: {backend.current()}.", "", *lines][:-1]
    large = device != "xla"
    lines = products(device, 8192 if large else 512)
    lines += steps_of_convolutions(device, 256 if large else 4, 20 if large else 2)
    lines += [*sums(device, (10**4, 10**6)), *training(device, CLASSES)]
    return lines[:-1]


def main() -> None:
    """Prints the tables, or writes them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu", help='"cpu", "cuda", "tpu" or "xla"')
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    given = parser.parse_args()
    start = perf_counter()
    lines = measured(given.device)
    print("\n".join(lines))
    print(f"\n{perf_counter() - start:.0f} seconds")
    if given.write:
        write_part(PAGE, f"precision-{given.device}", lines)


if __name__ == "__main__":
    main()
