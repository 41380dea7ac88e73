"""A trace as parts: calls of modules, and the operations that run between them."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from typing import Any

from chainrule.inspect.core.arguments import tensors
from chainrule.inspect.core.tracing import Call, Operation, Trace
from chainrule.inspect.structure.blocks import Block, Line
from chainrule.inspect.structure.folding import folded
from chainrule.inspect.structure.parts import Part
from chainrule.inspect.structure.texts import MINUS, TIMES, shortened, wrapped
from chainrule.inspect.structure.values import class_name, shape_text, value_text
from chainrule.nn.module.base import Module
from chainrule.tensor import Tensor

__all__ = ["Reader", "named"]

SIGNS = {"add": "+", "sub": MINUS, "mul": TIMES, "div": "/", "neg": MINUS}
SMALL, SOFT = 11.0, "#555"
ERROR_WIDTH, ERROR_LINES = 330.0, 4


def named(tree: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors in nested values, each by how one gets at it."""
    if isinstance(tree, Tensor):
        return [(name, tree)]
    if isinstance(tree, dict):
        inner = [named(v, f"{name}.{k}" if name else str(k)) for k, v in tree.items()]
        return [pair for found in inner for pair in found]
    if isinstance(tree, (tuple, list)):
        inner = [named(v, f"{name}[{i}]") for i, v in enumerate(tree)]
        return [pair for found in inner for pair in found]
    return [(name or "value", t) for t in tensors(tree)]


class Reader:
    """Makes parts of a trace. ``operations`` opens modules of the library, too."""

    def __init__(self, trace: Trace, operations: bool):
        self.trace, self.operations = trace, operations
        self.notes: dict[Hashable, str] = {}
        self.owned = self._owned()
        self.written = _written(trace)
        self.calls: dict[int, list[Call]] = {}
        for call in trace.calls:
            self.calls.setdefault(id(call.module), []).append(call)

    def _owned(self) -> dict[int, tuple[str, str, Tensor]]:
        model = self.trace.model
        found = {id(b): (n, "buffer", b) for n, b in model.named_buffers()}
        return found | {id(p): (n, "parameter", p) for n, p in model.named_parameters()}

    # --- what comes in and goes out ---------------------------------------------------------------

    def inputs(self) -> list[Part]:
        """The arguments of the model, one part for each tensor."""
        root = self.trace.root
        pairs = [
            pair for name, value in _argument_names(root).items() for pair in named(value, name)
        ]
        return [
            Part(self._end(f"in{i}", name, t, "input"), [], [self._value(t)])
            for i, (name, t) in enumerate(pairs)
        ]

    def outputs(self) -> list[Part]:
        """What the model returned, one part for each tensor; none if it failed."""
        pairs = named(self.trace.output, "") if self.trace.root.finished else []
        return [
            Part(self._end(f"out{i}", name or "output", t, "output"), [self._value(t)], [])
            for i, (name, t) in enumerate(pairs)
        ]

    def _end(self, key: str, name: str, t: Tensor, kind: str) -> Block:
        words = name if kind == "input" or name == "output" else f"output {name.lstrip('.')}"
        lines = [Line(words, bold=True), Line(shape_text(t), size=SMALL, color=SOFT)]
        facts = {"output": shape_text(t)}
        note = f"{kind} {name}: {value_text(t)}"
        return Block(key, lines, kind, note, round=True, name=words, facts=facts)

    def _value(self, t: Tensor) -> Hashable:
        self.notes.setdefault(id(t), f"{shape_text(t)} {_dtype(t)}")
        return id(t)

    # --- calls ------------------------------------------------------------------------------------

    def call(self, call: Call) -> Part:
        """The part of a call, with those inside it."""
        inside = self.inside(call) if self._opens(call) else None
        needs, gives = self._exchanged(call)
        block = self._call_block(call)
        if block.kind == "failed" and inside is not None:
            inside = self._with_error(call, inside)
        signature = (call.kind, block.facts.get("output"), block.facts.get("parameters"))
        return Part(block, needs, gives, None if inside is None else folded(inside), signature)

    def _exchanged(self, call: Call) -> tuple[list[Hashable], list[Hashable]]:
        """What a call needs, also of what it was not given as an argument, and what it gives."""
        needs = dict.fromkeys(self._value(t) for t in call.inputs)
        made: dict[Hashable, None] = {}
        for op in [op for c in call.below() for op in c.operations]:
            read = [self._value(t) for t in op.inputs if id(t) not in self.owned]
            needs.update(dict.fromkeys(v for v in read if v not in made))
            made.update(dict.fromkeys(self._made(op)))
        made.update(dict.fromkeys(self._value(t) for t in call.outputs))
        return list(needs), list(made)

    def _made(self, op: Operation) -> list[Hashable]:
        """What an operation gives: what came out, and the tensor it was written into."""
        written = [self.written[op.number]] if op.number in self.written else []
        return [self._value(t) for t in (*op.outputs, *written)]

    def _opens(self, call: Call) -> bool:
        if call.children:
            return True
        if self.operations:
            return bool(call.operations)
        # A module of one operation is that operation, unless an error came after it.
        few = 1 if call.finished else 0
        return not _of_library(call.module) and len(call.operations) > few

    def inside(self, call: Call) -> list[Part]:
        """The parts of what happened in a call, in order."""
        moments: list[tuple[int, int, int, Call | Operation]] = []
        moments += [(c.began, 0, c.number, c) for c in call.children]
        moments += [(op.number, 1, 0, op) for op in call.operations]
        parts: list[Part] = []
        held: set[int] = set()
        for *_, item in sorted(moments, key=lambda m: m[:3]):
            if isinstance(item, Call):
                parts.append(self.call(item))
                continue
            for t in item.inputs:
                if id(t) in self.owned and id(t) not in held:
                    held.add(id(t))
                    parts.append(self._parameter(call, t))
            parts.append(self._operation(item))
        return parts

    def _call_block(self, call: Call) -> Block:
        module, parent = call.module, call.parent
        prefix = "" if parent is None or not parent.path else f"{parent.path}."
        name = call.path.removeprefix(prefix)
        kind = class_name(module)
        title = f"{name}: {kind}" if name else kind
        outs = " ".join(shape_text(t) for t in call.outputs)
        held = sum(p.numel() for p in module.parameters())
        told = [outs, f"{held:,} parameters" if held else ""]
        lines = [Line(shortened(title, 230.0, bold=True), bold=True)]
        words = shortened(" · ".join(filter(None, told)), 250.0, SMALL)
        lines.append(Line(words, size=SMALL, color=SOFT))
        twins = self.calls[id(module)]
        if len(twins) > 1:
            which = f"shared: call {twins.index(call) + 1} of {len(twins)}"
            lines.append(Line(which, size=SMALL, color="#8a4b00"))
        lines = [line for line in lines if line.words]
        color = _kind(call) if call.finished else "failed"
        block = Block(f"c{call.number}", lines, color, self._call_note(call), shared=len(twins) > 1)
        block.name = call.path or kind
        block.facts = {"class": kind, "output": outs}
        block.facts["parameters"] = f"{held:,}" if held else ""
        if not call.finished and call is self.trace.failed:
            self._mark(block)
        return block

    def _call_note(self, call: Call) -> str:
        lines = [f"{call.path or 'the model'}: {_first_line(call.module)}"]
        lines += [f"in {value_text(t)}" for t in call.inputs[:6]]
        lines += [f"out {value_text(t)}" for t in call.outputs[:6]]
        own = call.module.named_parameters(recurse=False)
        lines += [f"{n} {shape_text(p)}{'' if p.requires_grad else ', frozen'}" for n, p in own]
        return "\n".join(lines)

    def _mark(self, block: Block) -> None:
        error = self.trace.error
        said = f"{type(error).__name__}: {error}"
        for words in wrapped(" ".join(said.split()), ERROR_WIDTH, SMALL, ERROR_LINES):
            block.lines.append(Line(words, size=SMALL, color="#a01812"))
        block.note = f"{said}\n{block.note}"
        block.facts["error"] = said

    def _with_error(self, call: Call, inside: list[Part]) -> list[Part]:
        """The place of an error that no module inside raised: after all that ran."""
        if call is not self.trace.failed:
            return inside
        block = Block(f"x{call.number}", [Line("failed here", bold=True)], "failed", name="failed")
        self._mark(block)
        entered = [self._value(t) for t in call.inputs]
        after = inside[-1] if inside else None
        needs = entered if after is None else after.gives
        return [*inside, Part(block, needs, [], after=after)]

    # --- operations -------------------------------------------------------------------------------

    def _operation(self, op: Operation) -> Part:
        needs = [self._value(t) for t in op.inputs]
        shape = " ".join(shape_text(t) for t in op.outputs)
        sign = SIGNS.get(op.name, op.name)
        lines = [Line(sign, bold=len(sign) == 1)]
        facts = {"output": shape}
        note = [f"{op.name}{_settings(op)}"]
        note += [f"in {value_text(t)}" for t in op.inputs[:6]]
        note += [f"out {value_text(t)}" for t in op.outputs[:6]]
        block = Block(f"o{op.number}", lines, "operation", "\n".join(note), round=True)
        block.name, block.facts = op.name, facts
        return Part(block, needs, self._made(op), signature=(op.name, shape))

    def _parameter(self, call: Call, t: Tensor) -> Part:
        name, role, _ = self.owned[id(t)]
        prefix = f"{call.path}." if call.path else ""
        short = name.removeprefix(prefix)
        lines = [Line(short), Line(shape_text(t), size=SMALL, color=SOFT)]
        note = f"{role} {name}: {value_text(t)}"
        block = Block(
            f"p{call.number}_{list(self.owned).index(id(t))}",
            lines,
            "parameter",
            note,
            round=True,
            name=name,
        )
        block.facts = {"output": shape_text(t)}
        if role == "parameter":
            block.facts["parameters"] = f"{t.numel():,}"
        return Part(block, [], [self._value(t)], signature=(role, shape_text(t)))


def _argument_names(root: Call) -> dict[str, Any]:
    try:
        names = list(inspect.signature(root.module.forward).parameters)
    except (TypeError, ValueError):
        names = []
    names += [f"input {i}" for i in range(len(names), len(root.args))]
    return dict(zip(names, root.args, strict=False)) | root.kwargs


def _written(trace: Trace) -> dict[int, Tensor]:
    """For each operation whose outcome was written into another tensor, that tensor.

    Such an outcome is used by nothing, and the tensor was changed before it was read again.
    """
    used = {id(t) for op in trace.operations for t in op.inputs}
    used |= {id(t) for call in trace.calls for t in (*call.inputs, *call.outputs)}
    loose = {
        op.number: tuple(op.outputs[0].shape)
        for op in trace.operations
        if len(op.outputs) == 1 and id(op.outputs[0]) not in used
    }
    seen: dict[int, tuple[int, int]] = {}
    found: dict[int, Tensor] = {}
    reads = [
        (op.number, t, version)
        for op in trace.operations
        for t, version in zip(op.inputs, op.versions, strict=True)
    ]
    end = len(trace.operations)
    reads += [(end, t, t._version) for call in trace.calls for t in call.outputs]
    for at, t, version in reads:
        before, last = seen.get(id(t), (version, at))
        if version > before:
            shape = tuple(t.shape)
            writers = [n for n in range(last, at) if loose.get(n) == shape]
            if writers:
                found[writers[-1]] = t
        seen[id(t)] = (version, at)
    return found


def _of_library(module: Module) -> bool:
    return type(module).__module__.startswith("chainrule.nn")


def _kind(call: Call) -> str:
    module, name = call.module, call.kind
    if call.children and not any(word in name for word in ("RNN", "LSTM", "GRU")):
        return "module"
    if any(word in name for word in ("RNN", "LSTM", "GRU")):
        return "recurrent"
    if "Norm" in name:
        return "norm"
    if "activations" in type(module).__module__:
        return "activation"
    return "weights" if next(module.parameters(recurse=False), None) is not None else "other"


def _first_line(module: Module) -> str:
    lines = repr(module).splitlines()
    return lines[0] if len(lines) == 1 else type(module).__name__


def _settings(op: Operation) -> str:
    told = ", ".join(f"{k}={v!r}" for k, v in op.params.items())
    return f"({shortened(told, 420.0)})" if told else ""


def _dtype(t: Tensor) -> str:
    return str(t.dtype).rpartition(".")[2]
