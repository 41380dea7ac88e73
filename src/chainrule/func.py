"""Transformations of functions: ``from chainrule.func import grad, jvp, vmap``."""

from chainrule.autograd.func import grad, grad_and_value, hvp, jvp, value_and_grad, vjp
from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.jacobian import hessian, jacfwd, jacrev
from chainrule.autograd.vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
]
