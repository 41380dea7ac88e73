"""Random calls of compiled kernels that are not as they should be, and what comes of them.

:func:`draw` takes a valid call and changes it, :func:`hostile` brings it to the edge of what is
accepted; :func:`difference` compares a kernel with its NumPy twin.
"""

from __future__ import annotations

import contextlib
import copy
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from native.twins import native, reference
from native.valid_calls import MAKERS, Call, Draw

__all__ = ["difference", "draw", "hostile", "outcome", "written"]

# --- what is changed in them ----------------------------------------------------------------------


class Subclass(np.ndarray):
    pass


def _every_second(a: np.ndarray) -> np.ndarray:
    return np.repeat(a, 2, -1)[..., ::2] if a.ndim else a


def _misaligned(a: np.ndarray) -> np.ndarray:
    if a.dtype.hasobject:
        return a
    room = np.frombuffer(bytearray(a.nbytes + 1), np.uint8)[1:].view(a.dtype).reshape(a.shape)
    room[...] = a
    return room


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


# As contiguous as any: the step of a dimension of size 1 does not matter.
def _far_apart(a: np.ndarray) -> np.ndarray:
    steps = [2**62 if n == 1 else s for n, s in zip(a.shape, a.strides, strict=True)]
    return as_strided(a, a.shape, steps)


LAYOUTS: list[Callable[[np.ndarray], np.ndarray]] = [
    np.asfortranarray,
    lambda a: np.ascontiguousarray(a[::-1])[::-1] if a.ndim else a,
    lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1] if a.ndim else a,
    _every_second,
    lambda a: np.repeat(a, 2, 0)[::2] if a.ndim else a,
    _misaligned,
    _read_only,
    _far_apart,
    lambda a: a.astype(a.dtype.newbyteorder()),
    lambda a: a.view(Subclass),
    lambda a: np.broadcast_to(a[:1], a.shape) if len(a.shape) and len(a) else a,
    lambda a: np.broadcast_to(a[..., :1], a.shape) if a.size and a.ndim else a,
]
SHAPES: list[Callable[[np.ndarray], Any]] = [
    lambda a: a[None],
    lambda a: a[..., None],
    lambda a: a.reshape(-1),
    lambda a: a[..., :0],
    lambda a: a[:0],
    lambda a: a[:1],
    lambda a: a[..., :-1],
    lambda a: np.concatenate([a, a]),
    lambda a: a.T,
    lambda a: a.reshape(-1)[:1].reshape(()) if a.size else a,
    lambda a: a[()],
    lambda a: a.tolist(),
]
TYPES = ["i8", "i4", "u1", "?", "f2", "f4", "f8", "g", "F", "D", "O", "U3", "m8[s]"]
STRAY = [0, -1, 7, 2**40, -(2**62)]
SMALL = [0, -1, -2, 1, 2, 3, 7]
# No memory is that large.
HUGE = [2**48, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, -(2**48), -(2**63), -(2**63) - 1]
WRONG: list[Any] = [
    None,
    True,
    False,
    1.5,
    float("nan"),
    -1,
    "mean",
    "",
    b"x",
    (),
    [],
    {},
    (1,),
    [2, 3],
    object,
    ...,
    slice(None),
    range(2),
    1j,
    np.float32(2),
    np.int64(1),
    np.zeros(3),
    np.zeros((2, 2), "f"),
]


def _filled(d: Draw, a: np.ndarray) -> np.ndarray:
    """With some other numbers, or indices, than one expects."""
    a = a.copy()
    if a.dtype.char in "lfd":
        a[d.numbers.random(a.shape) < 0.3] = d.r.choice(STRAY if a.dtype.char == "l" else d.odd)
    return a


def _changed_array(d: Draw, a: np.ndarray) -> Any:
    kind = d.r.random()
    if kind < 0.5:
        return d.r.choice(LAYOUTS)(a)
    if kind < 0.65:
        # Words are no numbers; objects that are complex numbers or durations are no real ones.
        unfit = (ValueError, OverflowError, *[TypeError] * a.dtype.hasobject)
        with contextlib.suppress(*unfit):
            return a.astype(d.r.choice(TYPES))
    if kind < 0.85:
        return d.r.choice(SHAPES)(a if a.ndim else a[None])
    return _filled(d, a) if kind < 0.95 else copy.copy(d.r.choice(WRONG))


def _changed(d: Draw, value: Any) -> Any:
    """Something else in the place of an argument, or of a part of one."""
    if isinstance(value, np.ndarray):
        return _changed_array(d, value)
    if type(value) is int and d.flag():
        return d.r.choice(SMALL)
    if isinstance(value, tuple | list) and d.flag():
        return d.pick(type(value)(value[:-1]), type(value)([*value, *value[:1]]), [*value])
    return copy.copy(d.r.choice(WRONG))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where arguments and their parts are."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, tuple | list):
        for i, part in enumerate(value):
            yield from _places(part, (*path, i))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same with something else at one place."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: _with(value[key], tuple(rest), new)}
    return type(value)([_with(v, tuple(rest), new) if i == key else v for i, v in enumerate(value)])


def _rearranged(d: Draw, call: Call) -> Call:
    """With too few or too many arguments, or one that nobody knows."""
    args, named = call
    key = d.r.choice([*named, None])
    return d.pick(
        (args[:-1], named),
        ((*args, None), named),
        (args, {**named, "unknown": 1}),
        (args, {k: v for k, v in named.items() if k != key}),
        ((*args, *named.values()), {}),
    )


def draw(name: str, seed: int) -> Call:
    """A call: as it should be, changed at some places, or with one huge number."""
    seed += zlib.crc32(name.encode()) << 32
    way = random.Random(seed).random()
    d = Draw(seed, empty=way > 0.1)
    call = MAKERS[name](d, name)
    if way < 0.1:
        whole = [p for p in _places(call) if type(_at(call, p)) is int]
        return _with(call, d.r.choice(whole), d.r.choice(HUGE)) if whole else call
    for _ in range(d.pick(0, 1, 1, 1, 2, 3)):
        path = d.r.choice([p for p in _places(call) if len(p) > 1])
        call = _with(call, path, _changed(d, _at(call, path)))
    return _rearranged(d, call) if d.chance(0.05) else call


# --- what comes out -------------------------------------------------------------------------------


def outcome(kernel: Any, call: Call) -> Any:
    """What a kernel returns or raises, and what its arguments are afterwards."""
    args, named = call
    try:
        return kernel(*args, **named), call
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error


def _few(a: np.ndarray) -> np.ndarray:
    """An array; of one that repeats its elements more often than memory has room for, a part."""
    once = tuple(slice(2) if step == 0 else slice(None) for step in a.strides)
    return a[once] if a.nbytes > 2**30 else a


def _largest(value: Any) -> float:
    if isinstance(value, tuple | list | dict):
        parts = value.values() if isinstance(value, dict) else value
        return max([_largest(v) for v in parts], default=0.0)
    a = _few(np.asarray(value))
    if a.dtype.kind not in "fiu" or not a.size:
        return 0.0
    a = abs(a.astype(np.float64))
    return float(np.max(a, where=np.isfinite(a), initial=0))


def same(ours: Any, theirs: Any, scale: float) -> bool:
    """Whether two results are the same up to rounding."""
    if isinstance(theirs, tuple | list):
        together = len(ours) == len(theirs) and zip(ours, theirs, strict=True)
        return bool(together) and all(same(a, b, scale) for a, b in together)
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k], scale) for k in ours)
    if not isinstance(theirs, np.ndarray | np.generic | float):
        return type(ours) is type(theirs)
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.nbytes > 2**30:
        if a.strides != b.strides:
            return False
        a, b = _few(a), _few(b)
    if a.dtype.kind not in "fc":
        return str(a.tolist()) == str(b.tolist())
    # A Python number may come from numbers of float32.
    rough = a.dtype.itemsize <= 4 or not isinstance(theirs, np.ndarray)
    rounding = 1e-4 if rough else 1e-11
    return np.allclose(a, b, rtol=rounding, atol=rounding * scale, equal_nan=True)


def _text(value: Any) -> str:
    """An argument in few words."""
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__}({value.dtype.str}, {value.shape}, {value.strides})"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return ", ".join(f"{k}={_text(v)}" for k, v in value.items())
    return repr(value)


@contextlib.contextmanager
def written() -> Iterator[None]:
    """What a twin leaves unwritten, given arrays that do not belong together, is zero."""
    before = np.empty, np.empty_like
    np.empty, np.empty_like = np.zeros, np.zeros_like
    try:
        yield
    finally:
        np.empty, np.empty_like = before


def difference(name: str, seed: int) -> str:
    """How a kernel and its twin differ in one call ("" if they do not)."""
    twin, kernel = reference(name), getattr(native, name)
    native.set_isa(("baseline", "avx2", "avx512")[seed % 3])
    native.set_num_threads(1 + seed % 2)
    theirs, ours = outcome(twin, draw(name, seed)), outcome(kernel, draw(name, seed))
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        alike = isinstance(theirs, Exception) and isinstance(ours, Exception)
    else:
        alike = same(ours, theirs, max(1.0, _largest(theirs)))
    if alike:
        return ""
    return f"{name}, seed {seed}: {_text(draw(name, seed))}\n{ours}\ninstead of\n{theirs}"


# --- without the twin -----------------------------------------------------------------------------

# What a binding must not trust: at the edge of what it accepts, and far beyond.
EDGES = [2**15, 2**16, 2**29, 2**30 - 1, 2**30, 2**30 + 1, 2**31, 2**40, 2**62, -(2**30), -(2**40)]


def _views(a: np.ndarray) -> list[np.ndarray]:
    """Arrays of sizes whose products overflow; they have one element, or none."""
    one, n = np.zeros(1, a.dtype), max(a.ndim, 1)
    wide, tall = (1,) * (n - 1) + (2**40,), (2**40,) + (1,) * (n - 1)
    views = [as_strided(one, shape, (0,) * n) for shape in (wide, tall)]
    if n > 1:
        some = (2**20,) * 2 + (1,) * (n - 2)
        views.append(as_strided(one, some, (0,) * n))
        views.append(np.zeros((0,) + (2**20,) * min(n - 1, 2), a.dtype))
        views.append(np.zeros((2**40, 0) + (1,) * (n - 2), a.dtype))
    return views


def hostile(d: Draw, name: str) -> Call:
    """A call with settings at the edge of what is accepted, or with an array of absurd size."""
    call = MAKERS[name](d, name)
    keys = [k for k in ("stride", "padding", "dilation") if k in call[1]]
    if "pool" in name and "kernel" in call[1]:
        keys.append("kernel")
    if keys and d.chance(0.7):
        for _ in range(d.r.randint(1, 3)):
            key = d.r.choice(keys)
            at = d.r.randrange(len(call[1][key]))
            call = _with(call, (1, key, at), d.r.choice(EDGES))
        return call
    arrays = [p for p in _places(call) if isinstance(_at(call, p), np.ndarray)]
    if not arrays:
        return call
    path = d.r.choice(arrays)
    return _with(call, path, d.r.choice(_views(_at(call, path))))
