"""First and second derivatives of models as matrices: Jacobians, Hessians, Fisher information.

A model is a function ``f(params, *inputs)`` or an object with ``named_parameters()``. The classes
``Hessian``, ``GaussNewton``, ``Fisher`` and ``EmpiricalFisher`` are matrices known by their
products with vectors, for models of any size; the functions form matrices, and can be
differentiated again.
"""

from chainrule.curvature.estimates import (
    Estimate,
    hutch_plus_plus,
    hutchinson_diagonal,
    hutchinson_trace,
)
from chainrule.curvature.hessian import (
    TaylorModel,
    condition_number,
    gauss_newton,
    gauss_newton_product,
    hessian_diagonal,
    hessian_matrix,
    taylor,
)
from chainrule.curvature.information import empirical_fisher, fisher, inverse_hessian, score
from chainrule.curvature.jacobian import (
    LayerJacobian,
    input_jacobian,
    layer_jacobian,
    parameter_jacobian,
    per_output_hvp,
)
from chainrule.curvature.laplace import (
    CramerRao,
    Laplace,
    Prediction,
    cramer_rao,
    residual_variance,
)
from chainrule.curvature.matrices import EmpiricalFisher, Fisher, GaussNewton, Hessian
from chainrule.curvature.parameters import as_function, blocks, last_layer, ravel
from chainrule.curvature.spectrum import (
    Eigenpairs,
    SpectralDensity,
    lanczos_eigenpairs,
    spectral_density,
)
from chainrule.curvature.symmetric import CurvatureMatrix

__all__ = [
    "CramerRao",
    "CurvatureMatrix",
    "Eigenpairs",
    "EmpiricalFisher",
    "Estimate",
    "Fisher",
    "GaussNewton",
    "Hessian",
    "Laplace",
    "LayerJacobian",
    "Prediction",
    "SpectralDensity",
    "TaylorModel",
    "as_function",
    "blocks",
    "condition_number",
    "cramer_rao",
    "empirical_fisher",
    "fisher",
    "gauss_newton",
    "gauss_newton_product",
    "hessian_diagonal",
    "hessian_matrix",
    "hutch_plus_plus",
    "hutchinson_diagonal",
    "hutchinson_trace",
    "input_jacobian",
    "inverse_hessian",
    "lanczos_eigenpairs",
    "last_layer",
    "layer_jacobian",
    "parameter_jacobian",
    "per_output_hvp",
    "ravel",
    "residual_variance",
    "score",
    "spectral_density",
    "taylor",
]
