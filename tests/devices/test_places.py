"""What programs of PyTorch's do with tensors on a device, and what they are told."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import chainrule as torch
from chainrule import func, nn, train
from chainrule.nn import functional as F
from chainrule.nn.utils.rnn import pack_padded_sequence

pytest.importorskip("jax")

PLACE = "xla"


def there(*shape: int) -> Any:
    return torch.ones(*shape, device=PLACE)


# --- what is made inside --------------------------------------------------------------------------

LENGTHS = torch.tensor([4, 2])
RANDOM: dict[str, Callable[[str], Any]] = {
    "bernoulli": lambda d: torch.bernoulli(torch.full((40,), 0.5, device=d)),
    "bernoulli_": lambda d: torch.ones(9, device=d).bernoulli_(torch.full((9,), 0.5, device=d)),
    "multinomial": lambda d: torch.multinomial(torch.ones(9, device=d), 4),
    "multinomial again": lambda d: torch.multinomial(torch.ones(9, device=d), 40, True),
    "normal": lambda d: torch.normal(torch.zeros(9, device=d), torch.ones(9, device=d)),
    "Normal": lambda d: torch.distributions.Normal(torch.zeros(3, device=d), 1.0).sample((2,)),
    "Categorical": lambda d: torch.distributions.Categorical(torch.ones(3, device=d)).sample((4,)),
    "Gamma": lambda d: torch.distributions.Gamma(torch.ones(3, device=d), 1.0).sample(),
    "alpha_dropout": lambda d: F.alpha_dropout(torch.ones(9, device=d), training=True),
    "fractional_max_pool2d": lambda d: F.fractional_max_pool2d(
        torch.arange(36.0, device=d).reshape(1, 1, 6, 6), 2, output_size=3
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_the_cpus(name: str) -> None:
    torch.manual_seed(5)
    wanted = RANDOM[name]("cpu")
    torch.manual_seed(5)
    found = RANDOM[name](PLACE)
    assert found.device.type == PLACE
    assert torch.allclose(found.cpu(), wanted, rtol=1e-6)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jacrev": func.jacrev(lambda x: x.sin() * x.roll(1)),
    "jacfwd": func.jacfwd(lambda x: x.sin() * x.roll(1)),
    "hessian": func.hessian(lambda x: (x.sin() * x.roll(1)).sum()),
    "vmap of grad": lambda x: func.vmap(func.grad(lambda y: y.sin() * y))(x),
    "third": lambda x: func.vmap(func.grad(func.grad(func.grad(lambda y: y.exp() * y.sin()))))(x),
    "vjp": lambda x: func.vjp(torch.sin, x)[1](x)[0],
    "unused": lambda x: torch.autograd.grad(
        x.detach().requires_grad_().sum(), [x.clone().requires_grad_()], materialize_grads=True
    )[0],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformations_stay_on_the_device(name: str) -> None:
    x = torch.arange(1.0, 5.0)
    wanted, found = TRANSFORMS[name](x), TRANSFORMS[name](x.to(PLACE))
    assert found.device.type == PLACE
    assert torch.allclose(found.cpu(), wanted, rtol=1e-5, atol=1e-6)


def test_derivatives_of_second_order_and_their_check() -> None:
    x = there(2).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: x.tanh() * x, x)
    assert torch.autograd.gradgradcheck(lambda x: x.tanh() * x, x)


@pytest.mark.parametrize("part", [0, 1])
def test_an_output_that_nobody_uses(part: int) -> None:
    """Its gradient is zeros on the device, also where it is differentiated again."""
    found = []
    for place in ("cpu", PLACE):
        a = (torch.arange(12.0).reshape(4, 3) ** 0.7).double().to(place).requires_grad_()
        y = torch.linalg.qr(a)[part]
        (g,) = torch.autograd.grad((y**3).sum(), a, create_graph=True)
        found.append(torch.autograd.grad((g * g).sum(), a)[0])
    assert found[1].device.type == PLACE
    assert torch.allclose(found[1].cpu(), found[0], rtol=1e-6, atol=1e-9)


def test_gradients_of_rows_that_numbers_on_the_cpu_choose() -> None:
    x = there(3, 2).requires_grad_()
    x[torch.tensor([0, 2, 0])].sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [1, 1]]
    assert x.grad.device.type == PLACE


def test_packed_sequences() -> None:
    net, x = nn.LSTM(3, 2), torch.arange(24.0).reshape(4, 2, 3) / 10
    wanted = net(pack_padded_sequence(x, LENGTHS))[0]
    found = copy.deepcopy(net).to(PLACE)(pack_padded_sequence(x.to(PLACE), LENGTHS))[0]
    assert found.data.device.type == PLACE
    assert found.batch_sizes.is_cpu
    assert torch.allclose(found.cpu().data, wanted.data, atol=1e-6)


# --- between devices ------------------------------------------------------------------------------


def test_copies_go_both_ways() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.equal(torch.zeros(2, 2).copy_(x.to(PLACE)), x)
    assert torch.equal(torch.zeros(2, 2, device=PLACE).copy_(x).cpu(), x)
    y = torch.zeros(2, 2)
    y[0] = x.to(PLACE)[1]
    assert y.tolist() == [[2, 3], [0, 0]]
    assert y.is_cpu


@pytest.mark.parametrize("whole", [False, True])
def test_files_are_loaded_to_a_device(whole: bool, tmp_path: Any) -> None:
    net = nn.Linear(3, 2).to(PLACE)
    torch.save(net if whole else net.state_dict(), tmp_path / "a")

    def weight(place: Any) -> Any:
        found = torch.load(tmp_path / "a", map_location=place, weights_only=not whole)
        return found.weight if whole else found["weight"]

    for place in (PLACE, torch.device(PLACE), {"cpu": PLACE}, lambda t, at: t.to(PLACE)):
        assert weight(place).device.type == PLACE
        assert torch.equal(weight(place), net.weight)
    for place in (None, "cpu", {"cuda:0": "cpu"}):
        assert weight(place).is_cpu
    with pytest.raises(RuntimeError, match="'cuda' is not available.*JAX finds no gpu"):
        weight("cuda")


def assigned() -> None:
    p = there(2).requires_grad_()
    p.grad = torch.ones(2)


MIXED: dict[str, Callable[[], Any]] = {
    "add": lambda: there(2) + torch.ones(2),
    "add_": lambda: torch.ones(2).add_(there(2)),
    "linear": lambda: nn.Linear(2, 2)(there(1, 2)),
    "cross_entropy": lambda: F.cross_entropy(there(2, 2), torch.tensor([0, 1])),
    "nll_loss": lambda: F.nll_loss(there(2, 2), torch.tensor([0, 1])),
    "gather": lambda: there(2, 2).gather(0, torch.zeros(1, 2, dtype=torch.int64)),
    "index": lambda: torch.ones(2)[torch.tensor([0], device=PLACE)],
    "where": lambda: torch.where(there(2) > 0, there(2), torch.ones(2)),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixing_devices_is_an_error(name: str) -> None:
    words = r"Expected all tensors to be on the same device, .* xla:0 and cpu! Move one .*\.to\("
    with pytest.raises(RuntimeError, match=words):
        MIXED[name]()


def test_a_gradient_lies_where_its_tensor_does() -> None:
    with pytest.raises(RuntimeError, match=r"grad: .*different device: cpu, .*\.to\('xla:0'\)"):
        assigned()


def test_devices_that_are_not_there() -> None:
    for name in ("cuda", "gpu", 0):
        with pytest.raises(RuntimeError, match=r"'cuda' is not available.*'jax\[cuda13\]'"):
            torch.ones(2).to(name)
    with pytest.raises(RuntimeError, match="'mps' is not available; .*'cuda' .or 'gpu'., 'tpu'"):
        torch.device("mps")
    with pytest.raises(RuntimeError, match="xla:7 is not available; there "):
        torch.device("xla:7")
    with pytest.raises(RuntimeError, match="'cuda' is not available.*JAX finds no gpu"):
        torch.Generator("cuda")
    with pytest.raises(RuntimeError, match=r"device_ids: .*xla:99 is not available.*leave it out"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2).to(PLACE), device_ids=[99])


def test_memory_that_runs_out_names_sizes_and_the_batch() -> None:
    words = (
        r"float32.*: out of memory on the device; take a smaller batch.*Out of memory allocating"
    )
    with pytest.raises(torch.cuda.OutOfMemoryError, match=words):
        (there(1 << 20, 1) @ there(1, 1 << 22))[0, 0].item()


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (3.5, "Trainer: device must be a name such as 'cpu', got 3.5"),
        ("float16", "'float16' is not available"),
        ("cuda", "'cuda' is not available"),
    ],
)
def test_a_trainer_names_a_device_that_is_none(device: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        train.Trainer(nn.Linear(1, 1), "mse", device=device)


def test_memory_that_runs_out_for_views_and_checks() -> None:
    """What a view shows is computed, too, and a check waits for what was computed before it."""
    with pytest.raises(torch.OutOfMemoryError, match=r"broadcast_to of float32\[1048576, 1\], wh"):
        there(1 << 20, 1).expand(1 << 20, 1 << 22).clone().sum().item()
    x = there(1 << 20, 1) @ there(1, 1 << 22)
    with pytest.raises(torch.OutOfMemoryError, match="take a smaller batch"):
        torch.backend.K.all_finite([x.array])


def test_generators_have_a_device_and_the_same_numbers() -> None:
    for place in (PLACE, torch.device(PLACE)):
        g = torch.Generator(device=place).manual_seed(3)
        assert g.device == g.clone_state().device == torch.device(PLACE)
        drawn = torch.rand(3, device=PLACE, generator=g)
        assert torch.equal(drawn.cpu(), torch.rand(3, generator=torch.Generator().manual_seed(3)))
    assert torch.Generator().device == torch.device("cpu")


def test_new_tensors_lie_beside_their_model() -> None:
    x = there(2)
    for y in (x.new_full((2,), 3), x.new(2, 3), x.new([1.0]), torch.ones(2).type_as(x)):
        assert (y.device, y.dtype) == (x.device, x.dtype)
    assert x.new_full((2,), 3, device="cpu").is_cpu
    assert x.type_as(torch.ones(2, dtype=torch.float64)).is_cpu
    with torch.device(PLACE):
        assert torch.zeros(2, device="cpu").new_full((2,), 1).is_cpu


def test_numbers_that_repeat_stay_there() -> None:
    repeated = torch.repeat_interleave(torch.tensor([1, 2], device=PLACE))
    assert (repeated.tolist(), repeated.device.type) == ([0, 1, 1], PLACE)


def test_types_tell_the_device() -> None:
    x = there(2)
    assert x.type() == "chainrule.xla.FloatTensor"
    assert x.type("torch.DoubleTensor").type() == "chainrule.DoubleTensor"
    assert torch.ones(2).type("chainrule.xla.LongTensor").type() == "chainrule.xla.LongTensor"
    assert x.type(torch.float64).device == x.type("float64").device == x.device
    assert x.type(torch.FloatTensor).is_cpu
    assert not isinstance(x, torch.FloatTensor)
    with pytest.raises(ValueError, match=r"invalid type 'torch\.mps\.FloatTensor'; use a dtype"):
        x.type("torch.mps.FloatTensor")


@pytest.mark.parametrize("place", ["cpu", PLACE])
def test_views_know_where_they_begin(place: str) -> None:
    x = torch.arange(12.0).reshape(3, 4).to(place)
    assert [v.storage_offset() for v in (x[1:], x[1:, 2:], x.T[1], x.view(-1))] == [4, 6, 1, 0]
    assert x[1:, 1:].as_strided((2, 2), (4, 1)).tolist() == [[5.0, 6.0], [9.0, 10.0]]
    x[2:].as_strided((2,), (1,)).add_(100)
    assert x[2].tolist() == [108.0, 109.0, 10.0, 11.0]


def test_memory_on_a_device_has_no_address() -> None:
    with pytest.raises(RuntimeError, match=r"data_ptr: a tensor on xla:0 has no address.*x\.cpu"):
        there(2).data_ptr()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is JAX's CPU."""
    torch.backend.devices.jax()
    monkeypatch.setitem(torch.backend.devices.KINDS, "cuda", "cpu")


@pytest.mark.usefixtures("gpu")
def test_streams_are_the_order_of_the_program() -> None:
    """What loaders do that copy batches ahead."""
    ahead, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(ahead):
        x = torch.ones(2, pin_memory=True).cuda(non_blocking=True)
    torch.cuda.current_stream().wait_stream(ahead)
    x.record_stream(torch.cuda.current_stream())
    ahead.record_event(event).wait()
    ahead.wait_event(event)
    ahead.synchronize()
    assert event.elapsed_time(ahead.record_event(torch.cuda.Event(enable_timing=True))) >= 0
    assert torch.cuda.default_stream() == ahead
    assert (ahead.query(), ahead.device) == (True, torch.device("cuda:0"))
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("gpu")
def test_types_of_tensors_on_a_gpu() -> None:
    Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
    x = Tensor([1.0, 2.0])
    assert (x.type(), x.is_cuda, tuple(Tensor(2, 3).shape)) == (
        "chainrule.cuda.FloatTensor",
        True,
        (2, 3),
    )
    assert isinstance(x, Tensor)
    assert torch.ones(2).type(torch.cuda.LongTensor).type() == "chainrule.cuda.LongTensor"
    assert torch.ones(2).type("torch.cuda.FloatTensor").is_cuda
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    assert torch.zeros(2).is_cuda
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.zeros(2).is_cpu


def test_sparse_tensors_come_back() -> None:
    x = torch.eye(2, device=PLACE).to_sparse()
    assert x.device.type == PLACE
    assert x.cpu().device.type == "cpu"
    with pytest.raises(RuntimeError, match=r"not available on xla:0: sparse .*use \.cpu\(\) first"):
        x @ torch.ones(2, 2, device=PLACE)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, i: x[i, i], IndexError),
        (lambda x, i: x.clone().index_put_((i, i), x[0, 0]), IndexError),
        (lambda x, i: F.one_hot(i, 3), RuntimeError),
        (lambda x, i: x.index_select(0, i), IndexError),
    ],
)
def test_an_index_out_of_range_is_told(call: Callable[[Any, Any], Any], error: Any) -> None:
    with pytest.raises(error, match=r"-9\b"):
        call(there(3, 4), torch.tensor([0, -9], device=PLACE))
