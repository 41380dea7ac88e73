"""Complex numbers: what PyTorch computes with them is computed here, to the same value."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import Case, assert_close, case, complex_values, map_arrays, parts, torch_call
from samples import ALL, BY_FAMILY
from samples.record import Sample

from chainrule.tensor import of_array

torch = pytest.importorskip("torch")

# What PyTorch computes with complex numbers and chainrule does not, or not to the same value.
DIFFERENT = {
    "sigmoid[far out]": "PyTorch overflows to NaN far to the left, where it is 0",
    "softplus": "compared with logaddexp, for PyTorch's softplus refuses complex numbers too",
    "nn.functional.mse_loss": "a loss that is no real number has no minimum",
    "nn.functional.smooth_l1_loss": "PyTorch takes complex numbers for beta = 0 alone: l1_loss",
    "nn.functional.poisson_nll_loss": "a loss that is no real number has no minimum",
    "nn.functional.soft_margin_loss": "a loss that is no real number has no minimum",
    "adaptive_avg_pool1d": "PyTorch takes complex numbers for a size of 1 alone: mean",
    "adaptive_avg_pool2d": "PyTorch takes complex numbers for a size of 1 alone: mean",
    "adaptive_avg_pool3d": "PyTorch takes complex numbers for a size of 1 alone: mean",
    "nn.functional.rnn_tanh": "recurrent layers are for real numbers",
    "nn.functional.rnn_tanh_cell": "recurrent layers are for real numbers",
    "nn.functional.gru": "recurrent layers are for real numbers",
    "nn.functional.gru_cell": "recurrent layers are for real numbers",
    "nn.functional.lstm": "recurrent layers are for real numbers",
    "nn.functional.lstm_cell": "recurrent layers are for real numbers",
    "softmax": "PyTorch takes complex numbers where there are none",
    "log_softmax": "PyTorch takes complex numbers where there are none",
    "cholesky_inverse": "of a factor whose diagonal is not real, which is none",
    "bincount[weights]": "PyTorch drops the imaginary parts of weights",
}
IN_TORCH = [
    s
    for s in ALL
    if s.torch != "" and case(s).values and not s.name.startswith(("ops.", "linalg."))
]
# Without decompositions: of several right answers PyTorch may choose another one.
COMPARED = [
    s
    for s in IN_TORCH
    if s not in BY_FAMILY["linalg"] and s.name not in DIFFERENT and s.label not in DIFFERENT
]


def both(sample: Sample) -> tuple[Any, Any]:
    """PyTorch's result and ours at complex inputs; PyTorch's is None where it refuses them."""
    c = Case(sample, case(sample).args)
    values = complex_values(c)
    given = iter(values)
    args = map_arrays(
        lambda a: torch.from_numpy((next(given) if a.dtype == "float64" else a).copy()), c.args
    )
    try:
        theirs = torch_call(torch, sample, args)
    except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return None, None
    return theirs, c(*[of_array(v) for v in values])


@pytest.mark.parametrize("sample", COMPARED, ids=[s.label for s in COMPARED])
def test_what_pytorch_computes_is_computed(sample: Sample) -> None:
    theirs, ours = both(sample)
    if theirs is None:
        pytest.skip("PyTorch has none for complex numbers")
    assert_close(
        [y.numpy() for y in parts(ours)],
        [y.resolve_conj().numpy() for y in parts(theirs)],
        rtol=1e-8,
        atol=1e-10,
    )
