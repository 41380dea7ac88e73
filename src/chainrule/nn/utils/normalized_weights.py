"""Weights kept to a norm by hooks, with the names that PyTorch's functions of old give them.

The newer functions of the same names are in ``parametrizations``. Here the module keeps its class:
before every call a hook computes ``weight`` from what is learned, which stands beside it.
"""

from __future__ import annotations

from typing import TypeVar

from chainrule.autograd.modes import no_grad
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter, update_buffer
from chainrule.nn.utils.parametrizations import as_matrix, norm_except, outputs_dim
from chainrule.linalg import vector_norm
from chainrule.ops.creation.sampling import randn
from chainrule.ops.elementwise.options import clamp
from chainrule.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

_Layer = TypeVar("_Layer", bound=Module)


class _Computed:
    """A hook before forward that computes a tensor of its module."""

    name: str

    def compute(self, module: Module) -> Tensor:
        """What the tensor is for this call."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute(module))


def _take(op: str, module: Module, name: str, kind: type[_Computed]) -> Parameter:
    """A parameter that a hook shall compute from now on, taken from its module."""
    for hook in module._forward_pre_hooks.all():
        if isinstance(hook.function, kind) and hook.function.name == name:
            raise RuntimeError(f"{op}: cannot register two {op} hooks on the same parameter {name}")
    weight = module._parameters.get(name)
    if weight is None:
        raise ValueError(f"{op}: {module} has no parameter {name!r}")
    delattr(module, name)
    return weight


def _give_back(op: str, module: Module, name: str, kind: type[_Computed]) -> None:
    """Makes the tensor of a hook an ordinary parameter again, with its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook.function, kind) and hook.function.name == name:
            del module._forward_pre_hooks[key]
            with no_grad():
                weight = hook.function.compute(module)
            delattr(module, name)
            for part in ("g", "v", "orig", "u"):
                if f"{name}_{part}" in {**module._parameters, **module._buffers}:
                    delattr(module, f"{name}_{part}")
            module.register_parameter(name, Parameter(weight.detach()))
            return
    raise ValueError(f"{op} of '{name}' not found in {module}")


# --- weight normalization -------------------------------------------------------------------------


class _WeightNorm(_Computed):
    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, dim

    def compute(self, module: Module) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))


def weight_norm(module: _Layer, name: str = "weight", dim: int | None = 0) -> _Layer:
    """Learns length and direction of a weight apart: w = g v / |v|, as ``weight_g``, ``weight_v``.

    The norm is one for each entry of ``dim``, or one for the whole tensor if ``dim`` is None.

    >>> from chainrule import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict()), layer.weight_g.shape
    (['bias', 'weight_g', 'weight_v'], chainrule.Size([2, 1]))
    """
    weight = _take("weight_norm", module, name, _WeightNorm)
    function = _WeightNorm(name, dim)
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight.detach(), dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, function.compute(module))
    module.register_forward_pre_hook(function)
    return module


def remove_weight_norm(module: _Layer, name: str = "weight") -> _Layer:
    """Makes a weight that :func:`weight_norm` computes an ordinary parameter again.

    >>> from chainrule import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> sorted(nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    _give_back("weight_norm", module, name, _WeightNorm)
    return module


# --- spectral normalization -----------------------------------------------------------------------


class _SpectralNorm(_Computed):
    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def unit(self, x: Tensor) -> Tensor:
        """The vector of length 1 in the same direction."""
        return x / clamp(vector_norm(x), min=self.eps)

    def compute(self, module: Module) -> Tensor:
        weight = getattr(module, f"{self.name}_orig")
        held = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        u, v = held
        if module.training:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = self.unit(matrix.detach().T @ u)
                    u = self.unit(matrix.detach() @ v)
                for buffer, new in zip(held, (u, v), strict=True):
                    update_buffer(buffer, new)
        # Copies, so that a second forward pass does not change what this one's gradient needs.
        u, v = u.clone(), v.clone()
        return weight / (u @ (matrix @ v))


def spectral_norm(
    module: _Layer,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> _Layer:
    """Divides a weight by its largest singular value: W / sigma, sigma = u^T W v.

    W is ``weight_orig``; the singular vectors u and v are the buffers ``weight_u`` and
    ``weight_v``, improved by ``n_power_iterations`` steps of the power method at every call in
    training. They count as constants in the gradient.

    >>> from chainrule import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if n_power_iterations <= 0:
        raise ValueError(
            "spectral_norm: Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )
    weight = _take("spectral_norm", module, name, _SpectralNorm)
    dim = outputs_dim(module) if dim is None else dim
    function = _SpectralNorm(name, n_power_iterations, dim, eps)
    module.register_parameter(f"{name}_orig", weight)
    matrix = as_matrix(weight.detach(), dim)
    for part, size in zip("uv", matrix.shape, strict=True):
        module.register_buffer(
            f"{name}_{part}", function.unit(randn(size, dtype=matrix.dtype, device=matrix.device))
        )
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(function)
    return module


def remove_spectral_norm(module: _Layer, name: str = "weight") -> _Layer:
    """Makes a weight that :func:`spectral_norm` computes an ordinary parameter again.

    >>> from chainrule import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> sorted(nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    training = module.training
    module.training = False  # the vectors stay as they are
    try:
        _give_back("spectral_norm", module, name, _SpectralNorm)
    finally:
        module.training = training
    return module
