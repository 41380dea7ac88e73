"""Views of a tensor in its own place: ``x.squeeze_()``, and the same memory as another type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import chainrule
from chainrule import Tensor

CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "squeeze": lambda x: x.squeeze_(),
    "squeeze 1": lambda x: x.squeeze_(1),
    "unsqueeze": lambda x: x.unsqueeze_(1),
    "transpose": lambda x: x.transpose_(0, 2),
    "swapaxes": lambda x: x.swapaxes_(0, -1),
    "swapdims": lambda x: x.swapdims_(0, 1),
    "as_strided": lambda x: x.as_strided_((3, 2), (1, 3)),
}


def changed(name: str, x: Tensor) -> Tensor:
    return CHANGES[name](x)


def unchanged(name: str, x: Tensor) -> Tensor:
    """The same without the underscore."""
    args = {
        "squeeze": (),
        "squeeze 1": (1,),
        "unsqueeze": (1,),
        "transpose": (0, 2),
        "swapaxes": (0, -1),
        "swapdims": (0, 1),
        "as_strided": ((3, 2), (1, 3)),
    }[name]
    return getattr(x, name.split()[0])(*args)


@pytest.mark.parametrize("name", CHANGES)
def test_the_tensor_becomes_its_view(name: str) -> None:
    x = chainrule.arange(6.0).reshape(2, 1, 3).clone()
    memory, expected = x.array, unchanged(name, x)
    assert changed(name, x) is x
    assert chainrule.equal(x, expected)
    x.fill_(7)
    assert (memory == 7).all()


@pytest.mark.parametrize("name", CHANGES)
def test_gradients_pass_through(name: str) -> None:
    x = chainrule.arange(6.0).reshape(2, 1, 3).requires_grad_()
    y = x * x
    changed(name, y)
    weights = chainrule.arange(1.0, y.numel() + 1).reshape(y.shape)
    (y * weights).sum().backward()
    z = x.detach().clone().requires_grad_()
    (unchanged(name, z * z) * weights).sum().backward()
    assert chainrule.equal(x.grad, z.grad)


def test_t_in_place() -> None:
    x = chainrule.arange(6).reshape(2, 3)
    assert x.t_().shape == (3, 2)


def test_a_view_changes_its_shape_and_writes_into_its_base() -> None:
    x = chainrule.zeros(2, 3, requires_grad=True)
    base = x * 1
    row = base[0].unsqueeze_(1)
    assert row.shape == (3, 1)
    row.mul_(0)
    row.add_(5)
    assert base.tolist() == [[5.0] * 3, [0.0] * 3]
    base.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [1.0] * 3]


def test_a_leaf_is_refused() -> None:
    x = chainrule.zeros(2, 1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"squeeze_: a leaf .* use squeeze"):
        x.squeeze_()
    with chainrule.no_grad():
        assert x.squeeze_().shape == (2,)


def test_a_view_of_what_has_changed_is_not_written_wrongly() -> None:
    x = chainrule.zeros(2, 3, requires_grad=True)
    base = x * 1
    row = base[0]
    base.t_()
    with pytest.raises(RuntimeError, match="take the view afterwards"):
        row.add_(1)


def test_memory_as_another_type() -> None:
    x = chainrule.tensor([1.0, -2.0])
    bits = x.view(chainrule.int32)
    assert bits.tolist() == [0x3F800000, -0x40000000]
    bits[0] = 0
    assert x.tolist() == [0.0, -2.0]
    assert x.view(dtype=chainrule.uint8).shape == (8,)
    assert x.view(chainrule.float64).shape == (1,)
    with pytest.raises(RuntimeError, match="cannot be read as"):
        chainrule.zeros(3).view(chainrule.float64)
    with pytest.raises(RuntimeError, match=r"use .contiguous\(\)"):
        chainrule.zeros(2, 2).t().view(chainrule.float64)


def test_strides_of_a_view_are_those_of_the_memory_behind_it() -> None:
    x = chainrule.arange(12).reshape(3, 4)
    assert x.t().as_strided((2, 2), (4, 1)).tolist() == [[0, 1], [4, 5]]
    assert x[1].as_strided((2,), (2,)).tolist() == [4, 6]
    assert x[1].as_strided((2,), (2,), 0).tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided((4, 4), (4, 1))
    with pytest.raises(RuntimeError, match="mismatch in length"):
        x.as_strided((4, 4), (4,))


def test_pairs_share_the_memory_of_complex_numbers() -> None:
    x = chainrule.zeros(2, dtype=chainrule.complex64)
    chainrule.view_as_real(x)[0, 1] = 3.0
    assert x.tolist() == [3j, 0j]
    pairs = chainrule.zeros(2, 2)
    chainrule.view_as_complex(pairs)[1] = 1 + 2j
    assert pairs.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    with pytest.raises(RuntimeError, match="last dimension of size 2"):
        chainrule.view_as_complex(chainrule.zeros(3))
    with pytest.raises(RuntimeError, match="only supported for complex"):
        chainrule.view_as_real(pairs)


def test_writing_through_pairs_has_gradients() -> None:
    x = chainrule.ones(2, requires_grad=True)
    z = chainrule.complex(x, 2 * x)
    chainrule.view_as_real(z)[0] = 0.0
    (z.real + z.imag).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0]


def test_the_diagonal_is_filled() -> None:
    assert chainrule.zeros(3, 2).fill_diagonal_(1).tolist() == [[1, 0], [0, 1], [0, 0]]
    tall = chainrule.zeros(5, 2).fill_diagonal_(1, wrap=True)
    assert tall.tolist() == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]]
    assert chainrule.zeros(2, 2, 2).fill_diagonal_(1).sum() == 2
