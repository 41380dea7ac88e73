"""Tables of vectors: gradients that are held back, norms, bags, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn.functional import embedding, embedding_bag, one_hot


def table(rows: int = 5, size: int = 3) -> chainrule.Tensor:
    values = np.random.default_rng(0).normal(size=(rows, size))
    return chainrule.tensor(values, requires_grad=True)


def test_a_row_is_a_product_with_one_hot() -> None:
    w, x = table(), chainrule.tensor([[0, 3], [4, 4]])
    assert_close(embedding(x, w).detach(), (one_hot(x, 5).double() @ w).detach())


def test_gradients_add_up() -> None:
    w = table()
    embedding(chainrule.tensor([1, 1, 4]), w).sum().backward()
    assert w.grad[:, 0].tolist() == [0, 2, 0, 0, 1]


@pytest.mark.parametrize("padding_idx", [1, -4])
def test_padding_gets_no_gradient(padding_idx: int) -> None:
    w, x = table(), chainrule.tensor([1, 1, 4])
    out = embedding(x, w, padding_idx)
    assert_close(out.detach(), w.detach()[x])
    out.sum().backward()
    assert w.grad[:, 0].tolist() == [0, 0, 0, 0, 1]
    tangent = chainrule.func.jvp(
        lambda w: embedding(x, w, padding_idx), (w.detach(),), (chainrule.ones_like(w.detach()),)
    )[1]
    assert tangent[:, 0].tolist() == [0, 0, 1]


def test_frequency_divides_the_gradient() -> None:
    w, x = table(), chainrule.tensor([1, 1, 4, 1])
    out = embedding(x, w, scale_grad_by_freq=True)
    assert_close(out.detach(), w.detach()[x], rtol=0, atol=0)
    out.sum().backward()
    assert_close(w.grad[:, 0], np.array([0, 1.0, 0, 0, 1]))


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_rows_in_use_are_shortened(norm_type: float) -> None:
    w = table()
    before = w.detach().clone().numpy()
    with chainrule.no_grad():
        embedding(chainrule.tensor([0, 2, 2]), w, max_norm=0.5, norm_type=norm_type)
    after = np.linalg.norm(w.detach().numpy(), norm_type, axis=1)
    assert_close(after[[0, 2]], np.array([0.5, 0.5]), rtol=1e-6)
    assert_close(w.detach()[[1, 3, 4]], before[[1, 3, 4]])


def test_a_layer_starts_with_zeros_for_padding() -> None:
    layer = nn.Embedding(4, 3, padding_idx=-1)
    assert layer.padding_idx == 3
    assert not layer.weight[3].detach().numpy().any()
    assert layer.weight[:3].detach().numpy().all()


def test_from_pretrained() -> None:
    w = table().detach()
    layer = nn.Embedding.from_pretrained(w, padding_idx=1)
    assert not layer.weight.requires_grad
    assert_close(layer.weight, w)
    free = nn.EmbeddingBag.from_pretrained(w, freeze=False, mode="sum")
    assert free.weight.requires_grad
    assert repr(free) == "EmbeddingBag(5, 3, mode='sum')"


# --- bags -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_by_offsets_and_by_rows_agree(mode: str) -> None:
    w, x = table(), chainrule.tensor([[0, 3], [4, 4], [2, 1]])
    flat = embedding_bag(x.flatten(), w, chainrule.tensor([0, 2, 4]), mode=mode)
    last = embedding_bag(
        x.flatten(), w, chainrule.tensor([0, 2, 4, 6]), mode=mode, include_last_offset=True
    )
    assert_close(flat.detach(), embedding_bag(x, w, mode=mode).detach())
    assert_close(last.detach(), flat.detach())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_empty_bags_are_zero(mode: str) -> None:
    w = table()
    out = embedding_bag(chainrule.tensor([1, 2]), w, chainrule.tensor([0, 0, 2]), mode=mode)
    assert out[0].tolist() == out[2].tolist() == [0, 0, 0]
    padded = embedding_bag(chainrule.tensor([[1, 1], [1, 2]]), w, mode=mode, padding_idx=1)
    assert padded[0].tolist() == [0, 0, 0]
    assert_close(padded[1].detach(), w[2].detach())
    padded.sum().backward()
    assert w.grad[1].tolist() == [0, 0, 0]


def test_frequency_in_bags() -> None:
    """With a gradient of one everywhere, each row in use gets one."""
    w = table()
    x = chainrule.tensor([[0, 1, 1], [1, 3, 3]])
    embedding_bag(x, w, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert_close(w.grad[:, 0], np.array([1, 1.0, 0, 1, 0]))


def test_weights_of_a_sum() -> None:
    w, x = table(), chainrule.tensor([[0, 3], [4, 4]])
    weights = chainrule.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=chainrule.float64)
    out = embedding_bag(x, w, mode="sum", per_sample_weights=weights)
    v = w.detach().numpy()
    assert_close(out.detach(), np.stack([v[0] + 2 * v[3], 2 * v[4]]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 3])
def test_what_follows_the_last_offset_is_in_no_bag(mode: str, padding_idx: int | None) -> None:
    """In one operation, and in those that transformations see."""
    w, x = table().detach(), chainrule.tensor([0, 3, 4, 2, 1])
    offsets = chainrule.tensor([0, 2, 2, 4])

    def bags(w: Any) -> Any:
        return embedding_bag(
            x, w, offsets, mode=mode, include_last_offset=True, padding_idx=padding_idx
        )

    first = bags(w)
    cut = embedding_bag(x[:4], w, offsets[:3], mode=mode, padding_idx=padding_idx)
    assert_close(first, cut)
    assert_close(chainrule.func.vmap(bags)(w[None])[0], cut)
    assert_close(chainrule.func.jacrev(bags)(w), chainrule.func.jacfwd(bags)(w))


# --- errors ---------------------------------------------------------------------------------------


def test_embedding_refuses() -> None:
    w = table()
    with pytest.raises(IndexError, match="embedding: index 5 is out of bounds .* size 5"):
        embedding(chainrule.tensor([0, 5]), w)
    with pytest.raises(IndexError, match="embedding: index -1 is out of bounds"):
        embedding(chainrule.tensor([-1]), w)
    with pytest.raises(RuntimeError, match="embedding: expected dtype int32 or int64 for index"):
        embedding(chainrule.tensor([0.0]), w)
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        embedding(chainrule.tensor([0]), w[0])
    with pytest.raises(AssertionError, match="padding_idx must be within the 5 embeddings, got 5"):
        nn.Embedding(5, 3, padding_idx=5)
    with pytest.raises(AssertionError, match="2-dimensional, got shape"):
        nn.Embedding.from_pretrained(w[0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "min"}, ValueError, "mode has to be one of sum, mean or max, got 'min'"),
        ({"offsets": chainrule.tensor([0])}, ValueError, "if input is 2D, then offsets"),
        ({"input": chainrule.tensor([1])}, ValueError, "offsets has to be a 1D Tensor"),
        ({"input": chainrule.tensor(1)}, ValueError, "input has to be 1D or 2D"),
        ({"per_sample_weights": chainrule.ones(2)}, ValueError, "same shape as input"),
        (
            {"per_sample_weights": chainrule.ones(2, 2), "mode": "max"},
            NotImplementedError,
            "only supported for mode='sum', got mode='max'",
        ),
        ({"mode": "max", "scale_grad_by_freq": True}, ValueError, "max mode does not support"),
        (
            {"input": chainrule.tensor([1, 2]), "offsets": chainrule.tensor([1])},
            RuntimeError,
            r"offsets must begin with 0.*got \[1\]",
        ),
        (
            {"input": chainrule.tensor([1, 2]), "offsets": chainrule.tensor([0, 3])},
            RuntimeError,
            r"not exceed the length of input \(2\)",
        ),
    ],
)
def test_bags_refuse(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        embedding_bag(
            **({"input": chainrule.tensor([[0, 1], [2, 3]]), "weight": table()} | arguments)
        )
