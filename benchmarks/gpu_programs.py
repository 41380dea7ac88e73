"""What XLA makes of a step for a GPU, where there is none: ``make gpu-programs``.

    python benchmarks/gpu_programs.py                     all rows, and a part of benchmarks/gpu.md
    python benchmarks/gpu_programs.py --rows mlp128       some of them, printed
    python benchmarks/gpu_programs.py --rows mlp128 --list    with every kernel

The rows are those of ``gpu.py``: a compiled step of chainrule, and the same written by hand for
JAX. Both run here on JAX's CPU; what they call is then compiled for an H200 by XLA's compiler for
GPUs, which takes the package ``jax[cuda13]`` and no GPU. Counted are the kernels of a step, and the
bytes that they read and write; which algorithms a product takes would be tried on the GPU itself.
Times are those of ``make gpu-bench`` alone: short steps follow the number of kernels, long ones the
bytes.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # that compare the driver's versions
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import jax
import numpy as np
from gpu_rows import EPOCH, ROWS, Setting
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from pages import write_part

import chainrule
from chainrule.backend import devices

__all__ = ["Kernel", "kernels_of"]

PAGE = Path(__file__).parent / "gpu.md"
# What XLA asks of a device, in the form of its GpuTargetConfigProto.
H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4814000000000 l2_cache_size: 62914560 device_memory_size: 150000000000
  cuda_compute_capability { major: 9 feature_extension: NONE }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 27 }
device_description_str: "NVIDIA H200"
"""


# --- programs -------------------------------------------------------------------------------------


class Kernel(NamedTuple):
    """An instruction of a program that is a kernel on the GPU."""

    kind: str
    shape: str
    made_of: str  # what of the step it computes
    nbytes: int  # of its operands and results


NO_KERNELS = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple", "while"}
SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}
SIZES |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8}
_ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_LINE = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*?)\)(.*)")
_PART = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \([^\n]*\) -> [^\n]* \{\n(.*?)^\}", re.M | re.S)


class Line(NamedTuple):
    """An instruction in XLA's text."""

    name: str
    shape: str
    kind: str
    given: str  # its operands, or the number of a parameter
    rest: str  # its settings, and where it comes from

    @property
    def operands(self) -> list[str]:
        """Their names."""
        return re.findall(r"%([\w.\-]+)", self.given)


def _lines_of(part: str) -> list[Line]:
    return [Line(*match.groups()) for match in map(_LINE.match, part.splitlines()) if match]


def kernels_of(text: str) -> list[Kernel]:
    """The kernels of one step of a compiled program in XLA's text: of the loop, if it has one."""
    parts = {name: _lines_of(part) for name, part in _PART.findall(text)}
    whole = parts[re.findall(r"^ENTRY %?([\w.\-]+)", text, re.M)[0]]
    loops = [parts[name] for name in re.findall(r" while\(.*body=%?([\w.\-]+)", text)]
    body = max([whole, *loops], key=len)  # a loop inside of a step is one kernel
    shapes = {line.name: line.shape for line in body}
    found = []
    for line in body:
        if line.kind in NO_KERNELS and not (line.kind == "while" and body is whole):
            continue
        called = re.search(r"calls=%?([\w.\-]+)", line.rest)
        inside = parts[called[1]] if called else []
        read = [shapes.get(name, "") for name in line.operands]
        nbytes = _nbytes(line.shape) + sum([_read(k, s, inside) for k, s in enumerate(read)])
        made_of = re.findall(r'op_name="([^"]*)"', line.rest)
        found.append(Kernel(line.kind, line.shape, "".join(made_of[:1]), nbytes))
    return found


def _read(number: int, shape: str, inside: list[Line]) -> int:
    """The bytes that a kernel reads of an operand: of one it only takes parts of, those."""
    own = [line.name for line in inside if (line.kind, line.given) == ("parameter", str(number))]
    parts = [line for line in inside if own and own[0] in line.operands]
    if parts and all([line.kind in ("slice", "dynamic-slice") for line in parts]):
        return min(_nbytes(shape), sum([_nbytes(line.shape) for line in parts]))
    return _nbytes(shape)


def _nbytes(shape: str) -> int:
    """Of the arrays in a shape as XLA writes it: ``(f32[128,10]{1,0}, pred[])``."""
    found = 0
    for dtype, dims in _ARRAY.findall(shape):
        found += SIZES.get(dtype, 4) * math.prod([int(d) for d in dims.split(",") if d])
    return found


class Elsewhere:
    """Compiles for a GPU that is not there."""

    def __init__(self) -> None:
        made = topologies.get_topology_desc(
            "H200", "cuda", target_config=H200, topology="1x1x1"
        ).devices
        self.place = NamedSharding(Mesh(np.array(made[:1]), ("x",)), PartitionSpec())

    def like(self, a: Any) -> Any:
        """The form of an argument."""
        a = a if hasattr(a, "shape") else np.asarray(a)
        return jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=self.place)

    def compiled(self, function: Any, args: Any) -> str:
        """The text of the program."""
        traced = function.trace(*args).lower(lowering_platforms=("cuda",))
        return str(traced.compile().as_text())


@contextmanager
def _noting(take: Callable[[Any, Any], None]) -> Iterator[None]:
    """Has every function that is jitted meanwhile tell its calls."""
    jit = jax.jit

    def noted(function: Any, **options: Any) -> Any:
        compiled = jit(function, **options)

        def call(*args: Any) -> Any:
            take(compiled, args)
            return compiled(*args)

        return call

    jax.jit = noted
    try:
        yield
    finally:
        jax.jit = jit


# --- the table ------------------------------------------------------------------------------------


def programs(row: str, gpu: Elsewhere, small: bool) -> Iterator[tuple[str, list[Kernel]]]:
    """The kernels of a row's candidates, by their names."""
    last: list[Any] = []

    def take(function: Any, args: Any) -> None:
        last[:] = [function, args]

    with _noting(take):
        candidates = ROWS[row].ours(Setting("cuda", small, False))
        for name, steps in candidates.items():
            for _ in range(5 if name == "chainrule" else 1):  # the last call is of the program
                steps(EPOCH if "epoch" in row else 1)
            function, args = last
            yield name, kernels_of(gpu.compiled(function, jax.tree.map(gpu.like, args)))


def _line(row: str, found: dict[str, list[Kernel]]) -> str:
    sides = [found["chainrule"], found["JAX by hand"]]
    cells = [ROWS[row].title, *[str(len(kernels)) for kernels in sides]]
    cells += [f"{sum(k.nbytes for k in kernels) / 1e6:,.1f}" for kernels in sides]
    return "| " + " | ".join(cells) + " |"


def _stand_in() -> None:
    """JAX's CPU is the GPU until a program is there."""
    devices.KINDS["cuda"] = ""
    devices._has_plugin = lambda kind: True
    jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    chainrule.set_float32_matmul_precision("high")
    chainrule.set_default_device("cuda")


def main() -> None:
    """Counts and prints; writes the part of the page if all rows were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--small", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--list", action="store_true", help="print every kernel")
    asked = parser.parse_args()
    _stand_in()
    gpu = Elsewhere()
    lines = [
        "## Programs",
        "",
        "What XLA's compiler for GPUs makes of the same steps, for an H200, without one "
        "(`make gpu-programs`).",
        "",
        f"- chainrule {chainrule.__version__}, JAX {jax.__version__}",
        "- MB: what the kernels of a step read and write",
        "",
        "| a step | kernels, chainrule | JAX by hand | MB, chainrule | JAX by hand |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in asked.rows:
        found = dict(programs(row, gpu, asked.small))
        lines.append(_line(row, found))
        print(lines[-1], flush=True)
        for name, kernels in found.items() if asked.list else ():
            print(f"  {name}:")
            for k in kernels:
                print(f"    {k.nbytes / 1e6:9.2f} MB  {k.kind:<12} {k.shape[:60]:<60} {k.made_of}")
    if asked.rows == list(ROWS) and not asked.small:
        write_part(PAGE, "gpu-programs", lines)


if __name__ == "__main__":
    main()
