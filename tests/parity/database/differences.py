"""Where the libraries differ: patterns of entries, each with its row of docs/pytorch.md."""

from __future__ import annotations

__all__ = ["DIFFERENCES"]

# Functions that PyTorch calls with tensors alone.
NUMBERS = (
    "atan2|clamp_max|clamp_min|copysign|eq|fmax|fmin|fmod|gcd|ge|gt|heaviside|igamma|igammac|lcm|ldexp|"
    "le|logical_and|logical_or|logical_xor|lt|maximum|minimum|ne|rsub"
)

DIFFERENCES: dict[str, str] = {
    r"optim:.*:errors": "A parameter given twice, an unknown setting in a group",
    r"optim:Muon:.*:(steps|schedules)": "`Muon` keeps the dtype of the parameter in its iteration",
    r"module:KLDivLoss:.*:(values|gradients|second_order)": "`kl_div` refuses negative targets",
    r"module:NLLLoss:float64:errors": "Class weights of another dtype than the input are converted",
    r"module:Hardtanh:float64:signatures": "`Hardtanh` has no `min_value` and `max_value`",
    r"op:addbmm:float64:in_place": "`addbmm_` refuses to change the shape of its tensor",
    r"op:cholesky_inverse:.*:forward_mode": "`cholesky_inverse` is differentiated in forward mode",
    r"op:linalg.norm-subgradients_at_zero:.*:second_order": "The second derivative of a norm at 0",
    r"op:cov:.*:second_order": "Weights of `cov` in float32 beside numbers in float64",
    rf"op:({NUMBERS}):float64:errors": "take a Python number on either side",
    r"op:(cat|gather|kthvalue):float64:errors": "`out` that overlaps itself",
    r"op:nn.functional.margin_ranking_loss:(float64|int64):values": (
        "A loss between shapes that are not equal"
    ),
    r"op:nn.functional.hinge_embedding_loss:float64:values": (
        "A loss between shapes that are not equal"
    ),
    r"op:nn.functional.gaussian_nll_loss:.*:(values|gradients|second_order|forward_mode)": (
        "A loss between shapes that are not equal"
    ),
    r"op:logcumsumexp:.*:forward_mode": "`logcumsumexp` is differentiated in forward mode",
    r"op:(sigmoid|nn.functional.silu-complex):complex128:values": "far to the left",
}
