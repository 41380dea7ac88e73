"""``cpu``: the one device there is."""

from __future__ import annotations

import pytest

from chainrule import absent, cpu


def test_the_one_device() -> None:
    assert cpu.is_available()
    assert cpu.is_initialized()
    assert cpu.device_count() == 1
    assert cpu.current_device() == "cpu"
    cpu.set_device("cpu")
    cpu.synchronize()


def test_queues_are_empty() -> None:
    stream = cpu.current_stream()
    assert isinstance(stream, cpu.Stream)
    with cpu.stream(stream):
        stream.synchronize()
        stream.wait_stream(cpu.Stream())
    with pytest.raises(RuntimeError, match="perf_counter"):
        cpu.Event()


def test_mixed_precision_under_its_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())
    with pytest.warns(UserWarning, match="nothing is computed in 16 bits"), cpu.amp.autocast():
        pass
    assert cpu.amp.GradScaler().is_enabled()
