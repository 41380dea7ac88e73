"""What several processes compute of arrays, in threads that stand for them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chainrule.backend.processes import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from chainrule.backend.processes.mail import Mailbox
from chainrule.backend.processes.meeting import free_port, meet
from chainrule.backend.processes.messages import listen, read_message, send_message

from distributed.threads import Thread, together

COUNTS = [1, 2, 3, 5]


def data(rank: int, dtype: str, size: int = 12) -> Any:
    r = np.random.default_rng(rank)
    if dtype == "bool":
        return r.random(size) < 0.5
    if dtype.startswith("complex"):
        return (r.normal(size=size) + 1j * r.normal(size=size)).astype(dtype)
    if dtype.startswith(("int", "uint")):
        return r.integers(0, 5, size).astype(dtype)
    return r.normal(size=size).astype(dtype)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("size", [0, 1, 12, 50_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool", "complex64"])
def test_sums_are_numpys_in_the_order_of_ranks(count: int, size: int, dtype: str) -> None:
    found = together(count, lambda t: t("all_reduce", data(t.world.rank, dtype, size), "sum"))
    expected = data(0, dtype, size)
    for rank in range(1, count):
        expected = expected + data(rank, dtype, size)
    for array in found:
        np.testing.assert_array_equal(array, expected)
        assert array.dtype == dtype


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("product", "float64", lambda a: a[0] * a[1] * a[2]),
        ("min", "float32", lambda a: np.min(a, 0)),
        ("max", "int32", lambda a: np.max(a, 0)),
        ("avg", "float64", lambda a: (a[0] + a[1] + a[2]) / 3),
        ("band", "int16", lambda a: a[0] & a[1] & a[2]),
        ("bor", "bool", lambda a: a[0] | a[1] | a[2]),
        ("bxor", "uint8", lambda a: a[0] ^ a[1] ^ a[2]),
    ],
)
def test_other_reductions(op: str, dtype: str, expected: Callable[[Any], Any]) -> None:
    arrays = [data(r, dtype) for r in range(3)]
    for array in together(3, lambda t: t("all_reduce", arrays[t.world.rank], op)):
        np.testing.assert_array_equal(array, expected(arrays))
    found = together(3, lambda t: t("reduce", arrays[t.world.rank], op, 1))
    assert found[0] is None
    assert found[2] is None
    np.testing.assert_array_equal(found[1], expected(arrays))


def test_numbers_of_16_bits_are_rounded_once() -> None:
    arrays = [np.array([x], "float16") for x in (2048, 1, 1)]
    assert together(3, lambda t: t("all_reduce", arrays[t.world.rank], "sum"))[0] == [2050]


def test_a_matrix_that_is_not_contiguous() -> None:
    a = np.arange(20_000.0).reshape(100, 200).T
    np.testing.assert_array_equal(together(2, lambda t: t("all_reduce", a, "sum"))[1], 2 * a)


@pytest.mark.parametrize("count", COUNTS)
def test_arrays_go_where_they_belong(count: int) -> None:
    def program(t: Thread) -> None:
        rank, last = t.world.rank, count - 1
        own = np.full((2, 3), rank)
        for source in range(count):
            assert (t("broadcast", own, source) == source).all()
        assert [a[0, 0] for a in t("all_gather", own)] == list(range(count))
        gathered = t("gather", own, last)
        assert gathered is None if rank != last else [a[0, 0] for a in gathered] == [*range(count)]
        mine = [np.array([10 * rank + i]) for i in range(count)]
        assert t("scatter", mine if rank == last else None, mine[0], last) == 10 * last + rank
        others = t("all_to_all", mine, mine)
        assert [int(a[0]) for a in others] == [10 * i + rank for i in range(count)]
        summed = t("reduce_scatter", mine, mine[0], "sum")
        assert summed == sum(10 * i + rank for i in range(count))
        assert t("all_gather_bytes", b"x" * rank) == [b"x" * i for i in range(count)]
        assert t("broadcast_bytes", b"y" * rank, last) == b"y" * last
        t("send", np.array([rank]), (rank + 1) % count, tag=7)
        source, array = t("receive", np.array([0]), [(rank - 1) % count], tag=7)
        assert source == array == (rank - 1) % count

    together(count, program)


@pytest.mark.parametrize("count", COUNTS)
def test_nobody_passes_a_barrier_before_all_have_come(count: int) -> None:
    come: list[float] = []
    passed: list[float] = []

    def program(t: Thread) -> None:
        time.sleep(0.05 * t.world.rank)
        come.append(time.monotonic())
        t("barrier")
        passed.append(time.monotonic())

    together(count, program)
    assert max(come) <= min(passed)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (("barrier",), ("all_gather", np.ones(2)), "process 1 called all_gather where process 0"),
        (("all_gather", np.ones(2)), ("all_gather", np.ones(3)), r"float64\[3\].*float64\[2\]"),
        (("all_gather", np.ones(2)), ("all_gather", np.ones(2, int)), r"int64\[2\].*one dtype"),
    ],
)
def test_calls_that_do_not_fit(first: Any, second: Any, message: str) -> None:
    def program(t: Thread) -> None:
        if t.world.rank:
            t(*second)
        else:
            with pytest.raises(DistBackendError, match=message):
                t(*first)
            raise DistError("as expected")

    with pytest.raises(DistError):
        together(2, program, 1.0)


@pytest.mark.parametrize(
    ("op", "dtype"), [("avg", "int64"), ("max", "complex64"), ("bor", "float32"), ("avg", "bool")]
)
def test_reductions_that_have_no_meaning(op: str, dtype: str) -> None:
    with pytest.raises(DistError, match=f"ReduceOp.{op.upper()} is not defined for {dtype}"):
        together(1, lambda t: t("all_reduce", data(0, dtype), op))


def test_who_does_not_come_is_named() -> None:
    def program(t: Thread) -> None:
        if t.world.rank == 0:
            with pytest.raises(DistBackendError, match=r"waited 0.2 s for process 1.*same calls"):
                t("all_gather", np.ones(1))
            with pytest.raises(DistBackendError, match="process 1, 2 has not come to it"):
                t("monitored_barrier", True)

    together(3, program, 0.2)


def test_who_has_left_is_not_waited_for() -> None:
    def program(t: Thread) -> None:
        if t.world.rank == 0:
            t.world.mailbox.left(1)
            t.world.mailbox._left[1] -= 10
            with pytest.raises(DistNetworkError, match="process 1 has left"):
                t("all_gather", np.ones(1))
            t.world.mailbox.lost("process 1 is gone")
            with pytest.raises(DistNetworkError, match="all_gather: process 1 is gone"):
                t("all_gather", np.ones(1))

    together(2, program)


# --- finding each other ---------------------------------------------------------------------------


def test_processes_that_do_not_come_are_named() -> None:
    port = free_port("127.0.0.1")
    with pytest.raises(DistStoreError, match=r"1 of 3 .* within 0.2 s; missing: 1, 2\. .*RANK"):
        meet("127.0.0.1", port, 0, 3, 0.2)
    with pytest.raises(DistNetworkError, match=r"process 1 has reached nobody .*MASTER_PORT"):
        meet("127.0.0.1", port, 1, 3, 0.2)


def both(ranks: tuple[int, int], sizes: tuple[int, int]) -> list[Exception]:
    """The errors of two processes that meet with these numbers."""
    port, errors = free_port("127.0.0.1"), []

    def run(i: int) -> None:
        with pytest.raises(DistStoreError) as error:
            meet("127.0.0.1", port, ranks[i], sizes[i], 1)
        errors.append(error.value)

    threads = [threading.Thread(target=run, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_all_are_told_that_sizes_differ() -> None:
    errors = both((0, 1), (3, 2))
    assert len(errors) == 2
    for error in errors:
        assert "started for 2 processes and process 0 for 3; give all the same WORLD" in str(error)


def test_a_port_that_is_taken() -> None:
    with listen("127.0.0.1") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DistNetworkError, match=f"port {port} of 127.0.0.1 is taken .*free one"):
            meet("127.0.0.1", port, 0, 2, 1)


def test_strangers_do_not_disturb() -> None:
    port = free_port("127.0.0.1")
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda r=rank: found.append(meet("127.0.0.1", port, r, 2, 10)))
        for rank in (0, 1)
    ]
    threads[0].start()
    while True:
        try:
            stranger = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionError:
            time.sleep(0.01)
    with stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        threads[1].start()
        for thread in threads:
            thread.join()
    assert sorted(m.rank for m in found) == [0, 1]
    for meeting in found:
        for opened in (meeting.server, *meeting.lines.values()):
            opened.close()


def test_a_mailbox_takes_nothing_from_who_does_not_know_the_secret() -> None:
    server = listen("127.0.0.1")
    address = ("127.0.0.1", server.getsockname()[1])
    mailbox = Mailbox(0, [address, address], "secret", server)
    for secret, kept in (("guessed", False), ("secret", True)):
        with socket.create_connection(address) as line:
            send_message(line, {"rank": 1, "secret": secret})
            send_message(line, {"key": "k", "name": "send"}, b"data")
            if kept:
                end = time.monotonic() + 5
                assert mailbox.receive([1], "k", "send", end, 5).body == b"data"
            else:
                with pytest.raises((EOFError, ConnectionError)):
                    read_message(line)
                assert not mailbox._kept
    mailbox.close()
