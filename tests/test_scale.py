"""The model of costs on many devices, and the page that it writes (``docs/scale.md``)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scale import GPT, H200, RESNET50, best, plan, reduced_bytes, table

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text("utf-8")


def test_networks_have_the_sizes_that_are_published() -> None:
    assert RESNET50.parameters == 25_557_032
    assert RESNET50.forward / 2 == pytest.approx(4.09e9, rel=0.01)
    assert GPT.parameters == 124_439_808


def test_one_device_sends_nothing() -> None:
    alone = plan(RESNET50, 256, 1)
    assert (alone.gradients, alone.inside, alone.sent) == (0, 0, 0)
    assert alone.apart == alone.together == alone.compute


def test_gradients_of_a_ring() -> None:
    two, many = (plan(RESNET50, 8 * n, n) for n in (2, 1024))
    assert two.sent == 4 * RESNET50.parameters
    assert many.sent == pytest.approx(8 * RESNET50.parameters, rel=0.01)
    assert many.gradients > two.gradients
    assert plan(GPT, 64, 8, 2).sent < plan(GPT, 64, 8).sent


def test_weights_are_cut_where_a_batch_has_too_few_samples() -> None:
    assert best(RESNET50, 2048, 8).model == 1
    assert best(GPT, 512, 1024).model > 1
    assert best(GPT, 4, 8).data <= 4
    with pytest.raises(ValueError, match=r"a batch of 4 is too small or too large for 1024"):
        best(RESNET50, 4, 1024)
    with pytest.raises(ValueError, match="too large"):
        best(RESNET50, 256, 1, replace(H200, memory=1e9))


def test_bytes_of_a_program() -> None:
    text = """
      %all-reduce.1 = (f32[3,4]{1,0}, f32[]) all-reduce(%a, %b), channel_id=1
      ROOT %all-reduce = bf16[8]{0} all-reduce-start(%c), channel_id=2
      %add = f32[100]{0} add(%all-reduce.1, %d)
    """
    assert reduced_bytes(text) == 48 + 4 + 16
