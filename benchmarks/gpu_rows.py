"""The rows of ``gpu.py``: what is trained, by chainrule, by hand-written JAX and by PyTorch.

A candidate is a function that takes so many steps, and waits for the last one's loss.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

import chainrule
from architectures import residual, sequences
from architectures.task import integers, normal, same_weights
from chainrule import func

__all__ = ["EPOCH", "ROWS", "STEPS_OF", "TOGETHER", "Candidates", "Case", "Setting"]

EPOCH = 16  # steps in one call
Steps = Callable[[int], float]
Candidates = dict[str, Steps]


class Setting(NamedTuple):
    """What the rows are run with; ``torch`` in the processes that run PyTorch."""

    device: str
    small: bool
    compiles: bool
    torch: Any = None


class Case(NamedTuple):
    """A row: how many steps a turn has, and what makes its candidates."""

    title: str
    steps: int
    aim: float  # the time in units of hand-written JAX's that is wanted
    ours: Callable[[Setting], Candidates]  # with those of JAX
    torch: Callable[[Setting], Candidates]


# --- the candidates of a training -----------------------------------------------------------------


def _ours(setting: Setting, task: Any, optimizer: str, options: Any, narrow: bool = False) -> Steps:
    """Compiled steps of a task, whose loss takes no arguments."""
    task.model.train()
    update = getattr(chainrule.optim, optimizer)(task.model.parameters(), lr=1e-3, **options)
    context: Any = nullcontext
    if narrow:
        context = lambda: chainrule.autocast(setting.device, dtype=chainrule.bfloat16)  # noqa: E731

    def step() -> Any:
        update.zero_grad()
        with context():
            loss = task.loss()
        loss.backward()
        update.step()
        return loss

    compiled = chainrule.compile(step)

    def steps(times: int) -> float:
        for _ in range(times):
            loss = compiled()
        return loss.item()

    return steps


def _theirs(task: Any, optimizer: Any, mode: str | None, context: Any) -> Steps:
    """PyTorch's steps: eager, or with the loss compiled."""
    import torch

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


class Recurrent:
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


def _torch(
    setting: Setting,
    make: Callable[[Any], Any],
    optimizer: str,
    options: Any,
    narrow: bool = False,
    short: bool = False,
) -> Candidates:
    """PyTorch's steps of a task in all modes; those of ``short`` steps also as CUDA's graphs."""
    torch, found = setting.torch, {}
    on_gpu = setting.device == "cuda"
    modes = [None, "compiled", "reduce-overhead"] if setting.compiles else [None]
    for mode in modes if short else modes[:2]:
        torch.manual_seed(0)
        theirs = make(torch)
        if any(p.ndim == 4 for p in theirs.model.parameters()):
            theirs.model.to(memory_format=torch.channels_last)
        fused = {"fused": True} if on_gpu else {}
        update = getattr(torch.optim, optimizer)
        update = update(theirs.model.parameters(), lr=1e-3, **options, **fused)
        context: Any = nullcontext
        if narrow:
            context = lambda: torch.autocast("cuda" if on_gpu else "cpu", dtype=torch.bfloat16)  # noqa: E731
        name = {None: "PyTorch eager", "compiled": "compiled"}.get(mode, f"compiled, {mode}")
        found[name] = _theirs(theirs, update, mode, context)
    return found


# --- the rows -------------------------------------------------------------------------------------


def _perceptron(lib: Any, setting: Setting, batch: int) -> Classifier:
    if setting.small:
        return Classifier(lib, 8, width=16, inputs=20)
    return Classifier(lib, batch)


def _mlp(batch: int) -> Callable[[Setting], Candidates]:
    def make(setting: Setting) -> Candidates:
        import gpu_jax

        task = _perceptron(chainrule, setting, batch)
        theirs = gpu_jax.mlp(_weights(task))
        given = _batch(task.x, task.y)
        return {
            "chainrule": _ours(setting, task, "Adam", {}),
            "JAX by hand": lambda times: theirs.steps(given, times),
        }

    return make


def _mlp_torch(batch: int) -> Callable[[Setting], Candidates]:
    return lambda setting: _torch(
        setting, lambda lib: _perceptron(lib, setting, batch), "Adam", {}, short=True
    )


def _mlp_epoch(batch: int) -> Callable[[Setting], Candidates]:
    def make(setting: Setting) -> Candidates:
        import gpu_jax
        import jax.numpy as jnp

        task = _perceptron(chainrule, setting, batch)
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

        def ours(times: int) -> float:
            for _ in range(times // EPOCH):
                losses = compiled.epoch(*many, batch_size=len(task.y))
            return losses[-1].item()

        def by_hand(times: int) -> float:
            for _ in range(times // EPOCH):
                values = theirs.epoch((x, y))
            return float(values[-1])

        return {"chainrule": ours, "JAX by hand": by_hand}

    return make


def _residual(lib: Any, setting: Setting) -> Any:
    return residual.resnet18(lib, *((4, 8) if setting.small else (256, 32)))


def _resnet(narrow: bool) -> Callable[[Setting], Candidates]:
    def make(setting: Setting) -> Candidates:
        import gpu_jax
        import jax.numpy as jnp

        batch, size = (4, 8) if setting.small else (256, 32)
        task = _residual(chainrule, setting)
        theirs = gpu_jax.resnet18(_weights(task), jnp.bfloat16 if narrow else None)
        given = _batch(normal(chainrule, batch, 3, size, size), integers(chainrule, 10, batch))
        return {
            "chainrule": _ours(setting, task, "SGD", {"momentum": 0.9}, narrow),
            "JAX by hand": lambda times: theirs.steps(given, times),
        }

    return make


def _resnet_torch(narrow: bool) -> Callable[[Setting], Candidates]:
    return lambda setting: _torch(
        setting, lambda lib: _residual(lib, setting), "SGD", {"momentum": 0.9}, narrow
    )


def _sequence(lib: Any, setting: Setting) -> Recurrent:
    return Recurrent(lib, batch=3, length=5, width=8) if setting.small else Recurrent(lib)


def _lstm(setting: Setting) -> Candidates:
    import gpu_jax

    task = _sequence(chainrule, setting)
    theirs = gpu_jax.lstm(_weights(task))
    given = _batch(task.x, task.y)
    return {
        "chainrule": _ours(setting, task, "Adam", {}),
        "JAX by hand": lambda times: theirs.steps(given, times),
    }


def _lstm_torch(setting: Setting) -> Candidates:
    return _torch(setting, lambda lib: _sequence(lib, setting), "Adam", {})


def _sizes(setting: Setting) -> dict[str, int]:
    if setting.small:
        return {"batch": 2, "length": 9, "layers": 2, "width": 24, "heads": 2}
    return {"batch": 32, "length": 256, "layers": 6, "width": 384, "heads": 6}


def _gpt(narrow: bool) -> Callable[[Setting], Candidates]:
    def make(setting: Setting) -> Candidates:
        import gpu_jax
        import jax.numpy as jnp

        sizes = _sizes(setting)
        task = sequences.gpt(chainrule, **sizes)
        kind = jnp.bfloat16 if narrow else None
        theirs = gpu_jax.gpt(_weights(task), sizes["layers"], sizes["heads"], kind)
        text = integers(chainrule, 65, sizes["batch"], sizes["length"] + 1)
        given = _batch(text[:, :-1], text[:, 1:])
        return {
            "chainrule": _ours(setting, task, "AdamW", {}, narrow),
            "JAX by hand": lambda times: theirs.steps(given, times),
        }

    return make


def _gpt_torch(narrow: bool) -> Callable[[Setting], Candidates]:
    return lambda setting: _torch(
        setting, lambda lib: sequences.gpt(lib, **_sizes(setting)), "AdamW", {}, narrow
    )


def _hessian(setting: Setting) -> Candidates:
    """The product of the MLP's Hessian with a vector."""
    import gpu_jax
    import jax.numpy as jnp

    task = _perceptron(chainrule, setting, 128)
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

    by_hand = gpu_jax.hessian_product(_weights(task), *_batch(task.x, task.y))
    ones = [jnp.ones(tuple(p.shape), jnp.float32) for p in values]

    def jitted(times: int) -> float:
        for _ in range(times):
            out = by_hand(ones)
        return float(out[0][0, 0])

    return {"chainrule": ours, "JAX by hand": jitted}


def _hessian_torch(setting: Setting) -> Candidates:
    torch = setting.torch
    task = _perceptron(torch, setting, 128)
    given = {k: v.detach() for k, v in task.model.named_parameters()}
    vector = {k: torch.ones_like(v) for k, v in given.items()}

    def loss(values: Any) -> Any:
        return task.criterion(torch.func.functional_call(task.model, values, (task.x,)), task.y)

    def product(vector: Any) -> Any:
        return torch.func.jvp(torch.func.grad(loss), (given,), (vector,))[1]

    def run_of(function: Any) -> Steps:
        def run(times: int) -> float:
            for _ in range(times):
                out = function(vector)
            return float(next(iter(out.values()))[0, 0])

        return run

    found = {"PyTorch eager": run_of(product)}
    if setting.compiles:
        found["compiled"] = run_of(torch.compile(product))
    return found


ROWS: dict[str, Case] = {
    "mlp128": Case(
        "MLP 784-512x3-10, Adam, batch 128, a step", 200, 1.15, _mlp(128), _mlp_torch(128)
    ),
    "epoch128": Case("the same, 16 steps in one call", 320, 1.05, _mlp_epoch(128), _mlp_torch(128)),
    "mlp4096": Case(
        "MLP 784-512x3-10, Adam, batch 4096, a step", 100, 1.15, _mlp(4096), _mlp_torch(4096)
    ),
    "epoch4096": Case(
        "the same, 16 steps in one call", 160, 1.05, _mlp_epoch(4096), _mlp_torch(4096)
    ),
    "resnet18": Case(
        "ResNet-18, 3x32x32, batch 256, SGD", 10, 1.05, _resnet(False), _resnet_torch(False)
    ),
    "resnet18-bf16": Case(
        "the same, products in bfloat16", 10, 1.05, _resnet(True), _resnet_torch(True)
    ),
    "lstm": Case("LSTM 64-256, 100 steps, batch 64, Adam", 20, 1.15, _lstm, _lstm_torch),
    "gpt": Case(
        "GPT, 6 layers of 384, 32 x 256 letters, AdamW", 10, 1.05, _gpt(False), _gpt_torch(False)
    ),
    "gpt-bf16": Case("the same, products in bfloat16", 10, 1.05, _gpt(True), _gpt_torch(True)),
    "hessian": Case(
        "Hessian-vector product of the MLP, batch 128", 100, 1.15, _hessian, _hessian_torch
    ),
}
# The epochs have PyTorch's steps beside them, which are the same.
STEPS_OF = {"epoch128": "mlp128", "epoch4096": "mlp4096"}
# Which rows of PyTorch's are compiled by one process: those of a kind share what is compiled.
TOGETHER = [("mlp128", "mlp4096", "hessian"), ("resnet18",), ("resnet18-bf16",), ("lstm",)]
TOGETHER += [("gpt",), ("gpt-bf16",)]
