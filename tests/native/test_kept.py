"""What a tape keeps of a call computes with the values that arrays have later, not the old ones."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native.twins import in_setting, native, reference
from native.valid_calls import MAKERS, Draw

BY_PYTHON, BY_BINDING, ALONE = 0, 1, 2
# Nothing to be kept: they show or hand out an argument, read text, or leave a number to Python; the
# updates of optimizers are kept as such (Tape.add_update).
NEVER = {"broadcast_to", "owned", "read_cells", "total_norm", "write_updates"}
CHECKS = {"all_finite"}
KERNELS = sorted(set(native.kernels) - NEVER - CHECKS)


@pytest.fixture(autouse=True, params=[("avx512", 1), ("baseline", 3)], ids=str)
def setting(request: Any) -> Iterator[None]:
    yield from in_setting(request.param)


def arrays_in(tree: Any) -> Iterator[np.ndarray]:
    """The arrays in nested lists, tuples and dictionaries."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, (list, tuple, dict)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from arrays_in(part)


def copied(tree: Any) -> Any:
    """The same tree with arrays of its own."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, dict):
        return {k: copied(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(copied(part) for part in tree)
    if isinstance(tree, np.random.Generator):
        return np.random.default_rng(5)
    return tree


def two_calls(name: str, seed: int) -> tuple[Any, Any]:
    """Two calls of a kernel that differ in the values of their arrays alone."""
    calls = []
    for values in (seed, seed + 10**6):
        d = Draw(seed, empty=False)
        d.special = False
        d.numbers = np.random.default_rng(values)
        calls.append(MAKERS[name](d, name))
    return calls[0], calls[1]


def fill(places: list[np.ndarray]) -> None:
    """Old results that a kernel must not use."""
    for a in places:
        a[...] = np.nan if a.dtype.kind == "f" else 77


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def replayed(name: str, seed: int) -> int:
    """Keeps one call, replays it as the other one; how it ran."""
    kernel = getattr(native, name)
    (args, named), (later_args, later_named) = two_calls(name, seed)
    held, held_named = copied(args), copied(named)
    results = list(arrays_in([kernel(*copied(args), **copied(named))]))
    places = [np.empty(a.shape, a.dtype) for a in results]
    tape = native.Tape()
    how = tape.add(kernel, held, held_named, tuple(places))
    same(places, results)
    mine = [*arrays_in(held), *arrays_in(held_named)]
    for a, b in zip(mine, [*arrays_in(later_args), *arrays_in(later_named)], strict=True):
        a[...] = b
    fill(places)
    if isinstance(args[0], np.random.Generator):
        tape.set_argument(0, 0, np.random.default_rng(9))
        later_args = (np.random.default_rng(9), *later_args[1:])
    assert tape.run(0, 1) == -1
    later = copied((later_args, later_named))
    if isinstance(args[0], np.random.Generator):
        later = ((np.random.default_rng(9), *later[0][1:]), later[1])
    same(places, list(arrays_in([kernel(*later[0], **later[1])])))
    same(mine, list(arrays_in(later)))  # what it wrote to
    return how


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_reads_when_it_runs(name: str) -> None:
    first = zlib.crc32(name.encode())
    ways = [replayed(name, first + i) for i in range(12)]
    assert ALONE in ways


def test_every_kernel_has_a_sample() -> None:
    assert set(native.kernels) - NEVER - CHECKS <= set(MAKERS)


def test_checks_are_kept() -> None:
    a, b = np.ones((3, 4), np.float32), np.ones(50000)
    tape = native.Tape()
    assert tape.add_check(native.all_finite, ([a, b],), {}, True) == ALONE
    assert tape.run(0, 1) == -1
    b[49999] = np.inf
    assert tape.run(0, 1) == 0
    b[49999] = 1
    assert tape.run(0, 1) == -1
    assert tape.add_check(lambda x: bool(x.all()), (a,), {}, True) == BY_PYTHON


TYPES = ["?", "i4", "i8", "f4", "f8"]
FORMS = {
    "plain": lambda a: a,
    "turned": lambda a: a.transpose(2, 0, 1),
    "every second": lambda a: a[:, ::2, ::3],
    "a part": lambda a: a[1, 1:, 2],
    "one element": lambda a: a[1, 1, 1, ...],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_copies(form: str, source: str, target: str) -> None:
    values = np.random.default_rng(0).normal(size=(2, 4, 6)) * 9
    whole = np.zeros((2, 4, 6), source)
    a = FORMS[form](whole)
    to = np.zeros((3, *a.shape[::-1]), target).T[..., 1]  # with steps of its own
    tape = native.Tape()
    how = tape.add_copy(to, a)
    easy = source == target or target[0] == "f" or (target == "i8" and source in ("?", "i4"))
    assert how == (ALONE if easy else BY_BINDING)
    whole[...] = values
    tape.run(0, 1)
    assert to.tolist() == a.astype(target).tolist()


def test_copies_repeat_and_do_not_overlap() -> None:
    row, number, to = np.arange(3.0), np.array(4.0), np.zeros((2, 2, 3))
    tape = native.Tape()
    assert tape.add_copy(to, row[:, None][:, 0]) == ALONE
    assert tape.add_copy(to[:, :, 1], number) == ALONE
    tape.run(0, 2)
    assert to.tolist() == [[[0, 4, 2]] * 2] * 2
    assert tape.add_copy(row[1:], row[:-1]) == BY_BINDING
    assert row.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="could not broadcast"):
        tape.add_copy(row, np.zeros(2))


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_whole_numbers(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(2**63), 2**63, (2, 3, 4))
    kernel, theirs = getattr(native, name), reference(name)
    few = np.int64(7)
    for pair in ((a, b), (a, 3), (-5, a), (a, few), (few, a), (np.array(5), a), (np.array(2), 9)):
        found, expected = kernel(*pair), theirs(*pair)
        assert found.dtype == np.int64
        assert found.tolist() == expected.tolist()
    place = np.empty_like(a)
    tape = native.Tape()
    assert tape.add(kernel, (a, 3), {}, (place,)) == ALONE
    a[...] = b
    tape.run(0, 1)
    assert place.tolist() == theirs(b, 3).tolist()


def test_what_is_made_of_odd_strides_is_not_kept() -> None:
    x, w = np.ones((1, 1, 10, 10), np.float32)[:, :, ::2, ::2], np.ones((1, 1, 3, 3), np.float32)
    named = {"size": (3, 3), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    place = np.empty((1, 1, 3, 3), np.float32)
    tape = native.Tape()
    assert tape.add(native.convolution, (x, w), named, (place,)) == BY_BINDING
    x[...] = 2
    tape.run(0, 1)
    assert (place == 18).all()


def test_an_index_out_of_range_raises_the_error_of_the_kernel() -> None:
    a, at = np.arange(12.0).reshape(4, 3), np.array([1, 2])
    named = {"entries": (..., slice(None)), "tail": 1, "distinct": False}
    place = np.empty((2, 3))
    tape = native.Tape()
    assert tape.add(native.index, (a, at), named, (place,)) == ALONE
    at[...] = [0, -1]  # NumPy's alone
    assert tape.run(0, 1) == -1
    assert place.tolist() == a[[0, -1]].tolist()
    at[...] = [0, 4]
    with pytest.raises(IndexError, match="out of bounds"):
        tape.run(0, 1)
    at[...] = [0, 3]
    assert tape.run(0, 1) == -1
    assert place.tolist() == a[[0, 3]].tolist()


def test_targets_are_counted_when_they_are_used() -> None:
    x, target = np.random.default_rng(0).normal(size=(6, 3)), np.zeros(6, np.int64)
    settings = {"dim": -1, "ignore_index": 2, "reduction": "mean"}
    places = (np.empty(()), np.empty((6, 3)))
    tape = native.Tape()
    assert tape.add(native.cross_entropy_and_softmax, (x, target), settings, places) == ALONE
    target[...] = [0, 2, 1, 2, 2, 0]
    assert tape.run(0, 1) == -1
    same(list(places), list(native.cross_entropy_and_softmax(x, target, **settings)))
    target[0] = 3
    with pytest.raises(IndexError, match="3"):
        tape.run(0, 1)


def test_an_exponent_that_changes() -> None:
    a, exponent, place = np.arange(4.0), np.array(2.0), np.empty(4)
    tape = native.Tape()
    assert tape.add(native.pow, (a, exponent), {}, (place,)) == ALONE
    exponent[...] = 3
    tape.run(0, 1)
    assert place.tolist() == [0, 1, 8, 27]
