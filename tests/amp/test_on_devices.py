"""Precision on devices: autocast, levels of float32 products, tensors of 16 bits, scaling."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
import jax
import numpy as np

import chainrule as torch
from chainrule import backend, nn
from chainrule.amp import GradScaler, custom_bwd, custom_fwd
from chainrule.backend import precision
from chainrule.nn import functional as F
from chainrule.ops.core.mixing import PRODUCTS, Mixed
from chainrule.ops.core.primitive import REGISTRY

HERE = Path(backend.__file__).parent
TYPES = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}  # by the error of rounding


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    yield
    precision.set_levels("highest", "high")


def there(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).to("xla")


def rounded(t: torch.Tensor, dtype: Any = torch.bfloat16) -> torch.Tensor:
    return t.detach().to(dtype).to(torch.float32)


# --- what rounds ----------------------------------------------------------------------------------

LAYERS: dict[str, Callable[[], tuple[nn.Module, tuple[int, ...]]]] = {
    "linear": lambda: (nn.Linear(24, 5), (7, 24)),
    "linear of sequences": lambda: (nn.Linear(24, 5), (3, 7, 24)),
    "linear_relu": lambda: (nn.Sequential(nn.Linear(24, 5), nn.ReLU()), (7, 24)),
    "conv": lambda: (nn.Conv2d(3, 4, 3, stride=2, padding=1), (2, 3, 8, 8)),
    "grouped conv": lambda: (nn.Conv1d(4, 6, 3, groups=2), (2, 4, 9)),
    "transposed conv": lambda: (nn.ConvTranspose2d(3, 4, 2), (2, 3, 5, 5)),
    "bilinear": lambda: (Doubled(nn.Bilinear(5, 5, 4)), (3, 5)),
    "rnn": lambda: (First(nn.RNN(6, 5)), (4, 3, 6)),
    "lstm": lambda: (First(nn.LSTM(6, 5, proj_size=3)), (4, 3, 6)),
    "gru": lambda: (First(nn.GRU(6, 5)), (4, 3, 6)),
    "peephole lstm": lambda: (First(nn.PeepholeLSTM(6, 5)), (4, 3, 6)),
    "conv lstm": lambda: (First(nn.ConvLSTM(2, 3, 3)), (4, 2, 2, 5, 5)),
    "attention": lambda: (nn.TransformerEncoderLayer(8, 2, 16, 0.0), (4, 3, 8)),
}


class First(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


class Doubled(First):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x)


def errors(net: nn.Module, x: torch.Tensor, dtype: Any) -> list[float]:
    """How far the output and the gradients are from those in float32, relative to their size."""
    found, weights = [], torch.randn(1024).to("xla")
    for enabled in (False, True):
        net.zero_grad()
        x.grad = None
        with torch.autocast("xla", dtype=dtype, enabled=enabled):
            out = net(x)
        (out.flatten() * weights[: out.numel()]).sum().backward()
        found.append([out.detach(), x.grad, *[p.grad for p in net.parameters()]])
    assert all(t is not None and t.dtype is torch.float32 for t in found[1])
    return [float((a - b).norm() / a.norm()) for a, b in zip(*found, strict=True)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_round_their_operands_and_nothing_else(name: str, dtype: Any) -> None:
    torch.manual_seed(0)
    layer, shape = LAYERS[name]()
    net, x = layer.to("xla"), there(*shape).requires_grad_()
    found = errors(net, x, dtype)
    assert max(found) < 12 * TYPES[dtype]
    assert found[0] > 0
    assert found[1] > 0


@pytest.mark.parametrize("dtype", TYPES)
def test_a_product_is_that_of_rounded_operands(dtype: Any) -> None:
    """Forwards, and backwards outside of the block: the gradient is rounded, too."""
    a, b, g = there(4, 6).requires_grad_(), there(6, 3).requires_grad_(), there(4, 3)
    with torch.autocast("xla", dtype=dtype):
        out = a @ b
    out.backward(g)
    a16, b16, g16 = (rounded(t, dtype) for t in (a, b, g))
    assert torch.allclose(out, a16 @ b16, rtol=1e-6)
    assert torch.allclose(a.grad, g16 @ b16.T, rtol=1e-6)
    assert torch.allclose(b.grad, a16.T @ g16, rtol=1e-6)


def test_functions_round_as_well() -> None:
    a, b, c = there(2, 4, 6), there(2, 6, 3), there(4, 3)
    a16, b16 = rounded(a), rounded(b)
    with torch.autocast("xla"):
        found = [
            torch.bmm(a, b),
            torch.baddbmm(c, a, b),
            torch.einsum("nij,njk->nik", a, b),
            torch.addmm(c, a[0], b[0]),
        ]
    product = torch.bmm(a16, b16)
    for ours, expected in zip(found, (product, product + c, product, product[0] + c), strict=True):
        assert torch.allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_double_precision_and_the_cpu_are_left_alone() -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 2)
    wide = a.double().to("xla") @ b.double().to("xla")
    with torch.autocast("xla"):
        assert torch.equal(a.to("xla").double() @ b.to("xla").double(), wide)
        inside = a @ b
    assert torch.equal(inside, a @ b)


def test_second_derivatives_round() -> None:
    x, w = there(3, 4).requires_grad_(), there(2, 4).requires_grad_()
    with torch.autocast("xla"):
        out = F.linear(x, w)
    (gx,) = torch.autograd.grad((out * out).sum(), x, create_graph=True)
    nodes, seen = [gx.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is not None and hasattr(node, "op") and id(node) not in seen:
            seen.add(id(node))
            assert isinstance(node.op, Mixed) or node.op.name not in PRODUCTS
            nodes += [edge for edge, _ in node.next_functions]
    gx.sum().backward()
    assert w.grad is not None


def test_transformations_round() -> None:
    x, w = there(5, 4), there(3, 4)
    plain = torch.func.vmap(lambda row: w @ row)(x)
    with torch.autocast("xla"):
        batched = torch.func.vmap(lambda row: w @ row)(x)
        slope = torch.func.grad(lambda v: (v @ w.T).square().sum())(x)
    assert 0 < float((batched - plain).abs().max()) < 0.1
    assert torch.allclose(batched, rounded(x) @ rounded(w).T, rtol=1e-5, atol=1e-6)
    exact = torch.func.grad(lambda v: (v @ w.T).square().sum())(x)
    assert 0 < float((slope - exact).norm() / exact.norm()) < 0.02


def test_checkpoints_compute_again_as_before() -> None:
    net, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to("xla"), there(4, 6)
    found = []
    for again in (False, True):
        net.zero_grad()
        with torch.autocast("xla"):
            out = (
                torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False) if again else net(x)
            )
        out.sum().backward()
        found.append(net[0].weight.grad)
    assert torch.equal(*found)


def test_every_operation_with_a_product_is_known() -> None:
    """The kernels of XLA multiply in one place, and the operations that get there are listed."""
    for file in (HERE / "xla_kernels").glob("*.py"):
        text = file.read_text()
        inside = {"products.py": ("jnp.matmul",), "conv.py": ("conv_general_dilated",)}
        for name in ("jnp.matmul", "jnp.dot", "einsum", "dot_general", "conv_general_dilated"):
            assert name not in text or name in inside.get(file.name, ()), f"{file.name}: {name}"
    kernels = [name for name in REGISTRY if "linear" in name or "conv" in name or "matmul" in name]
    sequences = [name for name in REGISTRY if name.endswith("_sequence")]
    assert {*kernels, *sequences, "attention"} - {"linear_scan"} == PRODUCTS


# --- blocks ---------------------------------------------------------------------------------------


def rounds() -> bool:
    a = torch.full((1, 1), 1 + 2.0**-10, device="xla")
    return float(a @ a) == 1.0


def test_blocks_stand_in_each_other() -> None:
    assert not rounds()
    with torch.autocast("xla"):
        assert rounds()
        assert torch.is_autocast_enabled("xla")
        assert not torch.is_autocast_enabled()  # of "cuda"
        assert torch.get_autocast_dtype("xla") is torch.bfloat16
        with torch.autocast("xla", dtype=torch.float16):
            assert torch.get_autocast_dtype("xla") is torch.float16
            with torch.autocast("xla", enabled=False):
                assert not rounds()
                assert not torch.is_autocast_enabled("xla")
        with torch.autocast("cpu", enabled=False):
            assert rounds()
    assert not rounds()
    with pytest.raises(KeyError), torch.autocast("xla"):
        raise KeyError
    assert not rounds()


def test_a_decorated_function_and_a_block_used_twice() -> None:
    block = torch.autocast("xla")
    assert block(rounds)()
    with block, block:
        assert rounds()
        assert not torch.autocast("xla", enabled=False)(rounds)()
        with torch.no_grad():
            assert rounds()
    assert not rounds()


def test_of_a_thread() -> None:
    found = []
    with torch.autocast("xla"):
        thread = threading.Thread(target=lambda: found.append(rounds()))
        thread.start()
        thread.join()
    assert found == [False]


def test_turned_on_for_good() -> None:
    torch.set_autocast_enabled("xla", True)
    try:
        assert rounds()
    finally:
        torch.set_autocast_enabled("xla", False)
    assert not rounds()


def test_wide_types_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.absent._told", set())
    with pytest.warns(UserWarning, match="'xla' rounds to bfloat16 or float16, got chainrule.fl"):
        block = torch.autocast("xla", dtype=torch.float64)
    with block:
        assert not rounds()


def test_own_functions() -> None:
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="xla")
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            seen.append((rounds(), x.dtype))
            return x * x

        @staticmethod
        @custom_bwd(device_type="xla")
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            seen.append((rounds(), g.dtype))
            return 2 * g * ctx.saved_tensors[0]

    class Cast(Square):
        forward = staticmethod(
            custom_fwd(device_type="xla", cast_inputs=torch.float16)(
                lambda ctx, x: (ctx.save_for_backward(x), seen.append((rounds(), x.dtype)), x)[2]
            )
        )

    x = there(2).requires_grad_()
    with torch.autocast("xla"):
        out = Square.apply(x)
        wide = Cast.apply(x.detach())
    out.sum().backward()
    assert seen == [
        (True, torch.float32),
        (False, torch.float16),
        (True, torch.float32),
    ]
    assert wide.dtype is torch.float16


# --- levels ---------------------------------------------------------------------------------------


def asked_of_xla(function: Callable[..., Any], *arrays: Any) -> tuple[str, str]:
    """The type of the operands of the one product, and its precision."""
    found = []
    for eqn in jax.make_jaxpr(lambda *args: function(*args))(*arrays).eqns:  # not one that it knows
        if eqn.primitive.name in ("dot_general", "conv_general_dilated"):
            how = eqn.params["precision"]
            name = "default" if how is None or how[0] is None else how[0].name.lower()
            found.append((str(eqn.invars[0].aval.dtype), name))
    (one,) = found
    return one


def products() -> tuple[Callable[..., Any], Callable[..., Any]]:
    from chainrule.backend.xla_kernels import conv, linalg

    def convolved(x: Any, w: Any) -> Any:
        return conv.convolution(x, w, (3,), (1,), (0,), (1,), 1)

    return linalg.linear, convolved


def squared(a: Any) -> Any:
    return products()[0](a, a)


def asked() -> tuple[tuple[str, str], tuple[str, str]]:
    a, x, w = (np.ones(s, np.float32) for s in ((3, 3), (1, 2, 5), (4, 2, 3)))
    linear, convolved = products()
    return asked_of_xla(linear, a, a), asked_of_xla(convolved, x, w)


def test_levels_are_pytorchs() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    assert asked() == (("float32", "highest"), ("float32", "high"))
    torch.set_float32_matmul_precision("high")
    assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    torch.backends.cudnn.allow_tf32 = False
    assert asked() == (("float32", "high"), ("float32", "highest"))
    torch.set_float32_matmul_precision("medium")
    with torch.backends.cudnn.flags(allow_tf32=True):
        assert asked() == (("bfloat16", "default"), ("float32", "high"))
    assert not torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest"
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert torch.get_float32_matmul_precision() == "high"
    with pytest.raises(RuntimeError, match="expected 'ieee', 'tf32' or 'none', got 'tf16'"):
        torch.backends.cuda.matmul.fp32_precision = "tf16"


def test_gradients_have_the_level_of_their_product() -> None:
    from chainrule.backend.xla_kernels import conv, linalg

    g, x, w = (np.ones(s, np.float32) for s in ((1, 4, 3), (1, 2, 5), (4, 2, 3)))
    square = np.ones((3, 3), np.float32)
    for level, answer in (("high", "high"), ("highest", "highest")):
        precision.set_levels(level, level)
        back = [
            asked_of_xla(lambda a, b: linalg.linear_backward(a, b, None, False)[1], square, square),
            asked_of_xla(lambda a, b: conv.convolution_weight(a, b, (3,), *BY_ONE), x, g),
            asked_of_xla(lambda a, b: conv.convolution_input(a, b, (5,), *BY_ONE), g, w),
        ]
        assert back == [("float32", answer)] * 3


BY_ONE = ((1,), (0,), (1,), 1)


def test_what_is_solved_is_as_exact_as_can_be() -> None:
    """XLA's own default is TF32 on GPUs, also inside functions of JAX's that multiply."""
    from chainrule.backend import cells

    cell = there(3, 3).array
    found = []
    cells.computed(
        "pinv", lambda a: found.append(jax.config.jax_default_matmul_precision) or a, (cell,), {}
    )
    assert found == ["highest"]


def test_medium_rounds_to_bfloat16() -> None:
    torch.set_float32_matmul_precision("medium")
    assert rounds()
    conv = nn.Conv1d(1, 1, 1, bias=False).to("xla")
    conv.weight.data.fill_(1 + 2.0**-10)
    assert float(conv(torch.ones(1, 1, 1, device="xla"))) == 1 + 2.0**-10


# --- compiled steps -------------------------------------------------------------------------------


def trained(
    net: nn.Module, x: torch.Tensor, t: torch.Tensor, compiled: bool, enabled: bool = True
) -> tuple[Any, list[float]]:
    """A step with autocast around its forward pass, and the losses of six."""
    net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast("xla", enabled=enabled):
            loss = F.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        return loss.detach()

    function = torch.compile(step) if compiled else step
    return function, [function(x, t).item() for _ in range(6)]


def course_network() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 16),
        nn.ReLU(),
        nn.Linear(16, 10),
    )
    return net.to("xla"), there(16, 1, 8, 8), torch.randint(0, 10, (16,)).to("xla")


def test_a_compiled_step_rounds_as_an_eager_one() -> None:
    net, x, t = course_network()
    _, eager = trained(net, x, t, compiled=False)
    step, losses = trained(net, x, t, compiled=True)
    _, exact = trained(net, x, t, compiled=True, enabled=False)
    assert step.repeated == 3
    np.testing.assert_allclose(losses, eager, rtol=5e-4)  # fused sums, rounded elsewhere
    assert losses[0] == pytest.approx(eager[0], rel=1e-6)
    assert losses[0] != pytest.approx(exact[0], rel=1e-6)
    np.testing.assert_allclose(losses, exact, rtol=0.02)
    operands = {
        i.kernel: i.precision() and i.precision().operands for i in step.program.instructions
    }
    for kernel in ("convolution", "convolution_weight", "linear", "linear_backward"):
        assert str(operands[kernel]) == "bfloat16"
    for kernel in ("cross_entropy", "write_updates", "max_pool_indices"):
        assert operands.get(kernel) is None


def test_xla_is_given_products_of_16_bits() -> None:
    for dtype in TYPES:
        with precision.rounding_to(dtype.array_dtype):
            assert asked() == ((dtype.name, "default"),) * 2
            a = np.ones((3, 3), np.float32)
            traced = jax.make_jaxpr(lambda a: squared(a))(a)  # not one that it knows
        (dot,) = [eqn for eqn in traced.eqns if eqn.primitive.name == "dot_general"]
        assert dot.params["preferred_element_type"] == np.float32


def test_another_mode_is_another_program() -> None:
    net, x = nn.Linear(24, 3, bias=False).to("xla"), there(5, 24)
    inner = torch.compile(lambda x: net(x).detach())
    expected = {}
    for mode in (False, True):
        with torch.autocast("xla", enabled=mode):
            expected[mode] = net(x).detach()
    assert not torch.equal(expected[False], expected[True])
    for mode in (False, True) * 5:
        with torch.autocast("xla", enabled=mode):
            assert torch.equal(inner(x), expected[mode])
    torch.set_float32_matmul_precision("medium")
    for _ in range(5):
        assert torch.equal(inner(x), expected[True])
    with torch.autocast("xla", dtype=torch.float16):
        for _ in range(5):
            assert torch.allclose(inner(x), expected[False], rtol=1e-2, atol=1e-3)
            assert not torch.equal(inner(x), expected[True])
    torch.set_float32_matmul_precision("highest")
    for _ in range(3):
        assert torch.equal(inner(x), expected[False])
    assert len(inner.entries) == 4
    assert inner.repeated > 8


def test_the_same_product_inside_and_outside_is_computed_twice() -> None:
    a = there(6, 6)

    def both(a: torch.Tensor) -> torch.Tensor:
        outside = a @ a
        with torch.autocast("xla"):
            inside = a @ a
        return inside - outside

    function = torch.compile(both)
    for _ in range(5):
        assert torch.equal(function(a), both(a))
        assert float(function(a).abs().max()) > 0
    assert function.repeated


def test_a_mode_that_changes_inside_is_told() -> None:
    a, modes = there(3, 3), iter([True, True, False, True])

    def step(a: torch.Tensor) -> torch.Tensor:
        with torch.autocast("xla", enabled=next(modes)):
            return a @ a

    function = torch.compile(step)
    function(a)
    function(a)
    function(a)
    with pytest.warns(UserWarning, match="calls matmul in another precision than the time before"):
        function(a)


def test_epochs() -> None:
    torch.manual_seed(2)
    net, x, y = nn.Linear(8, 1).to("xla"), there(32, 8), there(32, 1)

    def made() -> Callable[..., torch.Tensor]:
        model = copy.deepcopy(net)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast("xla"):
                loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    eager, compiled = made(), torch.compile(made())
    one_by_one = [eager(x[i : i + 4], y[i : i + 4]).item() for i in range(0, 32, 4)]
    at_once = compiled.epoch(x, y, batch_size=4).tolist()
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


# --- tensors of 16 bits ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_of_16_bits(dtype: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.5], dtype=dtype, device="xla")
    assert (x.dtype, x.device.type, x.itemsize) == (dtype, "xla", 2)
    assert x.tolist() == [1, 2, 3.5]
    for made in (torch.zeros(3, dtype=dtype, device="xla"), torch.ones(3).to(dtype).to("xla")):
        assert (made.dtype, made.device.type) == (dtype, "xla")
    moved = x.cpu()
    assert (moved.dtype, moved.device.type) == (dtype, "cpu")
    for f in (lambda t: t * 3 + t, lambda t: t.sum(), lambda t: t.softmax(0), lambda t: t / 7):
        assert f(x).dtype is dtype
        assert torch.equal(f(x).cpu(), f(moved))
    assert (x + torch.ones(3, device="xla")).dtype is torch.float32
    x.mul_(2)[0] = 9
    assert x.tolist() == [9, 4, 7]


@pytest.mark.parametrize("dtype", TYPES)
def test_training_in_16_bits(dtype: Any) -> None:
    """On the CPU, on a device, compiled there: the same but for an ulp here and there."""
    net, x, t = course_network()
    found = []
    for device, compiled in (("cpu", False), ("xla", False), ("xla", True)):
        small = copy.deepcopy(net).to(dtype).to(device)
        step, losses = trained(small, x.to(dtype).to(device), t.to(device), compiled, enabled=False)
        found.append(losses)
    assert {i.precision().operands for i in step.program.instructions if i.kernel == "linear"} == {
        dtype.array_dtype
    }
    for losses in found[1:]:
        np.testing.assert_allclose(losses, found[0], rtol=8 * TYPES[dtype])
    assert found[0][-1] < found[0][0]


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_16_bits_are_not_widened_first(dtype: Any) -> None:
    a = there(3, 4).to(dtype)
    w = there(2, 4).to(dtype).requires_grad_()
    seen = []
    function = backend.K.linear

    def linear(*args: Any) -> Any:
        seen.append(precision.current().operands)
        return function(*args)

    op = REGISTRY["linear"]
    before, op.raw = op.raw, linear
    try:
        out = F.linear(a, w)
    finally:
        op.raw = before
    assert seen == [dtype.array_dtype]
    assert out.dtype is dtype
    exact = F.linear(a.double(), w.double())
    assert torch.allclose(out.double(), exact, rtol=TYPES[dtype], atol=1e-4)


# --- scaling --------------------------------------------------------------------------------------


def scaled(device: str, compiled: bool, overflows: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The losses and factors of some steps, some of which overflow; the parameters; the step."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    scaler = GradScaler(device, init_scale=1024.0, growth_interval=3)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    function = torch.compile(step) if compiled else step
    found = []
    for i in range(16):
        x = torch.randn(5, 8) * (1e30 if i in overflows else 1.0)
        loss = function(x.to(device))
        found.append((loss.item(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    return np.array(found), [p.detach().cpu() for p in net.parameters()], function


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("overflows", [(), (9,), (0, 1), (0, 1, 2), (5, 6, 11)])
def test_scaling_is_that_of_the_cpu(compiled: bool, overflows: tuple[int, ...]) -> None:
    expected, parameters, _ = scaled("cpu", False, overflows)
    found, ours, step = scaled("xla", compiled, overflows)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for a, b in zip(ours, parameters, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)
    if compiled:
        assert step.repeated > 2
        (entry,) = step.entries.values()
        assert entry.reason == ""


def test_a_step_looks_at_the_gradients_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    function = backend.K.all_finite

    def all_finite(arrays: Any) -> Any:
        looks.append(len(arrays))
        return function(arrays)

    monkeypatch.setattr(backend.K, "all_finite", all_finite)
    read = []
    engine = type(backend.placed.compute.by)
    whole = engine.read
    monkeypatch.setattr(
        engine, "read", lambda self, cell: (read.append(cell), whole(self, cell))[1]
    )
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)).to("xla")
    optimizer, scaler = torch.optim.Adam(net.parameters()), GradScaler("xla")
    x = there(3, 4)
    for _ in range(2):
        scaler.scale(net(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert looks == [4, 4]
    assert not read
    assert optimizer.check_finite


def test_new_numbers_are_a_new_program() -> None:
    w = torch.ones(1, device="xla", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=0.0), GradScaler("xla", 2.0, growth_interval=1000)

    @torch.compile
    def step() -> torch.Tensor:
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return w.detach()

    for _ in range(5):
        step()
    assert step.repeated
    scaler.set_growth_interval(6)
    step()
    assert scaler.get_scale() == 4
    scaler.load_state_dict({**scaler.state_dict(), "scale": 64.0, "_growth_tracker": 5})
    step()
    assert scaler.get_scale() == 128


def test_small_gradients_of_float16_are_saved_by_it() -> None:
    """Products in float16: 1e-9 is zero in it, and 1e-9 times the factor is not."""
    found = []
    for enabled in (False, True):
        w = torch.ones(1, 1, device="xla", requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.0)
        scaler = GradScaler("xla", enabled=enabled)
        with torch.autocast("xla", dtype=torch.float16):
            out = torch.ones(1, 1, device="xla") @ w
        scaler.scale((out * 1e-9).sum()).backward()
        scaler.unscale_(optimizer)
        found.append(float(w.grad))
    assert found[0] == 0
    assert found[1] == pytest.approx(1e-9, rel=1e-3)
