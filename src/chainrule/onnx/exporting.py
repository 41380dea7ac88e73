"""``onnx.export``: a model as a file that other programs run."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chainrule.autograd.nested import flatten, unflatten
from chainrule.files.atomic import write_atomically
from chainrule.nn.module.base import Module
from chainrule.onnx import messages
from chainrule.onnx.errors import OnnxExporterError
from chainrule.onnx.graph import ML, Graph, is_fixed
from chainrule.onnx.messages import Size, Value
from chainrule.onnx.recording import Pass, run
from chainrule.onnx.sizes import Axis, passes_of
from chainrule.onnx.translating import Translation
from chainrule.ops.creation.patterns import arange
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.index.reading import index_select
from chainrule.tensor import Tensor

__all__ = ["DEFAULT_OPSET", "OPSETS", "Axes", "ONNXProgram", "Wrapping", "build", "check_opset"]
__all__ += ["export"]
__all__ += ["is_in_onnx_export"]

OPSETS = range(18, 24)  # whose operators mean what the rules take them to mean
DEFAULT_OPSET = 18
ML_OPSET = 3
LARGEST = 2**31 - 1  # bytes of a message
Axes = Mapping[str, Mapping[int, str] | Sequence[int]]
File = str | os.PathLike[str]
_running = [False]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported."""
    return _running[0]


class ONNXProgram:
    """A model that was exported: ``save`` writes it, ``content`` are the bytes of the file.

    ``inputs`` and ``outputs`` say what it takes and gives, by name: "float32 (batch, 3)".
    """

    def __init__(self, content: bytes, inputs: Sequence[Value], outputs: Sequence[Value]):
        self.content = content
        self.inputs, self.outputs = ({v.name: v.told for v in vs} for vs in (inputs, outputs))

    def save(self, destination: File) -> None:
        """Writes the file, completely or not at all."""
        write_atomically(Path(destination), self.content)

    @property
    def model_proto(self) -> Any:
        """The model as an object of the package ``onnx``, which has to be installed."""
        try:
            import onnx
        except ImportError:
            raise ImportError(
                "ONNXProgram.model_proto needs the package onnx: pip install chainrule[onnx]; "
                "save(path) does not"
            ) from None
        return onnx.load_from_string(self.content)

    def __repr__(self) -> str:
        sides = [", ".join(f"{n}: {t}" for n, t in s.items()) for s in (self.inputs, self.outputs)]
        return f"ONNXProgram({sides[0]} -> {sides[1]}; {len(self.content):,} bytes)"


class Wrapping:
    """What stands around the operations of a model: by default nothing.

    ``inputs`` says, for what the model is called with, what the file takes, and writes the nodes
    in between; ``outputs`` likewise, for what the model returned, what the file gives. ``notes``
    are kept in the file.
    """

    notes: Mapping[str, str] = {}

    def inputs(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        """What the file takes; ``graph.inputs`` are the names of what the model is called with."""
        return list(given)

    def outputs(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        """What the file gives."""
        return list(given)


def export(
    model: Module,
    args: Any = (),
    f: File | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    export_params: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: Axes | None = None,
    do_constant_folding: bool = True,
) -> ONNXProgram:
    """Writes a model as an ONNX file, which onnxruntime and other programs run.

    The model is run several times, in evaluation mode, and its operations are written down. What
    differs with the sizes of dynamic axes becomes a formula of them. What depends on values in
    Python (``if x.sum() > 0``, ``item()``) is refused where another pass, with other values, goes
    another way or finds another number. What no input reaches is computed now.

    Args:
        model: a module; it is left as it was. One in training mode is exported as ``eval()`` makes
            it, with a warning.
        args: what it is called with: a tensor, or a tuple of arguments.
        f: the path of the file; by default none is written.
        kwargs: keyword arguments of the call; tensors among them are inputs, too.
        export_params: True: the weights are part of the file.
        input_names: names of the inputs, in the order of the call; by default ``input``,
            ``input_1``, ...
        output_names: likewise of the outputs, ``output``, ``output_1``, ...
        opset_version: the version of ONNX's operators, 18 (the default) to 23.
        dynamic_axes: by name of an input, the axes whose size is free: ``{"input": {0: "batch"}}``
            or ``{"input": [0]}``; all others have the sizes of ``args``. Axes of one name have one
            size. Those of outputs follow from the inputs and get the names that are given here.
        do_constant_folding: True: see above.

    Returns: the program, with ``save`` and its bytes as ``content``.

    >>> import chainrule
    >>> from chainrule import nn, onnx
    >>> program = onnx.export(nn.Linear(2, 1).eval(), chainrule.ones(3, 2),
    ...                       dynamic_axes={"input": {0: "batch"}})
    >>> b"Gemm" in program.content
    True
    """
    if not isinstance(model, Module):
        raise TypeError(f"export: expected a module, got {type(model).__name__}")
    for name, given in (
        ("export_params", export_params),
        ("do_constant_folding", do_constant_folding),
    ):
        if not given:
            raise ValueError(f"export: {name}=False is not possible: {_ALWAYS[name]}")
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    check_opset(opset)
    if model.training:
        warnings.warn(
            "export: the model is in training mode; it is exported as eval() makes it, without "
            "dropout and with the running statistics of batch normalization",
            stacklevel=2,
        )
    arguments = args if isinstance(args, tuple) else (args,)
    program = build(
        model, arguments, kwargs or {}, input_names, output_names, dynamic_axes or {}, opset
    )
    if f is not None:
        program.save(f)
    return program


def check_opset(opset: int) -> None:
    """Refuses versions of the operators for which there are no rules."""
    if opset not in OPSETS:
        raise ValueError(
            f"export: opset_version must be from {OPSETS[0]} to {OPSETS[-1]}, got {opset}"
        )


_ALWAYS = {
    "export_params": "the weights are always part of the file",
    "do_constant_folding": "what no input reaches is always computed when the file is made",
}


def build(
    model: Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    dynamic_axes: Axes,
    opset: int,
    wrapping: Wrapping | None = None,
) -> ONNXProgram:
    """The program of a model, with something around it if that is given."""
    wrapping = wrapping or Wrapping()
    leaves, shape = flatten((tuple(args), dict(kwargs)))
    leaves = [as_tensor(v) if hasattr(v, "__array__") else v for v in leaves]
    inputs = [v for v in leaves if isinstance(v, Tensor)]
    if not inputs:
        raise TypeError("export: args hold no tensor; give what the model is called with")
    names = _names("input", input_names, len(inputs))
    axes, named = _axes(dynamic_axes, names, inputs)
    passes = _passes(model, inputs, axes, named, lambda given: _called(model, leaves, shape, given))
    if not passes[0].outputs:
        raise TypeError("export: the model returned no tensor")
    out_names = _names("output", output_names, len(passes[0].outputs))
    _refuse_unknown(dynamic_axes, names, out_names)
    graph = Graph(list(names), axes, taken={*names, *out_names})
    taken = [
        Value(n, t.dtype.name, [named.get((i, d), int(s)) for d, s in enumerate(t.shape)])
        for i, (n, t) in enumerate(zip(names, inputs, strict=True))
    ]
    described = wrapping.inputs(graph, taken)
    held = {id(t): n for n, t in (*model.named_parameters(), *model.named_buffers())}
    made = Translation(graph, passes, held, [t.dtype for t in inputs]).translate()
    # Under the names that were asked for, also where an output is an input or a constant.
    for k, want in enumerate(out_names):
        have = made[k]
        graph.renamed(have, want)
        made = [want if name == have else name for name in made]
    sizes = _output_sizes(passes, out_names, axes, dynamic_axes)
    given = [
        Value(n, t.dtype.name, d)
        for n, t, d in zip(out_names, passes[0].output_kinds, sizes, strict=True)
    ]
    answers = wrapping.outputs(graph, given)
    name = type(model).__name__
    return _program(graph, name, described, answers, opset, wrapping.notes)


def _program(
    graph: Graph,
    name: str,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    opset: int,
    notes: Mapping[str, str],
) -> ONNXProgram:
    nodes, constants = graph.pruned([v.name for v in outputs])
    ends = ([messages.value(v) for v in values] for values in (inputs, outputs))
    parts = messages.graph(name, nodes, constants, *ends)
    if sum(map(len, parts)) > LARGEST:
        raise OnnxExporterError(
            f"export: the model has {sum(map(len, parts)):,} bytes, and an ONNX file holds at most "
            f"{LARGEST:,}; weights beside the file are not written"
        )
    opsets = {"": opset, **({ML: ML_OPSET} if ML in graph.domains else {})}
    return ONNXProgram(messages.model(parts, opsets, notes), inputs, outputs)


# --- passes ---------------------------------------------------------------------------------------


def _called(model: Module, leaves: Sequence[Any], shape: Any, given: Sequence[Tensor]) -> Any:
    rest = iter(given)
    args, kwargs = unflatten([next(rest) if isinstance(v, Tensor) else v for v in leaves], shape)
    return model(*args, **kwargs)


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    before, _running[0] = _running[0], True
    try:
        yield
    finally:
        _running[0] = before


def _passes(
    model: Module,
    inputs: Sequence[Tensor],
    axes: Sequence[Axis],
    named: Mapping[tuple[int, int], str],
    call: Callable[[Sequence[Tensor]], Any],
) -> list[Pass]:
    """The model run with the sizes of :func:`passes_of`; after the first time with other values."""
    found = []
    for number, sizes in enumerate(passes_of(axes)):
        size = {a.name: s for a, s in zip(axes, sizes, strict=True)}
        given = [
            _changed(t, {d: size[n] for (k, d), n in named.items() if k == i}, number)
            for i, t in enumerate(inputs)
        ]
        try:
            with _exporting():
                found.append(run(model, call, given, number))
        except OnnxExporterError:
            raise
        except Exception as error:
            if not number:
                raise
            told = ", ".join(f"{n} = {s}" for n, s in size.items())
            other = f"with {told}, as these dynamic axes say" if told else "with other values"
            raise OnnxExporterError(
                f"export: the model cannot be run a second time {other}: {error}"
            ) from error
    return found


def _changed(x: Tensor, sizes: Mapping[int, int], number: int) -> Tensor:
    """An input of other sizes; after the first pass with other values of the same kind."""
    x = x.detach()
    for dim, size in sizes.items():
        places = arange(size) % x.shape[dim]
        x = index_select(x, dim, places.flip(0) if number else places)
    if not number or not x.numel():
        return x
    if x.is_floating_point():
        return x * (0.75 if bool((x >= 0).all()) else -0.75)
    return x.flip(tuple(range(x.ndim)))


# --- names and axes -------------------------------------------------------------------------------


def _names(what: str, given: Sequence[str] | None, count: int) -> list[str]:
    names = list(given or ())
    if len(names) > count or len(set(names)) < len(names) or not all(names):
        raise ValueError(
            f"export: {what}_names must be different names of at most {count} {what}s, got {names}"
        )
    own = [what if not i else f"{what}_{i}" for i in range(count)]
    return names + [n if n not in names else f"{n}_" for n in own[len(names) :]]


def _axes(
    given: Axes, names: Sequence[str], inputs: Sequence[Tensor]
) -> tuple[list[Axis], dict[tuple[int, int], str]]:
    """The free axes by name, and the name of each axis (input, dimension) that is free."""
    axes: dict[str, Axis] = {}
    named: dict[tuple[int, int], str] = {}
    for i, (name, x) in enumerate(zip(names, inputs, strict=True)):
        for dim, axis in _of_one(given, name).items():
            if not -x.ndim <= dim < x.ndim:
                raise ValueError(
                    f"export: dynamic_axes names axis {dim} of {name!r}, which has {x.ndim}"
                )
            d = dim % x.ndim
            # A size of 1 would be taken for one that is spread over another one.
            known = axes.setdefault(axis, Axis(axis, i, d, max(2, x.shape[d])))
            if x.shape[d] != inputs[known.input].shape[known.dim]:
                raise ValueError(
                    f"export: the axes {axis!r} have different sizes in args: {x.shape[d]} in "
                    f"{name!r} and {inputs[known.input].shape[known.dim]} in "
                    f"{names[known.input]!r}"
                )
            if not x.shape[d]:
                raise ValueError(f"export: axis {dim} of {name!r} is empty in args; give some rows")
            named[i, d] = axis
    return list(axes.values()), named


def _of_one(given: Axes, name: str) -> dict[int, str]:
    found = given.get(name, {})
    if isinstance(found, Mapping):
        return {int(d): str(n) for d, n in found.items()}
    return {int(d): f"{name}_dynamic_axes_{k}" for k, d in enumerate(found, 1)}


def _refuse_unknown(given: Axes, names: Sequence[str], out_names: Sequence[str]) -> None:
    unknown = [n for n in given if n not in (*names, *out_names)]
    if unknown:
        raise ValueError(
            f"export: dynamic_axes names {unknown[0]!r}, but the inputs are {list(names)} and the "
            f"outputs {list(out_names)}"
        )


def _output_sizes(
    passes: Sequence[Pass], names: Sequence[str], axes: Sequence[Axis], given: Axes
) -> list[list[Size]]:
    """The sizes of the outputs: a number, the name of a free axis, or a name of its own."""
    sizes = passes_of(axes)
    by_values = {tuple(p[k] for p in sizes): a.name for k, a in enumerate(axes)}
    found = []
    for i, name in enumerate(names):
        shapes = [tuple(p.output_kinds[i].shape) for p in passes]
        if len({len(s) for s in shapes}) > 1:
            raise OnnxExporterError(f"export: {name!r} has another number of dimensions by sizes")
        dims = list(zip(*shapes, strict=True))
        asked = {d % max(1, len(dims)): n for d, n in _of_one(given, name).items()}
        own: list[Size] = []
        for d, many in enumerate(dims):
            if is_fixed(many):
                if d in asked:
                    raise ValueError(
                        f"export: dynamic_axes frees axis {d} of the output {name!r}, but it has "
                        f"the size {many[0]} whatever the sizes of the inputs are"
                    )
                own.append(many[0])
            else:
                own.append(asked.get(d) or by_values.get(many) or f"{name}_size_{d}")
        found.append(own)
    return found
