"""Twenty whole programs on both libraries: the import is all that differs, the losses agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from program_runner import FOLDER, PROGRAMS, assert_same_text, run

torch = pytest.importorskip("torch")

import chainrule  # noqa: E402
from parity.shared_draws import shared_draws  # noqa: E402

DOUBLE = [name for name in PROGRAMS if "float64)" in (FOLDER / f"{name}.py").read_text()]


@pytest.fixture(autouse=True)
def _default_type() -> Iterator[None]:
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.py"
    tolerance = 2e-8 if name in DOUBLE else 1e-5
    ours, our_text = run(path, "chainrule", tmp_path / "chainrule")
    with shared_draws():
        theirs, their_text = run(path, "torch", tmp_path / "torch")
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    assert_same_text(our_text, their_text, tolerance)


def test_a_wrong_loss_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(
        "import torch\n"
        "def main():\n"
        "    torch.manual_seed(0)\n"
        "    x = torch.nn.Linear(3, 2)(torch.rand(4, 3)).mean().item()\n"
        "    return [x * (1 + 1e-4 * (torch.__name__ == 'torch'))]\n"
    )
    ours, _ = run(path, "chainrule", tmp_path)
    with shared_draws():
        theirs, _ = run(path, "torch", tmp_path)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_what_is_drawn_is_shared_and_given_back() -> None:
    kept = torch.randn, torch.Tensor.uniform_, torch.nn.functional.dropout

    def draws(lib):
        lib.manual_seed(3)
        g = lib.Generator().manual_seed(4)
        x = lib.randn(3, 2, generator=g)
        loader = lib.utils.data.DataLoader(lib.arange(5), batch_size=2, shuffle=True, generator=g)
        split = lib.utils.data.random_split(range(6), [4, 2])
        drop = lib.nn.functional.dropout(lib.ones(8), 0.4)
        seen = [x, lib.rand(2), lib.randperm(4), lib.randint(0, 9, (3,)), lib.randn_like(x), drop]
        seen += [lib.empty(3).uniform_(-1, 2), lib.bernoulli(lib.full((5,), 0.4)), *loader]
        seen += [lib.multinomial(lib.ones(4), 2), lib.distributions.Normal(x, 1.0).sample()]
        seen += [lib.nn.Linear(2, 2).weight.detach(), lib.tensor(list(split[0]))]
        return [t.numpy().copy() for t in seen]

    ours = draws(chainrule)
    with shared_draws():
        theirs = draws(torch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert a.dtype == b.dtype
    assert kept == (torch.randn, torch.Tensor.uniform_, torch.nn.functional.dropout)
    assert not np.allclose(draws(torch)[0], theirs[0])
