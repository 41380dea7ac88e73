"""What a training step costs on many devices: a model of it, checked where it can be measured.

    python benchmarks/scale.py                    the predictions of docs/scale.md
    python benchmarks/scale.py --measure          and its measurements: 1, 2 and 4 devices that JAX
                                                  makes of the CPU, and two processes

A step of a network with P parameters on ``data x model`` devices, each weight cut along ``model``
and each batch along ``data``:

    compute   3 x forward FLOPs x batch / (devices x share of the peak x peak)
    memory    4 P (1 + 1 + states) / model + activations x batch / data
    gradients an all-reduce of 4 P / model bytes: 2 (data - 1) / data of them leave each device
    model     all-reduces of activations, inside one machine
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

__all__ = [
    "GPT",
    "H200",
    "RESNET50",
    "Hardware",
    "Measured",
    "Network",
    "Plan",
    "best",
    "measure",
    "plan",
    "reduced_bytes",
    "table",
]

FLOAT = 4  # bytes
WIDTH = 512  # of the two hidden layers of the network that is measured


@dataclass(frozen=True)
class Hardware:
    """Numbers of data sheets, and the share of the peak that a step is assumed to reach."""

    peak: float  # FLOP/s of dense products in TF32
    share: float
    memory: float  # bytes
    inside: float  # bytes/s that leave a device for another of its machine
    between: float  # bytes/s for another machine
    machine: int  # devices in one
    latency: float  # seconds for a message


# H200 SXM: NVIDIA's data sheet (989 TFLOP/s with sparsity, half of it without; 141 GB; NVLink 900
# GB/s in both directions together); one 400 Gb/s adapter for each GPU, as in DGX H200's data sheet.
H200 = Hardware(494e12, 0.2, 141e9, 450e9, 50e9, 8, 10e-6)


@dataclass(frozen=True)
class Network:
    """A network, by what a sample of it costs."""

    name: str
    parameters: int
    forward: float  # FLOPs of a sample, forward
    activations: float  # bytes of a sample that are kept for the backward pass
    states: int  # numbers that the optimizer keeps for each parameter
    exchanged: float  # bytes of a sample that are reduced among the devices of a model
    sample: float  # bytes of a sample on disk
    decoded: float  # samples that a core decodes in a second, infinite where nothing is decoded


def _resnet50() -> Network:
    """Layer by layer, at 224 x 224 pixels: 25.6 million parameters, 4.1e9 multiply-adds."""
    count, macs, kept = 0, 0.0, 0.0

    def convolution(inputs: int, outputs: int, kernel: int, side: int) -> None:
        nonlocal count, macs, kept
        weights = inputs * outputs * kernel**2
        count += weights + 2 * outputs  # and a normalization
        macs += weights * side**2
        kept += 2 * outputs * side**2  # what it and the normalization give; ReLU works in place

    convolution(3, 64, 7, 112)
    inputs = 64
    for blocks, width, side in ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)):
        for block in range(blocks):
            before = side * (2 if block == 0 and width > 64 else 1)
            convolution(inputs, width, 1, before)
            convolution(width, width, 3, side)
            convolution(width, 4 * width, 1, side)
            if block == 0:
                convolution(inputs, 4 * width, 1, side)
            inputs = 4 * width
    count += 2048 * 1000 + 1000
    macs += 2048 * 1000
    return Network("ResNet-50", count, 2 * macs, FLOAT * kept, 1, math.inf, 110e3, 150)


def _gpt(layers: int, width: int, heads: int, length: int, words: int) -> Network:
    """Sequences of ``length``; activations by Korthikanti et al. (2022), with four bytes each."""
    each = 12 * width**2 + 13 * width
    count = layers * each + words * width + length * width + 2 * width
    forward = 2 * (layers * 12 * width**2 + words * width) * length
    forward += layers * 4 * length**2 * width
    kept = layers * (34 * length * width + 5 * heads * length**2) * 2 + 2 * FLOAT * length * words
    exchanged = 4 * layers * length * width * FLOAT
    name = f"GPT {layers} x {width}"
    return Network(name, count, forward, kept, 2, exchanged, 2 * length, math.inf)


RESNET50 = _resnet50()
GPT = _gpt(12, 768, 12, 1024, 50257)


# --- the model ------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What a step comes to: seconds and bytes for one device."""

    data: int
    model: int
    batch: int
    compute: float
    gradients: float  # seconds of their all-reduce
    inside: float  # seconds of the all-reduces of activations
    memory: float
    sent: float  # bytes of gradients that leave a device

    @property
    def apart(self) -> float:
        """Seconds of a step that computes and then sends."""
        return self.compute + self.gradients + self.inside

    @property
    def together(self) -> float:
        """Seconds if gradients travel while others are computed."""
        return max(self.compute, self.gradients) + self.inside


def plan(net: Network, batch: int, data: int, model: int = 1, on: Hardware = H200) -> Plan:
    """The cost of a step."""
    devices = data * model
    compute = 3 * net.forward * batch / (devices * on.share * on.peak)
    weights = FLOAT * net.parameters / model
    sent = 2 * (data - 1) / data * weights
    machines = -(-devices // on.machine)
    rate = on.inside if machines == 1 else on.between
    hops = 2 * math.ceil(math.log2(data)) if data > 1 else 0
    gradients = sent / rate + hops * on.latency
    inside = 0.0
    if model > 1:
        moved = 2 * (model - 1) / model * net.exchanged * batch / data
        inside = moved / on.inside + 48 * on.latency
    memory = weights * (2 + net.states) + net.activations * batch / devices
    return Plan(data, model, batch, compute, gradients, inside, memory, sent)


def best(net: Network, batch: int, devices: int, on: Hardware = H200) -> Plan:
    """The fastest way to use so many devices that fits into their memory."""
    cuts = [1, 2, 4, 8] if net.exchanged < math.inf else [1]
    found = [
        plan(net, batch, devices // m, m, on)
        for m in cuts
        if devices % m == 0 and devices // m <= batch
    ]
    fitting = [p for p in found if p.memory <= on.memory]
    if not fitting:
        raise ValueError(f"{net.name}: a batch of {batch} is too small or too large for {devices}")
    return min(fitting, key=lambda p: p.apart)


def table() -> str:
    """The predictions, as Markdown."""
    lines = [
        "| network | GPUs | batch | rule | compute | gradients, activations | a step | of linear | "
        "memory | sent | reads | cores |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for net, batches in (
        (RESNET50, ((1, 256), (8, 2048), (64, 16384), (1024, 16384), (1024, 32768))),
        (GPT, ((1, 8), (8, 64), (64, 512), (1024, 512), (1024, 4096))),
    ):
        first: float | None = None
        for devices, batch in batches:
            p = best(net, batch, devices)
            rate = batch / p.apart
            first = first or rate
            rule = f"{p.data}" if p.model == 1 else f"{p.data} x {p.model}"
            cores = "" if net.decoded == math.inf else f"{rate / net.decoded / devices:.0f}"
            lines.append(
                f"| {net.name} | {devices} | {batch:,} | {rule} | {1e3 * p.compute:.1f} ms | "
                f"{1e3 * p.gradients:.1f}, {1e3 * p.inside:.1f} ms | "
                f"{1e3 * p.together:.0f} to {1e3 * p.apart:.0f} ms | "
                f"{rate / first / devices:.0%} | {p.memory / 1e9:.1f} GB | {p.sent / 1e6:.0f} MB | "
                f"{rate * net.sample / 1e6:,.0f} MB/s | {cores} |"
            )
    return "\n".join(lines)


# --- measurements ---------------------------------------------------------------------------------


class Measured(NamedTuple):
    """What a step of a small network came to on the devices of one process."""

    milliseconds: float
    held: int  # bytes of parameters, gradients and states on a device
    temporary: int  # bytes that the compiled step needs besides
    reduced: int  # bytes that are reduced in a step, as its program says
    parameters: int
    sample: float  # bytes of a sample among the temporary ones


def reduced_bytes(program: str) -> int:
    """The bytes of all all-reduces in the text of a compiled program."""
    total = 0
    for line in program.splitlines():
        found = re.match(r"\s*(?:ROOT )?%?\S+ = (.*?) all-reduce(?:-start)?\(", line)
        for kind, shape in re.findall(r"([a-z]+\d+)\[([\d,]*)\]", found[1]) if found else ():
            size = int(re.sub(r"\D", "", kind)) // 8
            total += size * math.prod([int(n) for n in shape.split(",") if n])
    return total


def _held(tensors: Iterator[Any]) -> int:
    return sum([t.array.raw.addressable_shards[0].data.nbytes for t in tensors])


def measure(devices: int, batch: int = 512, width: int = WIDTH) -> Measured:
    """Steps of an MLP with Adam on so many devices that JAX finds."""
    small, large = _measured(devices, batch, width), _measured(devices, 4 * batch, width)
    sample = devices * (large.temporary - small.temporary) / (3 * batch)
    return small._replace(sample=sample)


def _measured(devices: int, batch: int, width: int) -> Measured:
    import jax

    import chainrule
    from chainrule import distributed as dist
    from chainrule import nn, optim
    from chainrule.backend import xla_programs

    told: list[Any] = []
    called = xla_programs.called

    def noting(function: Any, program: Any, *args: Any) -> Any:
        if not told:
            forms = jax.tree.map(_form, args)
            told.append(function.lower(*forms).compile())
        return called(function, program, *args)

    xla_programs.called = noting
    chainrule.manual_seed(0)
    net: nn.Module = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width))
    net = net.append(nn.ReLU()).append(nn.Linear(width, 8)).to("xla")  # type: ignore[operator]
    if devices > 1:
        mesh = dist.init_device_mesh("xla", (devices,))
        net = nn.parallel.DistributedDataParallel(net, mesh=mesh)
    optimizer = optim.Adam(net.parameters())
    share = batch // dist.get_world_size()
    x, y = chainrule.randn(share, 64).to("xla"), chainrule.randn(share, 8).to("xla")

    @chainrule.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(6):
        float(step(x, y))
    times = []
    for _ in range(7):
        start = perf_counter()
        for _ in range(10):
            loss = step(x, y)
        float(loss)
        times.append((perf_counter() - start) / 10)
    xla_programs.called = called
    states = [t for s in optimizer.state.values() for t in s.values() if hasattr(t, "array")]
    parameters = list(net.parameters())
    held = _held(iter([*parameters, *[p.grad for p in parameters], *states]))
    (program,) = told
    temporary = program.memory_analysis().temp_size_in_bytes
    reduced = reduced_bytes(program.as_text())
    count = sum([p.numel() for p in parameters])
    return Measured(1e3 * min(times), held, temporary, reduced, count, 0.0)


def _form(a: Any) -> Any:
    import jax

    if not isinstance(a, jax.Array):
        return a
    return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding)


def measurements() -> str:
    """The table of measurements, each in a process of its own."""
    lines = [
        "| where | a step | parameters, gradients, Adam on a device | the model | temporary, of a "
        "sample | the model | all-reduced | the model |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    here = [sys.executable, __file__, "--one"]
    launch = [sys.executable, "-m", "chainrule", "launch", "--processes", "2", *here[1:]]
    for name, command, devices in (
        ("1 device", [*here, "1"], 1),
        ("2 devices", [*here, "2"], 2),
        ("4 devices", [*here, "4"], 4),
        ("2 processes", [*launch, "2"], 2),
    ):
        flags = "" if command[1] == "-m" else f"--xla_force_host_platform_device_count={devices}"
        env = {**os.environ, "XLA_FLAGS": flags}
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        line = next(text for text in run.stdout.splitlines() if "{" in text)
        m = Measured(**json.loads(line[line.index("{") :]))
        model = FLOAT * m.parameters
        reduced = model if devices > 1 else 0
        lines.append(
            f"| {name} | {m.milliseconds:.1f} ms | {m.held:,} B | {4 * model:,} B | "
            f"{m.sample:,.0f} B | {FLOAT * 2 * WIDTH:,} B | {m.reduced:,} B | {reduced:,} B |"
        )
    return "\n".join(lines)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        if "WORLD_SIZE" in os.environ:
            from chainrule import distributed as dist

            dist.init_process_group()
        print(json.dumps(measure(options.one)._asdict()), flush=True)
        return
    print(table())
    if options.measure:
        print(f"\n{measurements()}")


if __name__ == "__main__":
    main()
