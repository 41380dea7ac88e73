"""What programs on devices need of JAX: tracing, compiled calls, loops, random numbers.

See ``compiler/lowered.py``. Arrays that are traced are in cells like all others.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import meshes
from chainrule.backend.devices import is_full, jax, of_kind, out_of_memory
from chainrule.backend.placed import Place, Placed
from chainrule.backend.tracing import NotLowered, tracing as is_traced

__all__ = [
    "Pack",
    "all_of",
    "called",
    "chosen",
    "compiled",
    "copied",
    "draw",
    "drawn",
    "empty",
    "foreseen",
    "in_cell",
    "is_alive",
    "loop",
    "on_its_way",
    "on_meshes",
    "on",
    "raw_of",
    "sent",
    "stacked",
    "streams",
    "table",
    "ticked",
    "ticks",
    "together",
    "tracing",
    "view_of",
    "whole_number",
    "zeros_like",
]

Array = Any


def raw_of(value: Any) -> Any:
    """The array in a cell; anything else as it is."""
    return value.raw if value.__class__ is Placed else value


def in_cell(value: Any, place: Place) -> Placed:
    """A value in a cell, if it is not in one."""
    if value.__class__ is Placed:
        return value
    return Placed(jax().numpy.asarray(value), place)


def on(value: Any, place: Place) -> Array:
    """The array of a cell, or one of the host on its way to a device."""
    if value.__class__ is Placed:
        return value.raw
    return jax().device_put(np.array(value), of_kind(place.kind)[place.number])


class Form(NamedTuple):
    """What is known of an array that is still to come."""

    shape: tuple[int, ...]
    dtype: Any


def empty(shape: tuple[int, ...], dtype: Any, place: Place) -> Placed:
    """A cell whose array is still to come."""
    return Placed(Form(shape, dtype), place)


def ticks(place: Place) -> Any:
    """How many steps a device was given, and how many came to their end: none yet."""
    none = np.zeros(2, np.uint32)
    if meshes.are_in_use():
        return none
    return jax().device_put(none, of_kind(place.kind)[place.number])


def is_alive(ticks: Array) -> Array:
    """Whether all steps so far came to their end."""
    return ticks[0] == ticks[1]


def ticked(ticks: Array, times: int, done: Array) -> Array:
    """The counts after so many more steps."""
    jnp = jax().numpy
    return ticks + jnp.stack([jnp.uint32(times), jnp.asarray(done).astype(np.uint32)])


def sent(ticks: Array) -> Array:
    """How many steps came to their end, on its way to the host: the counts change in place."""
    if isinstance(ticks, np.ndarray):
        return ticks[1]
    if not ticks.is_fully_addressable:  # of several processes each has its copy
        return np.asarray(ticks.addressable_data(0))[1]
    return on_its_way(ticks[1])


def on_its_way(number: Array) -> Array:
    """A number that is being copied to the host, unless it lies there as well."""
    if number.is_fully_addressable:
        number.copy_to_host_async()
    return number


def whole_number(a: Array) -> int:
    """The number in an array, waited for."""
    return int(a)


def zeros_like(cell: Placed) -> Array:
    """Zeros in the form of a cell."""
    device = of_kind(cell.place.kind)[cell.place.number]
    return jax().numpy.zeros(cell.shape, cell.dtype, device=device)


def on_meshes() -> bool:
    """Whether any array lies on several devices."""
    return meshes.are_in_use()


def copied(a: Array) -> Array:
    """The same numbers in memory of their own."""
    return a.copy()


def view_of(base: Any, slot: Any) -> Placed:
    """The cell of a view of another one."""
    taken = slot.taken
    raw = taken.function(base.raw, *taken.args, **taken.kwargs)
    return Placed(raw, base.place, base, taken, slot.strides)


# --- tracing --------------------------------------------------------------------------------------


@contextlib.contextmanager
def tracing(take: Callable[[Any, Any], None]) -> Iterator[None]:
    """Has kernels hand on the checks of values that are not there yet."""
    from chainrule.backend.xla_kernels.checks import handing

    with handing(take), is_traced():
        yield


def all_of(alive: Array, checks: Sequence[Any]) -> Array:
    """Whether everything held so far."""
    for ok in checks:
        alive = alive & ok
    return alive


def chosen(held: Array, new: Array, old: Array, cell: Placed | None) -> Array:
    """The new array, or the old one where a check did not hold; it lies as the cell's does."""
    jnp = jax().numpy
    out = jnp.where(held, jnp.asarray(new), old)
    if cell is None or not meshes.are_in_use():
        return out
    lies = cell.raw
    return meshes.spread(out, lies.sharding) if meshes.mesh_of(lies) is not None else out


def together(*groups: Sequence[Any]) -> list[list[Any]]:
    """Arrays in groups, all on the mesh that some of them lie on."""
    if not meshes.are_in_use():
        return [list(group) for group in groups]
    whole = meshes.joined("compile", [a for group in groups for a in group])
    found = iter(whole)
    return [[next(found) for _ in group] for group in groups]


class Pack:
    """Many arrays as few: each argument of a call takes some microseconds, so that a short step
    spends most of its time on them.

    Args:
        like: arrays of the shapes and types to come.
        columns: numbers of those that belong together, as the moments of all parameters do: an
            update then computes with the columns themselves. What is in none follows.
    """

    def __init__(self, like: Sequence[Any], columns: Sequence[Sequence[int]] = ()):
        self.shapes = [tuple(a.shape) for a in like]
        known = {i for column in columns for i in column}
        rest = [i for i in range(len(like)) if i not in known]
        self.groups: list[list[int]] = []
        for column in [*columns, rest]:
            for dtype in dict.fromkeys([like[i].dtype for i in column]):
                self.groups.append([i for i in column if like[i].dtype == dtype])
        self.packed = jax().jit(self.pack)
        self.unpacked = jax().jit(self.unpack)

    def pack(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays one behind the other."""
        join = jax().numpy.concatenate
        return [join([arrays[i].reshape(-1) for i in group]) for group in self.groups]

    def unpack(self, flats: Sequence[Array]) -> list[Array]:
        """The arrays themselves."""
        found: list[Any] = [None] * len(self.shapes)
        for flat, group in zip(flats, self.groups, strict=True):
            end = 0
            for i in group:
                start, end = end, end + math.prod(self.shapes[i])
                found[i] = flat[start:end].reshape(self.shapes[i])
        return found


# --- calling --------------------------------------------------------------------------------------


def compiled(step: Callable[..., Any]) -> Any:
    """A step as one function of XLA's, which takes the memory of what it is given first for what
    it returns first: of the old state for the new one, of gradients that nobody reads any more."""
    return jax().jit(step, donate_argnums=(0,), keep_unused=True)


def called(function: Any, program: Any, *args: Any) -> Any:
    """A call; what XLA says when memory runs out is told with the sizes of the program.

    Raises:
        NotLowered: the program needs numbers while it is traced.
    """
    errors = jax().errors
    try:
        return meshes.in_turn(function(*args))
    except (errors.JAXTypeError, errors.JAXIndexError) as error:
        raise NotLowered(str(error).partition("\n")[0]) from error
    except Exception as error:
        if not is_full(error):
            raise
        largest = sorted(program.slots, key=lambda s: s.span(), reverse=True)[:4]
        sizes = ", ".join([s.told() for s in largest])
        inputs = ", ".join([program.slots[i].told() for i in program.inputs]) or "none"
        raise out_of_memory(
            f"compile: a step with the inputs {inputs} (largest values: {sizes})", str(error)
        ) from error


def loop(
    loss: int,
    times: int,
    batch: int,
    step: Callable[..., Any],
    begin: Callable[..., Any],
    end: Callable[..., Any],
) -> Any:
    """So many steps as one function of XLA's; ``loss`` is the place of what is kept of each.

    ``begin(changing)`` is the state that the steps carry, and ``end(state, out)`` the state,
    gradients and results as they go out.
    """
    lax, jnp = jax().lax, jax().numpy

    def whole(given: Any, fixed: Any, sources: Any, order: Any, drawn: Any, rows: Any) -> Any:
        changing, counts, _, _ = given
        first, alive = begin(changing), is_alive(counts)

        def rows_of(i: Array) -> list[Array]:
            if order is None:
                return [lax.dynamic_slice_in_dim(s, i * batch, batch) for s in sources]
            at = lax.dynamic_slice_in_dim(order, i * batch, batch)
            return [jnp.take(s, at, axis=0) for s in sources]

        def body(carry: Any, given: Any) -> Any:
            state, held, done, _ = carry
            i, keys, numbers = given
            state, out, held = step(state, fixed, rows_of(i), keys, numbers, held)
            return (state, held, done + held, out), out[loss]

        shapes = jax().eval_shape(
            step, first, fixed, rows_of(jnp.int32(0)), [d[0] for d in drawn], rows[0], alive
        )
        nothing = [jnp.zeros(s.shape, s.dtype) for s in shapes[1]]
        steps = (jnp.arange(times, dtype=np.int32), drawn, rows)
        begun = (first, alive, jnp.uint32(0), nothing)
        (state, _, done, out), losses = lax.scan(body, begun, steps)
        state, gradients, out = end(state, out)
        counts = ticked(counts, times, done)
        rows = losses if losses.ndim < 2 else losses.reshape(times, -1)
        return (state, counts, None, gradients), out, rows, counts[1]

    return compiled(whole)


# --- numbers --------------------------------------------------------------------------------------


def foreseen(rows: Sequence[Sequence[float]], length: int, place: Place) -> tuple[Array, Array]:
    """The numbers of some steps on the device, as a table of this length, and the place of the
    first row."""
    out = np.zeros((length, len(rows[0])), np.float64)
    out[: len(rows)] = rows
    first = np.int32(0)
    if meshes.are_in_use():
        return out, first
    device = of_kind(place.kind)[place.number]
    return jax().device_put(out, device), jax().device_put(first, device)


def table(columns: Sequence[Any], times: int) -> np.ndarray:
    """The numbers of many steps, a row for each."""
    out = np.empty((times, len(columns)), np.float64)
    for i, column in enumerate(columns):
        out[:, i] = column
    return out


def streams(draws: Sequence[Any]) -> Callable[[], None]:
    """What puts the streams that these calls draw from back to where they are now."""
    found = [getattr(g, "raw", g) for g in [step.args[0] for step in draws]]
    known = [g.bit_generator for g in found if hasattr(g, "bit_generator")]
    before = [(bits, bits.state) for bits in dict(zip(map(id, known), known, strict=True)).values()]

    def back() -> None:
        for bits, state in before:
            bits.state = state

    return back


def draw(step: Any) -> np.ndarray:
    """What a call draws on the host: of a mask its key, in two halves."""
    args = [g.raw if hasattr(g, "raw") else g for g in step.args]
    bits = getattr(args[0], "bit_generator", None)
    if step.kernel == "random_mask" and bits is not None:
        key = int(bits.random_raw())
        return np.array([key & 0xFFFFFFFF, key >> 32], np.uint32)
    return np.asarray(step.function(*args, **step.kwargs))


def drawn(step: Any, value: Array, place: Place) -> Placed:
    """What a call of a kernel that draws comes to, from what was drawn for it."""
    from chainrule.backend.xla_kernels.random import mask_of_key

    g, *rest = step.args
    if step.kernel == "random_mask" and hasattr(g.raw, "bit_generator"):
        return Placed(mask_of_key(value[0], value[1], *rest, **step.kwargs), place)
    return Placed(value, place)


def stacked(values: Sequence[np.ndarray]) -> np.ndarray:
    """What was drawn for many steps."""
    return np.stack(values)
