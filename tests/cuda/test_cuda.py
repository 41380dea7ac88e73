"""``cuda`` without a GPU: questions are answered, the rest refuses by a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule as torch
from chainrule import absent, cuda


def test_there_is_no_gpu() -> None:
    assert not cuda.is_available()
    assert not cuda.is_initialized()
    assert not cuda.is_bf16_supported()
    assert not cuda.is_current_stream_capturing()
    assert cuda.device_count() == 0
    assert cuda.get_arch_list() == []
    assert torch.version.cuda is None
    assert torch.device("cuda" if cuda.is_available() else "cpu").type == "cpu"


def test_seeds_of_no_gpu_leave_the_cpu_alone() -> None:
    torch.manual_seed(0)
    a = torch.rand(3)
    torch.manual_seed(0)
    cuda.manual_seed(1)
    cuda.manual_seed_all(1)
    cuda.seed()
    cuda.seed_all()
    assert torch.equal(torch.rand(3), a)
    assert cuda.get_rng_state_all() == []
    cuda.set_rng_state_all([])
    with pytest.raises(RuntimeError, match="state was given for a GPU"):
        cuda.set_rng_state_all([torch.get_rng_state()])


def test_no_memory_is_used() -> None:
    cuda.synchronize()
    cuda.empty_cache()
    cuda.ipc_collect()
    cuda.reset_peak_memory_stats()
    sizes = [
        cuda.memory_allocated(),
        cuda.max_memory_allocated(0),
        cuda.memory_reserved(),
        cuda.max_memory_reserved(),
        cuda.memory_cached(),
    ]
    assert sizes == [0] * 5
    assert cuda.memory_stats() == {}
    assert issubclass(cuda.OutOfMemoryError, RuntimeError)


@pytest.mark.parametrize("place", [None, -1, torch.device("cpu")])
def test_no_place_changes_nothing(place: Any) -> None:
    cuda.set_device(-1)
    with cuda.device(place):
        pass
    with cuda.device_of(torch.ones(2)), cuda.stream(None):
        pass


REFUSED: dict[str, Callable[[], Any]] = {
    "set_device": lambda: cuda.set_device(0),
    "set_device by name": lambda: cuda.set_device("cuda:1"),
    "device": lambda: cuda.device(0).__enter__(),
    "get_device_name": lambda: cuda.get_device_name(0),
    "get_device_properties": lambda: cuda.get_device_properties(0),
    "current_device": lambda: cuda.current_device(),
    "Stream": lambda: cuda.Stream(),
    "Event": lambda: cuda.Event(enable_timing=True),
    "CUDAGraph": lambda: cuda.CUDAGraph(),
    "FloatTensor": lambda: cuda.FloatTensor(2, 3),
    "mem_get_info": lambda: cuda.mem_get_info(),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_needs_a_gpu_says_so(call: Callable[[], Any]) -> None:
    words = (
        r"ask cuda.is_available\(\) first|compile records|'cuda' is not available; tensors live on"
    )
    with pytest.raises(RuntimeError, match=words):
        call()


def test_classes_can_be_asked_for() -> None:
    assert not isinstance(torch.ones(2), cuda.FloatTensor)


def test_absent_names_say_why() -> None:
    with pytest.raises(AttributeError, match="chainrule.cuda' has no attribute 'nvtx'.*CUDA's own"):
        cuda.nvtx  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'is_avaliable'$"):
        cuda.is_avaliable  # noqa: B018
    assert not hasattr(cuda, "nvtx")


def test_mixed_precision_under_its_old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())
    with pytest.warns(UserWarning, match="autocast: nothing is computed in 16 bits"):
        block = cuda.amp.autocast()
    assert block.device == "cuda"
    with pytest.warns(UserWarning, match="'cuda' is not available, so nothing is scaled"):
        scaler = cuda.amp.GradScaler()
    assert not scaler.is_enabled()
    assert cuda.amp.amp_definitely_not_available()


def test_decorators_of_functions_pass_through() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        @cuda.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        @cuda.amp.custom_bwd
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(1, requires_grad=True)
    Double.apply(x).backward()
    assert x.grad.tolist() == [2]
