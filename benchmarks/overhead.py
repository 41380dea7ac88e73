"""What an operation costs beyond its arithmetic, side by side with PyTorch in one run.

Both libraries run the same program text: it takes the library as an argument.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from _timing import best_of, row

import chainrule
from chainrule import backend

try:
    import torch
except ImportError:
    torch = None

Work = Callable[[], object]


def chain(lib: Any) -> Work:
    """Forward and backward of 20 elementwise operations on a (5, 8) tensor."""
    x = lib.tensor(np.random.default_rng(0).normal(size=(5, 8)).astype("float32"))
    x.requires_grad_()

    def work() -> None:
        y = x
        for _ in range(5):
            y = (y * x + 0.5).tanh() - x
        x.grad = None
        y.sum().backward()

    return work


def products(lib: Any) -> Work:
    """Forward and backward of 10 products (5, 8) by (8, 8), with respect to the weights."""
    r = np.random.default_rng(0)
    x = lib.tensor(r.normal(size=(5, 8)).astype("float32"))
    weights = [lib.tensor(r.normal(size=(8, 8)).astype("float32") / 3) for _ in range(10)]
    for w in weights:
        w.requires_grad_()

    def work() -> None:
        y = x
        for w in weights:
            w.grad = None
            y = y @ w
        y.sum().backward()

    return work


def training_step(lib: Any, cross_entropy: Callable[[Any, Any], Any]) -> Work:
    """One step of a 4-8-3 network on a batch of 5: forward, loss, backward, SGD by hand."""
    r = np.random.default_rng(0)
    x = lib.tensor(r.normal(size=(5, 4)).astype("float32"))
    labels = lib.tensor([0, 1, 2, 1, 0])
    shapes = [(4, 8), (8,), (8, 3), (3,)]
    parameters = [lib.tensor(r.normal(size=s).astype("float32")) for s in shapes]
    for p in parameters:
        p.requires_grad_()
    w1, b1, w2, b2 = parameters

    def work() -> None:
        loss = cross_entropy((x @ w1 + b1).tanh() @ w2 + b2, labels)
        loss.backward()
        with lib.no_grad():
            for p in parameters:
                p -= 0.01 * p.grad
                p.grad = None

    return work


def large_product(lib: Any, size: int = 1000) -> Work:
    """Forward and backward of one (1000, 1000) product, both factors with gradients."""
    r = np.random.default_rng(0)
    a, b, g = (lib.tensor(r.normal(size=(size, size)).astype("float32")) for _ in range(3))
    a.requires_grad_()
    b.requires_grad_()

    def work() -> None:
        a.grad = b.grad = None
        (a @ b).backward(g)

    return work


def bare_products(size: int = 1000) -> Work:
    """The arithmetic of :func:`large_product` alone: three products of NumPy arrays."""
    r = np.random.default_rng(0)
    a, b, g = (r.normal(size=(size, size)).astype("float32") for _ in range(3))

    def work() -> None:
        a @ b
        g @ b.T
        a.T @ g

    return work


def long_chain(lib: Any, length: int) -> tuple[float, float, float]:
    """Seconds to build, to differentiate and to free a chain of this many operations."""
    x = lib.tensor(1.0, requires_grad=True)
    t0 = perf_counter()
    y = x
    for _ in range(length):
        y = y + 1.0
    t1 = perf_counter()
    y.backward()
    t2 = perf_counter()
    del y
    gc.collect()
    return t1 - t0, t2 - t1, perf_counter() - t2


def graph_memory(length: int) -> tuple[int, int]:
    """Bytes of a chain of this many operations while it is held, and what is left afterwards."""
    x = chainrule.tensor(1.0, requires_grad=True)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    y = x
    for _ in range(length):
        y = y + 1.0
    held = tracemalloc.get_traced_memory()[0] - before
    y.backward()
    del y
    x.grad = None
    gc.collect()
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held, left


def side_by_side(make: Callable[..., Work], **arguments: tuple[Any, ...]) -> dict[str, float]:
    """Times of the same program with both libraries (of chainrule alone if there is no PyTorch)."""
    candidates = {"chainrule": make(chainrule, *arguments.get("ours", ()))}
    if torch is not None:
        candidates["torch"] = make(torch, *arguments.get("theirs", ()))
    return best_of(candidates)


def main() -> None:
    print(f"chainrule with {backend.current()} kernels, NumPy {np.__version__}", end="")
    if torch is None:
        print("; PyTorch is not installed: no comparison (make bench installs it)")
    else:
        torch.set_num_threads(2)
        print(f"; PyTorch {torch.__version__} with {torch.get_num_threads()} threads")
    print("best of 15 interleaved repeats; a ratio above 1 means chainrule is faster")

    title = "20 elementwise operations, (5, 8)"
    print(row(title, side_by_side(chain), "torch", "chainrule"), flush=True)
    title = "10 products (5, 8) x (8, 8)"
    print(row(title, side_by_side(products), "torch", "chainrule"), flush=True)
    theirs = (torch.nn.functional.cross_entropy,) if torch is not None else ()
    times = side_by_side(training_step, ours=(chainrule.cross_entropy,), theirs=theirs)
    print(row("training step, 4-8-3, batch 5, SGD", times, "torch", "chainrule"), flush=True)

    times = best_of(
        {"chainrule": large_product(chainrule), "NumPy": bare_products()}, repeats=9, seconds=0.3
    )
    print(row("product (1000, 1000), against bare NumPy", times, "chainrule", "NumPy"))
    print("  the last ratio is the price of differentiation: at most 1.05 is wanted", flush=True)

    length = 1_000_000
    build, differentiate, free = long_chain(chainrule, length)
    print(f"chain of {length:,} operations: {build:.2f} s to build, ", end="")
    print(f"{differentiate:.2f} s to differentiate, {free:.2f} s to free", flush=True)
    if torch is not None:
        build, differentiate, free = long_chain(torch, length)
        print(f"  the same in PyTorch: {build:.2f} s, {differentiate:.2f} s, {free:.2f} s")
    held, left = graph_memory(length)
    print(f"  {held / length:.0f} bytes per operation while held, {left:,} bytes left when freed")


if __name__ == "__main__":
    main()
