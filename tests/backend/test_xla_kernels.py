"""Every kernel for devices against its NumPy twin, on the calls that the records make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
import jax
from backend.xla_calls import Call, harvested

from chainrule import backend
from chainrule.backend import K
from chainrule.backend.effects import STATIC
from chainrule.backend.numpy_kernels import update

jax.config.update("jax_enable_x64", True)
from chainrule.backend import devices  # noqa: E402
from chainrule.backend.cells import OnRaw  # noqa: E402
from chainrule.backend.placed import Place  # noqa: E402
from chainrule.backend.xla_kernels import random, table  # noqa: E402

_FAMILIES = backend._IMPLEMENTATIONS["numpy"]
REFERENCE = {name: getattr(f, name) for f in _FAMILIES for name in f.__all__}

# Relative to the largest number that comes out.
TOLERANCE = {2: 1e-3, 4: 2e-6, 8: 1e-12}
# Where rounding is amplified: a few digits less.
LOOSE = {
    "cofactor": 1e3,
    "conv_lstm_sequence_backward": 5.0,
    "det": 10.0,
    "digamma": 10.0,
    "eigh": 100.0,
    "eigvalsh": 10.0,
    "gammainc": 30.0,
    "gammaincc": 30.0,
    "inv": 100.0,
    "lgamma": 10.0,
    "log_ndtr": 10.0,
    "matrix_exp": 30.0,
    "pinv": 100.0,
    "polygamma": 10.0,
    "solve": 100.0,
    "svd": 100.0,
    "zeta": 10.0,
}
# Different numbers that are as right, which are compared by what they are for.
FREE = {"eigh", "qr", "svd"}


def put(tree: Any) -> Any:
    """Arguments with arrays on a device."""
    if isinstance(tree, np.ndarray):
        return jax.numpy.asarray(tree)
    if isinstance(tree, (list, tuple)):
        return tree.__class__([put(part) for part in tree])
    return tree


def agree(ours: Any, theirs: Any, name: str) -> None:
    """Same structure, shape and type; numbers that differ by rounding."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b, name)
        return
    if theirs is None:
        assert ours is None
        return
    assert not isinstance(theirs, np.ndarray) or isinstance(ours, jax.Array), "not on the device"
    a, b = np.asarray(ours), np.asarray(theirs)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if b.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
        return
    finite = np.abs(b[np.isfinite(b)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    size = b.dtype.itemsize // (2 if b.dtype.kind == "c" else 1)
    atol = TOLERANCE[size] * scale * LOOSE.get(name, 1.0)
    np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def has_arrays(tree: Any) -> bool:
    if isinstance(tree, (list, tuple)):
        return any(has_arrays(part) for part in tree)
    return isinstance(tree, np.ndarray)


def calls_of(name: str) -> list[Call]:
    return [c for c in harvested().get(name, []) if has_arrays((c[0], list(c[1].values())))]


WRITING = {"write_clamped", "write_clipped", "write_scaled", "write_updates"}
# No record calls these on arrays; the tests below do, or a test of tensors.
BY_HAND = {
    "all_finite_weights",
    "all_in_range",
    "all_rows_positive",
    "angle",
    "astype",
    "bytes_of",
    "from_python",
    "from_bfloat16_bits",
    "narrowed",
    "normal_cdf",
    "normalize",
    "pick_with_replacement",
    "pick_without_replacement",
    "resized",
    "scale_channels",
    "take_rows",
    "to_contiguous",
    "widened",
    "write_index",
    "write_into",
    "write_subscript",
}
COMPARED = sorted(set(table.TABLE) - STATIC - WRITING - BY_HAND - {"to_numpy"})


@pytest.mark.parametrize("name", COMPARED)
def test_kernel(name: str) -> None:
    calls = calls_of(name)
    assert calls, "no record calls it"
    for args, kwargs, expected in calls:
        ours = table.TABLE[name](*put(args), **{k: put(v) for k, v in kwargs.items()})
        if name not in FREE:
            agree(ours, expected, name)


@pytest.mark.parametrize("name", ["qr", "svd"])
def test_factors(name: str) -> None:
    """Their signs are free: the product is the matrix, and the columns are orthonormal."""
    for args, kwargs, expected in calls_of(name):
        ours = [np.asarray(a) for a in table.TABLE[name](*put(args), **kwargs)]
        assert [a.shape for a in ours] == [b.shape for b in expected]
        first, a = ours[0], args[0]
        tolerance = 1e-5 if a.dtype.itemsize == 4 else 1e-11
        identity = np.broadcast_to(np.eye(first.shape[-1]), (*a.shape[:-2], *[first.shape[-1]] * 2))
        np.testing.assert_allclose(first.swapaxes(-1, -2).conj() @ first, identity, atol=tolerance)
        if name == "svd":
            n = ours[1].shape[-1]
            product = (first[..., :n] * ours[1][..., None, :]) @ ours[2][..., :n, :]
        else:
            product = first @ ours[1]
        np.testing.assert_allclose(product, a, atol=tolerance * max(1, np.abs(a).max(initial=0)))


def test_eigenvectors() -> None:
    for args, kwargs, (values, _) in calls_of("eigh"):
        ours, vectors = [np.asarray(a) for a in table.TABLE["eigh"](*put(args), **kwargs)]
        agree(jax.numpy.asarray(ours), values, "eigh")
        low = (
            np.tril(args[0]) if kwargs["uplo"] == "L" else np.triu(args[0]).swapaxes(-1, -2).conj()
        )
        a = low + np.tril(low, -1).swapaxes(-1, -2).conj()
        tolerance = 1e-5 if a.dtype.itemsize == 4 else 1e-11
        np.testing.assert_allclose(a @ vectors, vectors * ours[..., None, :], atol=tolerance)


@pytest.mark.parametrize("name", sorted(WRITING))
def test_kernel_that_writes(name: str) -> None:
    """What the NumPy kernel leaves in its arguments is what this one returns."""
    calls = calls_of(name)
    assert calls, "no record calls it"
    host = {f.__name__: f for f in (update.write_clipped, update.write_scaled)}
    for args, kwargs, _ in calls:
        args = [host.get(getattr(a, "__name__", ""), a) for a in args]
        given = put(args)
        if name == "write_updates":  # its rule is written in operations, which know cells
            devices.activate()
            given = [OnRaw(args[0], Place("xla", 0)), *given[1:]]
        ours = table.TABLE[name](*given, **kwargs)
        getattr(update, name)(*args, **kwargs)  # in place
        agree(ours, (args[1], args[4]) if name == "write_updates" else args[0], name)


def test_kernels_by_hand() -> None:
    r = np.random.default_rng(0)
    a, index = r.normal(size=(4, 5)), np.array([3, 0, 3])
    entries = (..., slice(1, 4))
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("angle", (a,), {}),
        ("angle", (a + 1j,), {}),
        ("astype", (a, "float32"), {}),
        ("from_bfloat16_bits", (np.array([16256, 49024], np.uint16),), {}),
        ("narrowed", (a, np.dtype(np.float16)), {}),
        ("normal_cdf", (a,), {}),
        ("normal_cdf", (a.astype(np.float32),), {}),
        ("normalize", (a, a[0], a[1]), {"dim": (-1,), "eps": 1e-5, "center": True}),
        ("pick_with_replacement", (np.abs(a), r.uniform(size=(4, 3))), {}),
        ("pick_without_replacement", (np.abs(a), r.exponential(size=(4, 5)), 3), {}),
        ("resized", (a, (2, 3)), {}),
        ("scale_channels", (a, a[0], a[1]), {}),
        ("scale_channels", (a, a[0], a[1]), {"low": 0.0, "high": 0.5}),
        ("take_rows", (a, slice(1, 3)), {}),
        ("take_rows", (a, index), {}),
        ("to_contiguous", (a.T.copy(),), {}),
        ("widened", (a.astype(np.float16),), {}),
        ("write_index", (a.copy(), slice(1, 3), 2.0), {}),
        ("write_index", (a.copy(), index, 2.0), {}),
        ("write_subscript", (a.copy(), a[:2, :3], index[:2]), {"entries": entries, "tail": 1}),
    ]
    for name, args, kwargs in calls:
        expected = REFERENCE[name](*[x.copy() if hasattr(x, "copy") else x for x in args], **kwargs)
        agree(table.TABLE[name](*put(args), **kwargs), np.asarray(expected), name)
    there = put(a)
    assert bytes(table.TABLE["bytes_of"](there)) == a.tobytes()
    agree(table.TABLE["write_into"](table.TABLE["add"], there, there, there), 2 * a, "write_into")
    for name, good, bad in (
        ("all_in_range", (np.array([0.0, 1.0]), 0, 1), (np.array([0.0, np.nan]), 0, 1)),
        ("all_finite_weights", (np.array([0.0, 2.0]),), (np.array([-1.0]),)),
        ("all_rows_positive", (np.array([[0.0, 2.0]]),), (np.array([[0.0, 0.0]]),)),
    ):
        assert table.TABLE[name](*put(good))
        assert not table.TABLE[name](*put(bad))


def test_every_kernel_is_in_one_table() -> None:
    tables = [set(table.TABLE), set(table.HOSTED), set(table.PLACELESS), set(table.ABSENT)]
    assert set(vars(K)) == set().union(*tables)
    assert sum(map(len, tables)) == len(set().union(*tables)), "a kernel is in two tables"


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_masks_are_the_cpus(p: float) -> None:
    for dtype in ("float32", "float64"):
        g = np.random.Generator(np.random.SFC64(3))
        expected = REFERENCE["random_mask"](g, (7, 33), dtype, p, 1 / max(p, 0.5))
        key = int(np.random.Generator(np.random.SFC64(3)).bit_generator.random_raw())
        halves = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
        ours = random.mask_of_key(*halves, (7, 33), dtype, p, 1 / max(p, 0.5))
        np.testing.assert_array_equal(np.asarray(ours), expected)
        assert np.asarray(ours).dtype == expected.dtype
