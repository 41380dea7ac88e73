"""What is refused, and said, before several processes are started."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import chainrule
from chainrule import distributed as dist
from chainrule.backend import processes

VARIABLES = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def with_jax(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """As if JAX were there; the places at which processes would meet."""
    asked: list[tuple[Any, ...]] = []

    def start(*given: Any) -> None:
        asked.append(given)
        raise InterruptedError

    monkeypatch.setattr(processes, "check_installed", lambda: None)
    monkeypatch.setattr(processes, "start", start)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return asked


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.backend.processes.joining.find_spec", lambda name: None)
    assert not dist.is_available()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'chainrule\[xla\]'"):
        dist.init_process_group()


def test_alone_without_a_group() -> None:
    assert not dist.is_initialized()
    assert dist.is_writer()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_pg_count()) == (0, 1, 0)
    assert dist.group.WORLD is None
    assert dist.get_rank(dist.GroupMember.NON_GROUP_MEMBER) == -1
    x = chainrule.ones(1)
    calls: list[Callable[[], Any]] = [
        dist.barrier,
        dist.destroy_process_group,
        dist.get_backend,
        dist.new_group,
        lambda: dist.all_reduce(x),
        lambda: dist.send(x, 1),
        lambda: dist.all_gather_object([None], 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"has not been initialized.*chainrule launch"):
            call()


def test_the_number_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not set; start .* `chainrule launch`"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert dist.get_node_local_rank(3) == 1


@pytest.mark.parametrize("missing", VARIABLES)
def test_variables_that_are_missing(
    missing: str, with_jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(missing)
    with pytest.raises(ValueError, match=rf"variable {missing} expected.*chainrule launch"):
        dist.init_process_group()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RANK", "2", "rank=2 is outside the world: with WORLD_SIZE=2 ranks are 0 to 1"),
        ("RANK", "one", "RANK='one' is not a whole number"),
        ("WORLD_SIZE", "0", "world_size=0: there is at least one"),
        ("MASTER_PORT", "0", "MASTER_PORT=0 is not from 1 to 65535"),
        ("LOCAL_RANK", "x", "LOCAL_RANK='x' is not a whole number"),
    ],
)
def test_variables_that_are_wrong(
    name: str, value: str, message: str, with_jax: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        dist.init_process_group()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"backend": "mpi"}, ValueError, "backend='mpi' is not one of 'gloo'"),
        ({"backend": 3}, TypeError, "backend is to be a string"),
        ({"init_method": "file:///x"}, ValueError, "there is no meeting by files"),
        ({"init_method": "tcp://x"}, ValueError, "is not like 'tcp://host:port'"),
        ({"init_method": "tcp://x:1"}, ValueError, "needs RANK, WORLD_SIZE"),
        ({"timeout": 3}, TypeError, "datetime.timedelta, got 3"),
        ({"timeout": timedelta(0)}, ValueError, "over before it begins"),
        ({"store": object()}, NotImplementedError, "store=<object"),
        ({"pg_options": 1}, NotImplementedError, "pg_options=1"),
    ],
)
def test_bad_arguments(
    given: dict[str, Any], error: type[Exception], message: str, with_jax: Any
) -> None:
    with pytest.raises(error, match=message):
        dist.init_process_group(**given)


@pytest.mark.parametrize(
    ("variables", "given", "expected"),
    [
        ({}, {}, ("127.0.0.1", 29500, 0, 2, 0, None, (300.0, 1800.0))),
        ({}, {"rank": 3, "world_size": 4}, ("127.0.0.1", 29500, 3, 4, 0, None, (300.0, 1800.0))),
        (
            {},
            {"init_method": "tcp://h:5", "rank": 1, "world_size": 2, "timeout": timedelta(0, 9)},
            ("h", 5, 1, 2, 0, None, (9.0, 9.0)),
        ),
        (
            {"LOCAL_RANK": "1", "CHAINRULE_START_TIMEOUT": "7"},
            {},
            ("127.0.0.1", 29500, 0, 2, 1, [1], (7.0, 1800.0)),
        ),
        (
            {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"},
            {},
            ("127.0.0.1", 29500, 0, 2, 0, None, (300.0, 1800.0)),
        ),
        (
            {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "CUDA_VISIBLE_DEVICES": "5"},
            {},
            ("127.0.0.1", 29500, 0, 2, 1, None, (300.0, 1800.0)),
        ),
        (
            {"TORCHELASTIC_USE_AGENT_STORE": "True"},
            {"device_id": 3},
            ("127.0.0.1", 29501, 0, 2, 0, [3], (300.0, 1800.0)),
        ),
    ],
)
def test_where_processes_meet(
    variables: dict[str, str],
    given: dict[str, Any],
    expected: tuple[Any, ...],
    with_jax: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InterruptedError):
        dist.init_process_group(**given)
    assert with_jax == [expected]


def test_more_processes_than_gpus(with_jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ValueError, match="LOCAL_RANK=2, but CUDA_VISIBLE_DEVICES=0,1 has 2 GPUs"):
        dist.init_process_group()
