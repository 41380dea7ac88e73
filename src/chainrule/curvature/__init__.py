"""First and second derivatives of models as matrices: Jacobians, Hessians, Fisher information.

A model is a function ``f(params, *inputs)`` or an object with ``named_parameters()``.
"""

from chainrule.curvature.hessian import (
    TaylorModel, condition_number, gauss_newton, gauss_newton_product, hessian_diagonal,
    hessian_matrix, taylor,
)  # fmt: skip
from chainrule.curvature.information import empirical_fisher, fisher, inverse_hessian, score
from chainrule.curvature.jacobian import (
    LayerJacobian, input_jacobian, layer_jacobian, parameter_jacobian, per_output_hvp,
)  # fmt: skip
from chainrule.curvature.parameters import as_function, blocks, ravel

__all__ = [
    "LayerJacobian", "TaylorModel", "as_function", "blocks", "condition_number",
    "empirical_fisher", "fisher", "gauss_newton", "gauss_newton_product", "hessian_diagonal",
    "hessian_matrix", "input_jacobian", "inverse_hessian", "layer_jacobian", "parameter_jacobian",
    "per_output_hvp", "ravel", "score", "taylor",
]  # fmt: skip
