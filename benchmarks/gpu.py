"""Training on a device beside hand-written JAX and PyTorch, in one run: ``make gpu-bench``.

    python benchmarks/gpu.py                     all rows, and benchmarks/gpu.md
    python benchmarks/gpu.py --rows mlp128 gpt   some of them, printed
    python benchmarks/gpu.py --device xla --small    tiny sizes on JAX's CPU: does everything run?

Products of float32 are computed in TF32 in all libraries, as the header says. Each candidate runs a
number of steps without waiting, then waits for the last loss; candidates take turns. The best mode
of PyTorch is the better one of eager (fused optimizer, channels last for images) and compiled
(``torch.compile``, the better one of two modes where the steps are short).
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np

import chainrule
from _timing import Times, take_turns
from architectures import residual, sequences
from architectures.task import integers, normal, same_weights
from chainrule import func

__all__ = ["measured"]

PAGE = Path(__file__).parent / "gpu.md"
EPOCH = 16  # steps in one call
Steps = Callable[[int], float]


class Case(NamedTuple):
    """A row: how many steps a turn has, and what makes its candidates."""

    title: str
    steps: int
    make: Callable[[Any], dict[str, Steps]]
    aim: float  # the time in units of hand-written JAX's that is wanted


class Setting(NamedTuple):
    """What the rows are run with."""

    device: str
    small: bool
    torch: Any
    compiles: bool


# --- the candidates of a training -----------------------------------------------------------------


def _ours(setting: Setting, task: Any, optimizer: Any, context: Any = nullcontext) -> Steps:
    """Compiled steps of a task, whose loss takes no arguments."""
    task.model.train()

    def step() -> Any:
        optimizer.zero_grad()
        with context():
            loss = task.loss()
        loss.backward()
        optimizer.step()
        return loss

    compiled = chainrule.compile(step)

    def steps(times: int) -> float:
        for _ in range(times):
            loss = compiled()
        return loss.item()

    return steps


def _theirs(setting: Setting, task: Any, optimizer: Any, mode: str | None, context: Any) -> Steps:
    """PyTorch's steps: eager, or with the loss compiled."""
    torch = setting.torch
    task.model.train()
    loss_of = task.loss
    if mode is not None:
        loss_of = torch.compile(task.loss, mode=None if mode == "compiled" else mode)

    def steps(times: int) -> float:
        for _ in range(times):
            optimizer.zero_grad()
            with context():
                loss = loss_of()
            loss.backward()
            optimizer.step()
        return float(loss)

    return steps


class Classifier:
    """The MLP of the MNIST course network, as a task of both libraries."""

    def __init__(self, lib: Any, batch: int, width: int = 512, inputs: int = 784):
        nn = lib.nn
        widths = [inputs, width, width, width, 10]
        layers: list[Any] = []
        for n, m in itertools.pairwise(widths):
            layers += [nn.Linear(n, m), nn.ReLU()]
        self.model = same_weights(lib, nn.Sequential(*layers[:-1]))
        self.x, self.y = normal(lib, batch, inputs), integers(lib, 10, batch)
        self.criterion = nn.CrossEntropyLoss()

    def loss(self) -> Any:
        return self.criterion(self.model(self.x), self.y)


class Sequence:
    """An LSTM whose last state predicts a number."""

    def __init__(self, lib: Any, batch: int = 64, length: int = 100, width: int = 256):
        nn = lib.nn

        class Model(nn.Module):  # type: ignore[misc, name-defined]
            """The last state of an LSTM, and a linear layer."""

            def __init__(self) -> None:
                super().__init__()
                self.lstm = nn.LSTM(64, width, batch_first=True)
                self.head = nn.Linear(width, 1)

            def forward(self, x: Any) -> Any:
                return self.head(self.lstm(x)[0][:, -1])

        self.model = same_weights(lib, Model())
        self.x, self.y = normal(lib, batch, length, 64), normal(lib, batch, 1, seed=1)
        self.criterion = nn.MSELoss()

    def loss(self) -> Any:
        return self.criterion(self.model(self.x), self.y)


def _weights(task: Any) -> list[np.ndarray]:
    return [p.detach().cpu().numpy() for p in task.model.parameters()]


def _batch(*tensors: Any) -> tuple[Any, ...]:
    import jax.numpy as jnp

    return tuple([jnp.asarray(t.cpu().numpy()) for t in tensors])


def _beside(
    setting: Setting,
    make: Callable[[Any], Any],
    optimizer: str,
    options: Any,
    narrow: bool = False,
    short: bool = False,
) -> dict[str, Steps]:
    """Our steps and PyTorch's of the same task; those of ``short`` steps also as CUDA's graphs."""
    lib = chainrule
    task = make(lib)
    found: dict[str, Steps] = {}
    ours = getattr(lib.optim, optimizer)(task.model.parameters(), lr=1e-3, **options)
    context: Any = nullcontext
    if narrow:
        context = lambda: lib.autocast(setting.device, dtype=lib.bfloat16)  # noqa: E731
    found["chainrule"] = _ours(setting, task, ours, context)
    torch = setting.torch
    if torch is None:
        return found
    modes = [None, "compiled", "reduce-overhead"] if setting.compiles else [None]
    if not short:
        modes = modes[:2]
    for mode in modes:
        torch.manual_seed(0)
        theirs = make(torch)
        if any(p.ndim == 4 for p in theirs.model.parameters()):
            theirs.model.to(memory_format=torch.channels_last)
        fused = {"fused": True} if setting.device == "cuda" else {}
        update = getattr(torch.optim, optimizer)(
            theirs.model.parameters(), lr=1e-3, **options, **fused
        )
        if narrow:
            kind = setting.device if setting.device == "cuda" else "cpu"
            context = lambda kind=kind: torch.autocast(kind, dtype=torch.bfloat16)  # noqa: E731
        name = {None: "PyTorch eager", "compiled": "compiled"}.get(mode, f"compiled, {mode}")
        found[name] = _theirs(setting, theirs, update, mode, context)
    return found


# --- the rows -------------------------------------------------------------------------------------


def _mlp(batch: int) -> Callable[[Setting], dict[str, Steps]]:
    def make(setting: Setting) -> dict[str, Steps]:
        import gpu_jax

        sizes = {"width": 16, "inputs": 20} if setting.small else {}
        rows = 8 if setting.small else batch
        task = Classifier(chainrule, rows, **sizes)
        theirs = gpu_jax.mlp(_weights(task))
        given = _batch(task.x, task.y)
        found = _beside(setting, lambda lib: Classifier(lib, rows, **sizes), "Adam", {}, short=True)
        return {**found, "JAX by hand": lambda times: theirs.steps(given, times)}

    return make


def _mlp_epoch(batch: int) -> Callable[[Setting], dict[str, Steps]]:
    def make(setting: Setting) -> dict[str, Steps]:
        import gpu_jax
        import jax.numpy as jnp

        sizes = {"width": 16, "inputs": 20} if setting.small else {}
        rows = 8 if setting.small else batch
        task = Classifier(chainrule, rows, **sizes)
        theirs = gpu_jax.mlp(_weights(task))
        x, y = [jnp.stack([a] * EPOCH) for a in _batch(task.x, task.y)]
        optimizer = chainrule.optim.Adam(task.model.parameters(), lr=1e-3)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = task.criterion(task.model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        compiled = chainrule.compile(step)
        many = task.x.repeat(EPOCH, 1), task.y.repeat(EPOCH)
        for _ in range(4):
            compiled(task.x, task.y)

        def ours(times: int) -> float:
            for _ in range(times // EPOCH):
                losses = compiled.epoch(*many, batch_size=rows)
            return losses[-1].item()

        def by_hand(times: int) -> float:
            for _ in range(times // EPOCH):
                value = theirs.epoch((x, y))
            return value

        return {"chainrule": ours, "JAX by hand": by_hand}

    return make


def _resnet(narrow: bool) -> Callable[[Setting], dict[str, Steps]]:
    def make(setting: Setting) -> dict[str, Steps]:
        import gpu_jax
        import jax.numpy as jnp

        batch, size = (4, 8) if setting.small else (256, 32)
        task = residual.resnet18(chainrule, batch, size)
        theirs = gpu_jax.resnet18(_weights(task), jnp.bfloat16 if narrow else None)
        given = _batch(normal(chainrule, batch, 3, size, size), integers(chainrule, 10, batch))
        found = _beside(
            setting,
            lambda lib: residual.resnet18(lib, batch, size),
            "SGD",
            {"momentum": 0.9},
            narrow,
        )
        return {**found, "JAX by hand": lambda times: theirs.steps(given, times)}

    return make


def _lstm(setting: Setting) -> dict[str, Steps]:
    import gpu_jax

    sizes = {"batch": 3, "length": 5, "width": 8} if setting.small else {}
    task = Sequence(chainrule, **sizes)
    theirs = gpu_jax.lstm(_weights(task))
    given = _batch(task.x, task.y)
    found = _beside(setting, lambda lib: Sequence(lib, **sizes), "Adam", {})
    return {**found, "JAX by hand": lambda times: theirs.steps(given, times)}


def _gpt(narrow: bool) -> Callable[[Setting], dict[str, Steps]]:
    def make(setting: Setting) -> dict[str, Steps]:
        import gpu_jax
        import jax.numpy as jnp

        sizes: dict[str, Any] = {"batch": 32, "length": 256, "layers": 6, "width": 384, "heads": 6}
        if setting.small:
            sizes = {"batch": 2, "length": 9, "layers": 2, "width": 24, "heads": 2}
        task = sequences.gpt(chainrule, **sizes)
        theirs = gpu_jax.gpt(
            _weights(task), sizes["layers"], sizes["heads"], jnp.bfloat16 if narrow else None
        )
        text = integers(chainrule, 65, sizes["batch"], sizes["length"] + 1)
        given = _batch(text[:, :-1], text[:, 1:])
        found = _beside(setting, lambda lib: sequences.gpt(lib, **sizes), "AdamW", {}, narrow)
        return {**found, "JAX by hand": lambda times: theirs.steps(given, times)}

    return make


def _hessian(setting: Setting) -> dict[str, Steps]:
    """The product of the MLP's Hessian with a vector."""
    import gpu_jax

    sizes = {"width": 16, "inputs": 20} if setting.small else {}
    rows = 8 if setting.small else 128
    task = Classifier(chainrule, rows, **sizes)
    names = [name for name, _ in task.model.named_parameters()]
    values = tuple([p.detach() for p in task.model.parameters()])

    def product(*v: Any) -> Any:
        def loss(*values: Any) -> Any:
            given = dict(zip(names, values, strict=True))
            return task.criterion(func.functional_call(task.model, given, (task.x,)), task.y)

        return func.hvp(loss, values, v)

    compiled = chainrule.compile(product)
    tangents = tuple([chainrule.ones_like(p) for p in values])

    def ours(times: int) -> float:
        for _ in range(times):
            out = compiled(*tangents)
        return out[0][0, 0].item()

    import jax.numpy as jnp

    by_hand = gpu_jax.hessian_product(_weights(task), *_batch(task.x, task.y))
    ones = [jnp.ones(tuple(p.shape), jnp.float32) for p in values]

    def jitted(times: int) -> float:
        for _ in range(times):
            out = by_hand(ones)
        return float(out[0][0, 0])

    found = {"chainrule": ours, "JAX by hand": jitted}
    torch = setting.torch
    if torch is None:
        return found
    theirs = Classifier(torch, rows, **sizes)
    given = {k: v.detach() for k, v in theirs.model.named_parameters()}
    vector = {k: torch.ones_like(v) for k, v in given.items()}

    def torch_loss(values: Any) -> Any:
        call = torch.func.functional_call
        return theirs.criterion(call(theirs.model, values, (theirs.x,)), theirs.y)

    def torch_product(vector: Any) -> Any:
        return torch.func.jvp(torch.func.grad(torch_loss), (given,), (vector,))[1]

    def run_of(function: Any) -> Steps:
        def run(times: int) -> float:
            for _ in range(times):
                out = function(vector)
            return float(next(iter(out.values()))[0, 0])

        return run

    found["PyTorch eager"] = run_of(torch_product)
    if setting.compiles:
        found["compiled"] = run_of(torch.compile(torch_product))
    return found


ROWS: dict[str, Case] = {
    "mlp128": Case("MLP 784-512x3-10, Adam, batch 128, a step", 200, _mlp(128), 1.15),
    "epoch128": Case("the same, 16 steps in one call", 320, _mlp_epoch(128), 1.05),
    "mlp4096": Case("MLP 784-512x3-10, Adam, batch 4096, a step", 100, _mlp(4096), 1.15),
    "epoch4096": Case("the same, 16 steps in one call", 160, _mlp_epoch(4096), 1.05),
    "resnet18": Case("ResNet-18, 3x32x32, batch 256, SGD", 10, _resnet(False), 1.05),
    "resnet18-bf16": Case("the same, products in bfloat16", 10, _resnet(True), 1.05),
    "lstm": Case("LSTM 64-256, 100 steps, batch 64, Adam", 20, _lstm, 1.15),
    "gpt": Case("GPT, 6 layers of 384, 32 x 256 letters, AdamW", 10, _gpt(False), 1.05),
    "gpt-bf16": Case("the same, products in bfloat16", 10, _gpt(True), 1.05),
    "hessian": Case("Hessian-vector product of the MLP, batch 128", 100, _hessian, 1.15),
}


# --- measuring ------------------------------------------------------------------------------------


def measured(case: Case, setting: Setting, seconds: float) -> dict[str, Times]:
    """Seconds per step of each candidate of a row."""
    made = case.make(setting)
    times = max(EPOCH, case.steps // 10) if setting.small else case.steps
    first: dict[str, float] = {}
    for name in list(made):
        start = time.perf_counter()
        try:
            first[name] = made[name](EPOCH)
        except Exception as error:  # another library's, on this machine
            if name == "chainrule":
                raise
            print(f"    {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            del made[name]
            continue
        spent = time.perf_counter() - start
        print(f"    {name}: {first[name]:.6g} after {EPOCH} steps, {spent:.1f} s", flush=True)
    turns = {name: lambda run=run: run(times) for name, run in made.items()}
    found = take_turns(turns, repeats=2 if setting.small else 7, seconds=seconds)
    return {name: Times(t.best / times, t.median / times) for name, t in found.items()}


def line(case: Case, times: dict[str, Times]) -> str:
    """The row of the table: microseconds a step, and the two ratios."""
    cells = [f"{case.title}"]
    pytorch = [t.median for name, t in times.items() if name.startswith(("PyTorch", "comp"))]
    columns = ("chainrule", "JAX by hand", "PyTorch eager", "compiled", "compiled, reduce-overhead")
    cells += [f"{times[n].median * 1e6:,.0f}" if n in times else "" for n in columns]
    ours = times["chainrule"].median
    hand = ours / times["JAX by hand"].median if "JAX by hand" in times else float("nan")
    cells += [f"{hand:.2f}", f"{case.aim:.2f}"]
    cells += [f"{min(pytorch) / ours:.2f}" if pytorch else ""]
    return "| " + " | ".join(cells) + " |"


HEAD = [
    "| microseconds a step | chainrule | JAX by hand | PyTorch eager | compiled | reduce-overhead "
    "| ours / JAX | wanted | PyTorch's best / ours |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
]


def _versions(setting: Setting) -> str:
    import jax

    names = [f"chainrule {chainrule.__version__}", f"JAX {jax.__version__}"]
    if setting.torch is not None:
        names.append(f"PyTorch {setting.torch.__version__}")
        if setting.device == "cuda":
            names.append(f"CUDA {setting.torch.version.cuda}")
    names += [f"NumPy {np.__version__}", f"Python {platform.python_version()}"]
    return f"- {jax.devices()[0].device_kind}; {', '.join(names)}"


def main() -> None:
    """Measures rows, prints them, and writes the page if all were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--out", type=Path, help="a page to write, instead of benchmarks/gpu.md")
    asked = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    torch = None
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        if asked.device == "cuda":
            torch.set_default_device("cuda")
    setting = Setting(asked.device, asked.small, torch, not asked.no_compile)
    import jax

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    chainrule.set_float32_matmul_precision("high")
    chainrule.set_default_device(asked.device)
    lines = [_versions(setting), "", *HEAD]
    print("\n".join(lines), flush=True)
    for name in asked.rows:
        lines.append(line(ROWS[name], measured(ROWS[name], setting, asked.seconds)))
        print(lines[-1], flush=True)
        if asked.out is not None:
            asked.out.write_text("\n".join(lines) + "\n")
    if asked.rows == list(ROWS) and not asked.small and asked.out is None:
        PAGE.write_text("\n".join(["# Training on a GPU", "", *lines]) + "\n")


if __name__ == "__main__":
    main()
