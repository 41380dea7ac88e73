"""The instruction set of the compiled kernels, chosen by CHAINRULE_ISA."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from chainrule import backend
from chainrule.backend import instructions

compiled = pytest.mark.skipif(bool(backend.why_not_native), reason="no compiled kernels")


class Older:
    """The compiled module on a processor without AVX-512."""

    def __init__(self) -> None:
        self.isa = "avx2"

    def get_isa(self) -> str:
        return self.isa

    def set_isa(self, name: str) -> bool:
        found = name in ("baseline", "avx2")
        self.isa = name if found else self.isa
        return found


def info(isa: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CHAINRULE_ISA": isa, "CHAINRULE_KERNELS": "native"}
    code = [sys.executable, "-m", "chainrule", "info"]
    return subprocess.run(code, env=env, capture_output=True, text=True, check=False)


@compiled
def test_chosen_when_the_module_is_loaded() -> None:
    found = info("baseline")
    assert found.returncode == 0, found.stderr
    assert "vectors   baseline (CHAINRULE_ISA=baseline; available: baseline" in found.stdout


@compiled
def test_an_empty_variable_is_none() -> None:
    assert "(the default; available: baseline" in info("").stdout


@compiled
def test_an_unknown_name() -> None:
    found = info("sse9")
    assert found.returncode != 0
    wanted = "CHAINRULE_ISA=sse9: no such instruction set; set it to one of baseline, avx2, avx512"
    assert wanted in found.stderr


def test_a_set_that_the_processor_does_not_have() -> None:
    older = Older()
    with pytest.raises(ValueError, match="CHAINRULE_ISA=avx512: this processor has no avx512; set"):
        instructions.choose(older, "avx512")
    assert older.get_isa() == "avx2"
    instructions.choose(older, None)
    assert older.get_isa() == "avx2"
    instructions.choose(older, "baseline")
    assert older.get_isa() == "baseline"
    assert instructions.supported(older) == ["baseline", "avx2"]
    assert older.get_isa() == "baseline"


def test_without_compiled_kernels() -> None:
    with pytest.raises(ValueError, match=r"there are none: not built; unset it"):
        instructions.refuse("avx2", "not built")
    with pytest.raises(ValueError, match="no such instruction set"):
        instructions.refuse("AVX2", "not built")
    instructions.refuse(None, "not built")
    instructions.refuse("", "not built")
