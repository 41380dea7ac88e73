"""Where the libraries differ: patterns of entries, each with its row of docs/pytorch.md."""

from __future__ import annotations

__all__ = ["DIFFERENCES"]

DIFFERENCES: dict[str, str] = {
    r"optim:.*:errors": "A parameter given twice, an unknown setting in a group",
    r"optim:Muon:.*:(steps|schedules)": "`Muon` keeps the dtype of the parameter in its iteration",
    r"module:KLDivLoss:.*:(values|gradients|second_order)": "`kl_div` refuses negative targets",
    r"module:NLLLoss:float64:errors": "Class weights of another dtype than the input are converted",
    r"module:Hardtanh:float64:signatures": "`Hardtanh` has no `min_value` and `max_value`",
    r"module:CTCLoss:.*:gradients": "`ctc_loss` returns the derivative by its log-probabilities",
    r"op:addbmm:float64:in_place": "`addbmm_` refuses to change the shape of its tensor",
    r"op:cholesky_inverse:.*:forward_mode": "`cholesky_inverse` is differentiated in forward mode",
    r"op:linalg.norm-subgradients_at_zero:.*:second_order": "The second derivative of a norm at 0",
    r"op:cov:.*:second_order": "Weights of `cov` in float32 beside numbers in float64",
}
