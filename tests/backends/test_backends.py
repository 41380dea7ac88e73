"""Switches of libraries that are not called: they hold what is set."""

from __future__ import annotations

import pytest

import chainrule as torch
from chainrule import backend, backends


def test_what_is_there() -> None:
    found = [
        backends.cudnn.is_available(),
        backends.mps.is_available(),
        backends.mps.is_built(),
        backends.cuda.is_built(),
        backends.mkl.is_available(),
        backends.mkldnn.is_available(),
        backends.openmp.is_available(),
        backends.opt_einsum.is_available(),
        backends.cuda.is_flash_attention_available(),
    ]
    assert not any(found)
    assert backends.cudnn.version() is None
    assert not backends.cudnn.is_acceptable(torch.ones(1))
    assert backends.quantized.supported_engines == ["none"]


def test_switches_of_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("benchmark", "deterministic", "enabled", "allow_tf32"):
        monkeypatch.setattr(torch.backends.cudnn, name, True)
        assert getattr(backends.cudnn, name) is True
    with backends.cudnn.flags(enabled=False, deterministic=False):
        assert not backends.cudnn.deterministic
        assert not backends.cudnn.enabled
        assert not backends.cudnn.benchmark
    assert backends.cudnn.deterministic
    assert backends.cudnn.benchmark


def test_switches_of_others() -> None:
    assert backends.cuda.matmul.allow_tf32 is False
    backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32 is True
    backends.cuda.matmul.allow_tf32 = False
    with backends.cuda.sdp_kernel(enable_flash=False):
        assert not backends.cuda.flash_sdp_enabled()
        assert backends.cuda.math_sdp_enabled()
    assert backends.cuda.flash_sdp_enabled()
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        enable, enabled = (
            getattr(backends.cuda, f"enable_{name}_sdp"),
            getattr(backends.cuda, f"{name}_sdp_enabled"),
        )
        enable(False)
        assert not enabled()
        enable(True)
    with backends.mkldnn.flags(enabled=False, deterministic=True):
        assert (backends.mkldnn.enabled, backends.mkldnn.deterministic) == (False, True)
    assert (backends.mkldnn.enabled, backends.mkldnn.deterministic) == (True, False)
    backends.mha.set_fastpath_enabled(False)
    assert not backends.mha.get_fastpath_enabled()
    backends.mha.set_fastpath_enabled(True)


def test_the_processor() -> None:
    native = backend.native_module()
    expected = "DEFAULT" if native is None else native.get_isa().upper()
    assert backends.cpu.get_cpu_capability() == expected


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(RuntimeError, match="does not call opt_einsum"):
        backends.opt_einsum.set_flags(True)
    with pytest.raises(RuntimeError, match="uses no GPU"):
        backends.mps.get_name()
    with pytest.raises(AttributeError, match="'xnnpack': chainrule does not call this library"):
        backends.xnnpack  # noqa: B018
