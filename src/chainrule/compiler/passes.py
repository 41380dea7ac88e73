"""What a record says twice, or for nobody, is left out; the results keep their bits."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.compiler.arithmetic import EXACT
from chainrule.compiler.program import Instruction, Program, Ref, map_arrays, refs_in

__all__ = ["drop_unused", "reuse_equal", "use_squares"]


_NEVER_FAIL = {
    *("copy", "owned", "spread", "sum", "mean", "sum_to", "square", "sqrt"),
    *("exp", "log", "tanh", "sigmoid", "relu", "softplus"),
}


def use_squares(program: Program) -> None:
    """Has powers of 2 be squares: the same bits, and the kernel needs not look at the exponent."""
    for step in program.instructions:
        if step.kernel != "pow" or step.kwargs or len(step.args) != 2:
            continue
        a, exponent = step.args
        slot = program.slots[exponent.slot] if isinstance(exponent, Ref) else None
        if not isinstance(a, Ref) or slot is None or slot.kind != "constant" or slot.shape:
            continue
        dtype = program.slots[a.slot].dtype
        if dtype.kind == "f" and slot.dtype == dtype and slot.value == 2:
            step.kernel, step.function, step.args = "square", K.square, (a,)


def reuse_equal(program: Program) -> None:
    """Has what is computed twice from the same values be computed once."""
    handed_out = _handed_out(program)
    versions: dict[int, int] = {}  # of roots, how often they were written to
    known: dict[Any, Instruction] = {}
    instead: dict[int, int] = {}  # slots by what takes their place
    left = []
    for step in program.instructions:
        step.args, step.kwargs = _replaced((step.args, step.kwargs), instead)
        if step.effect in ("writes", "python"):
            for root in map(program.root, step.reads()):
                versions[root] = versions.get(root, 0) + 1
        first = None
        if step.effect == "pure" and all([_is_free(program, s, handed_out) for s in step.makes()]):
            of = [versions.get(program.root(s), 0) for s in step.reads()]
            name = EXACT.get(step.kernel, step.kernel)
            given = step.precision(), _key(step.args), _key(step.kwargs)
            first = known.setdefault((name, *given, *of), step)
        if first is None or first is step or not _alike(program, first, step):
            left.append(step)
            continue
        instead.update(zip(step.makes(), first.makes(), strict=True))
        program.reused += 1
        _move_views(program, instead)
    program.instructions = left


def _handed_out(program: Program) -> set[int]:
    slots = [*refs_in(program.result), *[s for _, s in program.grads]]
    return {program.root(s) for s in slots}


def _is_free(program: Program, slot: int, handed_out: set[int]) -> bool:
    """Whether it makes no difference which array has the value."""
    made = program.slots[slot]
    return made.kind == "made" and not made.written and slot not in handed_out


def _alike(program: Program, a: Instruction, b: Instruction) -> bool:
    pairs = zip(a.makes(), b.makes(), strict=False)
    forms = [program.slots[x].form() == program.slots[y].form() for x, y in pairs]
    return len([*a.makes()]) == len([*b.makes()]) and all(forms)


def _replaced(tree: Any, instead: dict[int, int]) -> Any:
    return map_arrays(tree, Ref, lambda r: Ref(instead.get(r.slot, r.slot)))


def _move_views(program: Program, instead: dict[int, int]) -> None:
    """Has views of a value that is gone be views of what takes its place."""
    for slot in program.slots:
        if slot.kind == "view":
            slot.base = instead.get(slot.base, slot.base)


def _key(tree: Any) -> Any:
    """What tells arguments apart, types and signs of zero included."""
    if isinstance(tree, (list, tuple)):
        return type(tree), *map(_key, tree)
    if isinstance(tree, dict):
        return tuple([(k, _key(v)) for k, v in sorted(tree.items())])
    if isinstance(tree, Ref):
        return tree
    if isinstance(tree, (int, float, complex, str, type(None))):
        return type(tree), repr(tree)
    return type(tree), id(tree)


def drop_unused(program: Program) -> None:
    """Leaves out what nothing and nobody reads.

    Kernels that may have an error to raise stay.
    """
    used = _handed_out(program)
    left = []
    for step in reversed(program.instructions):
        made = {program.root(s) for s in step.makes()}
        if (step.kernel in EXACT or step.kernel in _NEVER_FAIL) and made.isdisjoint(used):
            program.unused += 1
            continue
        used.update([program.root(s) for s in step.reads()])
        left.append(step)
    program.instructions = left[::-1]
