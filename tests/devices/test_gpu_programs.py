"""What ``make gpu-programs`` reads in the text of a program."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from gpu_programs import kernels_of

STEP = """HloModule jit_step

%sums (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

%fused_part (param_0: f32[100,4], param_1: s32[]) -> f32[4] {
  %param_0 = f32[100,4]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %part = f32[1,4]{1,0} dynamic-slice(%param_0, %param_1), dynamic_slice_sizes={1,4}
  ROOT %row = f32[4]{0} bitcast(%part)
}

%body (state: (s32[], f32[100,4], f32[4])) -> (s32[], f32[100,4], f32[4]) {
  %state = (s32[], f32[100,4]{1,0}, f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[100,4]{1,0} get-tuple-element(%state), index=1
  %before = f32[4]{0} get-tuple-element(%state), index=2
  %row.1 = f32[4]{0} fusion(%x, %i), calls=%fused_part, metadata={op_name="jit(f)/slice"}
  %pair = (f32[4]{0}, pred[]) custom-call(%row.1, %before), custom_call_target="f"
  %next = s32[] add(%i, %i)
  %after = f32[4]{0} get-tuple-element(%pair), index=0
  ROOT %out = (s32[], f32[100,4]{1,0}, f32[4]{0}) tuple(%next, %x, %after)
}

ENTRY %main (x: f32[100,4], y: f32[4]) -> f32[4] {
  %x.2 = f32[100,4]{1,0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %zero = s32[] constant(0)
  %begin = (s32[], f32[100,4]{1,0}, f32[4]{0}) tuple(%zero, %x.2, %y)
  %end = (s32[], f32[100,4]{1,0}, f32[4]{0}) while(%begin), condition=%less, body=%body
  ROOT %last = f32[4]{0} get-tuple-element(%end), index=2
}
"""


def test_kernels_are_those_of_a_step_in_the_loop() -> None:
    """A row that is taken of an array is what is read of it."""
    kernels = kernels_of(STEP)
    assert [(k.kind, k.nbytes, k.made_of) for k in kernels] == [
        ("fusion", 16 + 16 + 4, "jit(f)/slice"),
        ("custom-call", 16 + 1 + 16 + 16, ""),
        ("add", 3 * 4, ""),
    ]


def test_a_loop_inside_of_a_step_is_one_kernel() -> None:
    longer = STEP.replace(
        "  %zero", "".join([f"  %n{i} = f32[4]{{0}} negate(%y)\n" for i in range(9)]) + "  %zero"
    )
    assert [k.kind for k in kernels_of(longer)] == [*["negate"] * 9, "while"]
