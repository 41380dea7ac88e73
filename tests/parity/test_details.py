"""Small print of PyTorch's functions: types of integers, empty and repeated indices, keyword names,
changes in place, errors. Each line is run by both libraries and must give the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")

X = "torch.arange(12.0).reshape(3, 4)"
N = "torch.arange(12).reshape(3, 4)"
SAME = [
    # Integers.
    "torch.arange(-0.9, 2.1, 2.0, dtype=torch.int64)",
    "torch.arange(0.1, -7.9, -4.0, dtype=torch.int32)",
    "torch.arange(3.1, dtype=torch.int64)",
    "torch.arange(0.5, 6.7, 1.5, dtype=torch.int16)",
    "torch.linspace(4.3, -3, 50, dtype=torch.int64)",
    "torch.logspace(0, 1.2, 4, dtype=torch.int64)",
    f"torch.addmm({N}, {N}[:, :3], {N}, beta=0.6, alpha=1.7)",
    f"torch.addmv({N}[:, 0], {N}, {N}[0], beta=-1.5, alpha=2)",
    f"torch.addbmm({N}, {N}[None, :, :3], {N}[None], beta=0.2, alpha=2.9)",
    f"torch.baddbmm({N}[None], {N}[None, :, :3], {N}[None], beta=0, alpha=0.2)",
    f"torch.addr({N} > 3, {N}[:, 0] > 0, {N}[0] > 1, beta=3, alpha=2)",
    f"torch.nn.functional.hardtanh({N} - 5, -0.5, 2.5)",
    f"torch.nn.functional.relu6({N} - 2)",
    f"torch.nn.functional.avg_pool2d(({N} - 5)[None], 2, 1, 1, count_include_pad=False)",
    f"torch.nn.functional.avg_pool2d(({N} - 5)[None], 3, 2, 1, ceil_mode=True)",
    f"torch.nn.functional.avg_pool2d(({N} - 5)[None], 2, divisor_override=3)",
    "torch.nn.functional.avg_pool1d(torch.arange(7)[None], 3, 2)",
    f"torch.nn.functional.avg_pool2d({X}[None], 2, ())",
    f"torch.nn.functional.poisson_nll_loss({N}, {N}, full=True, reduction='none')",
    f"torch.nn.functional.poisson_nll_loss({N}, {N}, log_input=False)",
    f"torch.nn.functional.cosine_embedding_loss({N} > 2, {N} > 5, torch.ones(3))",
    "torch.nn.functional.local_response_norm(torch.zeros(0, 1, 2, dtype=torch.int64), 1)",
    f"({N} > 3).sum_to_size(3, 4)",
    # Indices and shapes.
    f"torch.gather({X}, 0, torch.zeros(2, 0, 1, dtype=torch.int64))",
    "torch.tensor(2.0).index_add(0, torch.tensor([0]), torch.tensor(3.0), alpha=-1)",
    "torch.tensor(2.0).index_copy(0, torch.tensor([0]), torch.tensor(3.0))",
    "torch.tensor([True, False]).index_add(0, torch.tensor([0]), torch.tensor([True]), alpha=-1)",
    f"{X}.index_fill(1, torch.tensor([0, 0, -1]), 7.0)",
    "torch.tensor([True, False]).scatter_reduce(0, torch.tensor([0, 0]),"
    " torch.tensor([True, True]), 'sum')",
    f"torch.diff({X}, n=0, prepend={X}, append={X})",
    "torch.unique_consecutive(torch.zeros(5, 0, 5), return_inverse=True, return_counts=True,"
    " dim=1)",
    "torch.broadcast_shapes((5, 1), 4)",
    f"torch.gradient({X}, spacing=None, dim=None)",
    # Keyword names.
    f"torch.flip({X}, dims=(0, 1))",
    f"{X}.flip(dims=[1])",
    f"{X}.permute(dims=(1, 0))",
    f"{X}.reshape(shape=(2, 6))",
    f"torch.reshape(input={X}, shape=(2, -1))",
    f"{X}.view(size=(2, 6))",
    f"{X}[:1].expand(size=(3, 4))",
    f"{X}.repeat(repeats=(2, 1))",
    f"torch.tile({X}, dims=(2,))",
    f"torch.swapaxes({X}, axis0=0, axis1=1)",
    f"{X}.swapdims(dim0=0, dim1=1)",
    f"{X}.sum_to_size(size=(1, 4))",
    f"torch.pow(input={X}, exponent=2)",
    f"torch.pow(2, exponent={X})",
    f"{X}.pow(exponent=2)",
    f"torch.heaviside(input={X} - 3, values=torch.tensor(0.5))",
    f"{X}.split(split_size=2)",
    f"torch.split({X}, split_size_or_sections=[1, 2], dim=0)",
    f"torch.tensor_split({X}, sections=2)",
    f"torch.hsplit({X}, indices=[1])",
    f"torch.isin({X}, test_element=2)",
    f"torch.isin(element=2, test_elements={X})",
    f"torch.zeros(3, 4).copy_(other={X})",
    "torch.det(input=torch.eye(2))",
    "torch.cholesky_solve(input=torch.eye(2), input2=torch.eye(2))",
    "torch.zeros(2).uniform_(**{'from': 3.0, 'to': 3.0})",
    "torch.zeros(2).random_(**{'from': 3, 'to': 4})",
    "torch.clamp(torch.tensor([1.0, 2.0, torch.nan]), torch.tensor([torch.nan, 3.0, 0.0]))",
    # Names.
    f"torch.histogram({X}, 5, weight={X} + 1, density=True)",
    f"torch.histogramdd({X}[:, :2], [2, 3], range=[0.0, 8.0, 1.0, 9.0])",
    f"torch.histogram({X}, torch.tensor([0.0, 2.0, 5.5]))",
    "torch.histogram(torch.ones(3), 4)",
    "torch.histogram(torch.ones(0), 4)",
    f"torch.index_reduce({X}, 0, torch.tensor([0, 2, 0]), {X} + 1, 'mean', include_self=False)",
    "torch.vander(torch.tensor([1, 2, 3]), 4)",
    "torch.range(0, 2, 0.5)",
    "torch.range(1, 7, 2, dtype=torch.int64)",
    "torch.frombuffer(bytearray(range(8)), dtype=torch.int16, count=2, offset=2)",
    "torch.empty_strided((2, 3), (1, 2)).stride()",
    "torch.empty_permuted((2, 3, 4), (1, 0, 2)).stride()",
    f"{X}.new_empty_strided((2, 3), (4, 1)).stride()",
    "torch.tensor([0.5, 1.5, 2.5]).round_()",
    f"torch.split_copy({X}, 2, 1)",
    f"torch.slice_copy({X}, 1, 1, 4, 2)",
    f"torch.rsub({X}, 3, alpha=2)",
    f"torch.nonzero_static({X}, size=20)[8:]",
    f"torch.nn.init.constant({X}, 2.0)",
    # Layers.
    "torch.nn.functional.multi_margin_loss(torch.tensor(2.0), torch.tensor(0))",
    "torch.nn.functional.multilabel_margin_loss(torch.tensor(2.0), torch.tensor(0))",
    f"torch.nn.functional.gaussian_nll_loss({X}, {X}[:, :1] + 1, {X} + 1)",
    f"torch.nn.functional.gaussian_nll_loss({X}, torch.tensor(1.0), {X}[:, 0] + 1)",
    "torch.nn.functional.feature_alpha_dropout(torch.ones(5), 0.5, training=False)",
    "torch.nn.functional.fractional_max_pool3d(torch.ones(0, 1, 4, 5, 4), (2, 2, 1), 2)",
    "torch.nn.BatchNorm1d(3)(torch.ones(0, 3)).shape",
]
REFUSED = {
    "torch.nn.functional.adaptive_avg_pool2d(torch.ones(2, 2), (2, 2))": ValueError,
    "torch.nn.functional.adaptive_max_pool3d(torch.ones(2, 2, 2), (2, 2, 2))": ValueError,
    "torch.cat([torch.ones(2), None])": TypeError,
    f"torch.narrow({X}, 0, torch.tensor(True), 1)": RuntimeError,
    f"torch.narrow_copy({X}, 3, 0, 0)": RuntimeError,
    f"torch.nn.functional.l1_loss({X}, {X}[0, :3])": RuntimeError,
    f"torch.nn.functional.triplet_margin_loss({X}, {X}[:, :3], {X})": RuntimeError,
    f"torch.nn.functional.multi_margin_loss({X}, {X}[:, 0], weight=torch.tensor(1.0))": ValueError,
    f"torch.addr({N}, {N}[:, 0], {N}[0], beta=0.5)": RuntimeError,
    "torch.arange(0, 64, 0.5, dtype=torch.int64)": ValueError,
    "torch.arange(0, 1, 0)": RuntimeError,
}


def run(library: Any, line: str) -> Any:
    """What a line gives in one library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(line, {"torch": library})


def assert_same(ours: Any, theirs: Any) -> None:
    """Asserts that kind, shape, type and numbers are the same."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, chainrule.Tensor)
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=2e-6)
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    else:
        assert ours == theirs


@pytest.mark.parametrize("line", SAME)
def test_both_libraries_give_the_same(line: str) -> None:
    assert_same(run(chainrule, line), run(torch, line))


@pytest.mark.parametrize("line", REFUSED)
def test_both_libraries_refuse(line: str) -> None:
    for library in (torch, chainrule):
        with pytest.raises(REFUSED[line]):
            run(library, line)


# --- out= -----------------------------------------------------------------------------------------

OUT = [
    f"torch.add({X}, 2, alpha=3, out=z)",
    f"torch.exp({X}, out=z)",
    f"torch.mul({X}, {X}, out=z)",
    f"torch.pow({X}, exponent=2, out=z)",
    f"torch.div({X}, 3, rounding_mode='floor', out=z)",
    f"torch.clamp({X}, 2, 5, out=z)",
    f"torch.abs({X} - 3, out=z)",
    f"torch.where({X} > 3, {X}, -{X}, out=z)",
    f"torch.matmul({X}, {X}.T, out=z)",
    f"torch.mm({X}, {X}.T, out=z)",
    f"torch.addmm({X}, {X}[:, :3], {X}, out=z)",
    f"torch.sum({X}, 1, out=z)",
    f"torch.mean({X}, dim=0, keepdim=True, out=z)",
    f"torch.amax({X}, 1, out=z)",
    f"torch.max({X}, 1, out=(z, i))",
    f"torch.sort({X}, descending=True, out=(z, i))",
    f"torch.topk({X}, 2, out=(z, i))",
    f"torch.cat([{X}, {X}], axis=1, out=z)",
    f"torch.stack(({X}, {X}), out=z)",
    f"torch.cumsum({X}, 0, out=z)",
    f"torch.gather({X}, 1, torch.zeros(3, 2, dtype=torch.int64), out=z)",
    f"torch.index_select({X}, 1, torch.tensor([0, 2]), out=z)",
    f"torch.masked_select({X}, {X} > 2, out=z)",
    "torch.arange(3, out=z)",
    "torch.linspace(0, 1, 5, out=z)",
    "torch.zeros(2, 3, out=z)",
    "torch.full((2,), 4, out=z)",
    "torch.randn(4, out=z).shape",
    "torch.rand(2, 2, out=z).shape",
    f"torch.argmax({X}, 1, out=i)",
    f"torch.eq({X}, 2.0, out=z)",
    f"torch.add({N}, {N}, out=z)",
]


@pytest.mark.parametrize("size", [(0,), (2, 5)], ids=["empty", "other size"])
@pytest.mark.parametrize("line", OUT)
def test_results_are_written_where_asked(line: str, size: tuple[int, ...]) -> None:
    found = []
    for library in (torch, chainrule):
        z, i = library.zeros(size), library.zeros(size, dtype=library.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(line, {"torch": library, "z": z, "i": i})
        if isinstance(result, tuple) and not isinstance(result, library.Size):
            assert result[0] is z
            assert result[1] is i
        elif "i)" in line:
            assert result is i
        elif not isinstance(result, library.Size):
            assert result is z
        found.append((z if "rand" not in line else z.shape, i))
    assert_same(found[1], found[0])


NOT_WRITTEN = {
    f"torch.exp({X}, out=i)": RuntimeError,  # floats do not become integers
    f"torch.amax({X}, 1, out=z.double())": RuntimeError,  # this one must have the type
    f"torch.exp({X}, out=[1.0])": TypeError,
    f"torch.exp({X}.requires_grad_(), out=z)": RuntimeError,
    f"torch.exp({X}, out=z.requires_grad_())": RuntimeError,
    "torch.exp(torch.ones(4), out=torch.zeros(1).expand(4))": RuntimeError,
    "torch.masked_select(z, z > -1, out=z[:3])": RuntimeError,
    "torch.take(z, i, out=z)": RuntimeError,
    "torch.arange(0, 4, 0.5, out=i)": ValueError,
}


@pytest.mark.parametrize("line", NOT_WRITTEN)
def test_results_that_do_not_fit_are_refused(line: str) -> None:
    for library in (torch, chainrule):
        z, i = library.zeros(6), library.zeros(6, dtype=library.int64)
        with pytest.raises(NOT_WRITTEN[line]):
            eval(line, {"torch": library, "z": z, "i": i})


def test_narrow_numbers_are_written_too() -> None:
    x, z = chainrule.ones(2, 2, dtype="float16"), chainrule.empty(0, dtype="float16")
    assert chainrule.addmm(x, x, x, out=z) is z
    assert z.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_another_shape_is_told() -> None:
    with pytest.warns(UserWarning, match=r"exp: an output with .* was resized since it had shape"):
        chainrule.exp(chainrule.ones(2), out=chainrule.ones(3))
    with pytest.warns(UserWarning, match=r"zeros: an output with .* was resized") as told:
        chainrule.zeros(2, out=chainrule.ones(3))
    assert told[0].filename == __file__


def test_a_write_is_seen_by_what_was_saved_and_by_views() -> None:
    x = chainrule.ones(3, requires_grad=True)
    w = chainrule.full((3,), 2.0)
    y, view = (x * w).sum(), w[1:]
    chainrule.add(w, 1, out=w)
    assert view.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# --- changes in place -----------------------------------------------------------------------------

IN_PLACE = [
    "y.logit_(0.1)",
    "y.mvlgamma_(2)",
    "y.cumprod_(0)",
    "y.renorm_(2, 0, 0.5)",
    "y.scatter_reduce_(0, torch.tensor([0, 0, 2]), y.detach() * 2, 'prod', include_self=False)",
    "y.scatter_reduce_(0, torch.tensor([0, 0, 2]), y.detach() * 2, 'amax')",
    "y.index_fill_(0, torch.tensor([1, 1]), x[0])",
    "y.lerp_(x.sin(), 0.3)",
    "y.addcdiv_(x, x + 1)",
]


def gradient_of(library: Any, line: str) -> Any:
    """The gradient of a weighted sum of a tensor after the change."""
    x = library.tensor([0.3, 0.6, 0.8], dtype=library.float64).add(1.0).requires_grad_()
    shift = 1.0 if "logit" in line else 0.0
    y = (x - shift).reshape(3, 1) if "renorm" in line else x - shift
    assert eval(line, {"torch": library, "x": x, "y": y}) is y
    weights = library.tensor([1.0, -2.0, 0.5], dtype=library.float64)
    (y.reshape(3) * weights).sum().backward()
    return x.grad


@pytest.mark.parametrize("line", IN_PLACE)
def test_a_composition_in_place_has_the_gradient_of_the_old_value(line: str) -> None:
    np.testing.assert_allclose(
        gradient_of(chainrule, line).numpy(), gradient_of(torch, line).numpy(), rtol=1e-9
    )


def test_a_value_that_fills_a_place_twice_counts_once() -> None:
    v = chainrule.tensor(2.0, dtype="float64", requires_grad=True)
    x = chainrule.ones(3, dtype="float64")
    chainrule.index_fill(x, 0, chainrule.tensor([0, 0, 2]), v).sum().backward()
    assert v.grad.item() == 2.0


def test_an_empty_batch_leaves_running_moments_and_gives_zeros() -> None:
    norm = chainrule.nn.BatchNorm2d(2)
    norm(chainrule.ones(0, 2, 3, 3)).sum().backward()
    assert norm.weight.grad.tolist() == norm.bias.grad.tolist() == [0.0, 0.0]
    assert norm.running_mean.tolist() == [0.0, 0.0]
    assert norm.running_var.tolist() == [1.0, 1.0]


def hooked(library: Any) -> list[Any]:
    """What hooks of all modules see of one step of a network."""
    places, seen = library.nn.modules.module, []

    def note(what: str) -> Any:
        def hook(module: Any, *rest: Any) -> None:
            seen.append((what, type(module).__name__))

        return hook

    handles = [
        getattr(places, f"register_module_{what}_hook")(note(what))
        for what in (
            "forward_pre",
            "forward",
            "full_backward_pre",
            "full_backward",
            "parameter_registration",
            "buffer_registration",
            "module_registration",
        )
    ]
    try:
        net = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.BatchNorm1d(2))
        net(library.ones(3, 2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    count = len(seen)
    net(library.ones(3, 2))
    assert len(seen) == count
    return seen


def test_hooks_of_all_modules_see_what_they_see_in_pytorch() -> None:
    assert hooked(chainrule) == hooked(torch)


def test_a_buffer_is_shared_unless_it_may_not_be_written() -> None:
    memory = bytearray(4)
    x = chainrule.frombuffer(memory, dtype=chainrule.uint8)
    x[1] = 7
    assert memory[1] == 7
    y = chainrule.frombuffer(bytes(4), dtype=chainrule.uint8)
    y[0] = 1
    assert y.tolist() == [1, 0, 0, 0]
