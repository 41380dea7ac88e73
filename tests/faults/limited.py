"""A program under limits of threads. Prints what it computed, or that a limit cannot be set.

``python limited.py LIMIT`` sets the limit before NumPy is loaded: ``EAGAIN`` or ``EPERM`` (a filter
of system calls refuses threads with this error), ``nproc``, ``cgroup`` (``pids.max``), ``memory``
or ``none``. With several limits each is set in a process that was forked after all is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import platform
import resource
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the system call
CLONE3, CLONE_THREAD = 435, 0x10000
REFUSE, ALLOW = 0x00050000, 0x7FFF0000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06


class CannotLimit(Exception):
    """The system has no such limit, or does not let this process set it."""


def filter_system_calls(code: int) -> None:
    """Refuses threads with an error, and lets processes be made."""
    if sys.platform != "linux" or platform.machine() not in CLONE:
        raise CannotLimit("no filter is written for this system")
    program = [
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),  # the C library then tries clone
        (EQUAL, 0, 3, CLONE[platform.machine()]),
        (LOAD, 0, 0, 16),  # the flags
        (ANY_BIT, 0, 1, CLONE_THREAD),
        (RETURN, 0, 0, REFUSE | code),
        (RETURN, 0, 0, ALLOW),
    ]
    steps = ctypes.create_string_buffer(b"".join([struct.pack("HBBI", *step) for step in program]))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0):
        raise CannotLimit(f"prctl: {os.strerror(ctypes.get_errno())}")


def limit_processes() -> None:
    """No thread beside those of now; the limit does not hold for root."""
    if os.getuid() == 0:
        try:
            os.setgid(54321)
            os.setuid(54321)
        except OSError as error:
            raise CannotLimit(f"setuid: {error}") from None
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


def limit_group() -> None:
    """No thread beside those of now, by a control group of this process."""
    roots = [Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")]
    root = next((r for r in roots if (r / "cgroup.procs").exists()), roots[0])
    group = root / f"chainrule-limited-{os.getpid()}"
    try:
        group.mkdir()
        UNDO.append(group.rmdir)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        UNDO.append(lambda: (root / "cgroup.procs").write_text(str(os.getpid())))
        (group / "pids.max").write_text("1")
    except OSError as error:
        undo()
        raise CannotLimit(f"control groups: {error}") from None


UNDO: list[Callable[[], object]] = []


def undo() -> None:
    """What a limit left in the system is taken away."""
    while UNDO:
        UNDO.pop()()


def limit_memory() -> None:
    """Room for what is computed here, and for a few stacks of threads."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + (160 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


LIMITS = {
    "none": lambda: None,
    "EAGAIN": lambda: filter_system_calls(errno.EAGAIN),
    "EPERM": lambda: filter_system_calls(errno.EPERM),
    "nproc": limit_processes,
    "cgroup": limit_group,
    "memory": limit_memory,
}


def can_start_a_thread() -> bool:
    """Whether Python can."""
    with contextlib.suppress(RuntimeError):
        threading.Thread(target=int).start()
        return True
    return False


def compute() -> str:
    """A convolution and its gradients, an elementwise function, a softmax, an update, as a digest;
    products and a factorization, which BLAS and LAPACK compute."""
    import chainrule
    from chainrule import nn, optim

    chainrule.manual_seed(0)
    x = chainrule.rand(16, 3, 24, 24, requires_grad=True)
    w = nn.Parameter(chainrule.rand(8, 3, 3, 3))
    y = nn.functional.conv2d(x, w).tanh().softmax(1)
    (y * y).sum().backward()
    big = nn.Parameter(chainrule.rand(300_000))
    big.exp().mean().backward()
    optim.Adam([w, big]).step()
    whole = chainrule.ones(300, 300, dtype=chainrule.float64)
    assert bool((whole @ whole == 300).all())
    assert bool((chainrule.linalg.solve_triangular(whole, whole[:, :1], upper=True) <= 1).all())
    digest = hashlib.sha256()
    for t in (y, x.grad, w, w.grad, big, big.grad):
        digest.update(t.detach().numpy().tobytes())
    return digest.hexdigest()


def in_child(function: Callable[[], Any]) -> Any:
    """What a function returns in a forked process, or its error."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = function()
        except BaseException:  # noqa: BLE001 (it is told, and the process ends in any case)
            answer = {"errors": traceback.format_exc()}
        os.write(theirs, json.dumps(answer).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as file:
        found = file.read()
    os.waitpid(pid, 0)
    return json.loads(found or '{"errors": "the process died"}')


def loaded() -> list[int]:
    """What a worker process reads; requests and answers are larger than a pipe holds."""
    import numpy as np

    from chainrule import data

    batches = data.DataLoader(
        range(400_000),  # type: ignore[arg-type]
        batch_size=100_000,
        num_workers=1,
        collate_fn=np.array,
    )
    return [int(batch.sum()) for batch in batches]


def outcome(limit: str) -> dict[str, Any]:
    """Sets the limit and computes."""
    try:
        LIMITS[limit]()
    except CannotLimit as error:
        return {"skip": str(error)}
    try:
        return computed(processes=limit not in ("nproc", "cgroup"))  # which refuse these, too
    finally:
        undo()


def computed(*, processes: bool) -> dict[str, Any]:
    """All that is compared, by name."""
    import chainrule

    out: dict[str, Any] = {"threads": can_start_a_thread()}
    chainrule.set_num_threads(16)
    out |= {"here": compute(), "again": compute()}
    if processes:
        out |= {"child": in_child(compute), "after": compute(), "loaded": loaded()}
    return out


def main(limits: list[str]) -> None:
    """Prints what came out under each limit."""
    if len(limits) == 1:
        print(json.dumps({limits[0]: outcome(limits[0])}))
        return
    compute()  # loads all that is needed
    print(json.dumps({limit: in_child(functools.partial(outcome, limit)) for limit in limits}))


if __name__ == "__main__":
    main(sys.argv[1:])
