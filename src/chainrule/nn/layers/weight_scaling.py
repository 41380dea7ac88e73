"""The weight scaling of the older form of dropout: what takes the dropped units is scaled."""

from __future__ import annotations

import copy

from chainrule.autograd.modes import no_grad
from chainrule.nn.activations.base import Activation
from chainrule.nn.activations.learned import ParametricActivation, PReLU
from chainrule.nn.activations.vector import GLU, LogSoftmax, Softmax, Softmax2d, Softmin
from chainrule.nn.layers.containers import ModuleDict, ModuleList, Sequential
from chainrule.nn.layers.conv import Convolutional
from chainrule.nn.layers.dropout import DropoutLayer, UnscaledDropout
from chainrule.nn.layers.folding import ChannelShuffle, PixelShuffle, PixelUnshuffle
from chainrule.nn.layers.linear import Linear
from chainrule.nn.layers.norm_sample import Affine
from chainrule.nn.layers.padding import ZeroPad1d, ZeroPad2d, ZeroPad3d
from chainrule.nn.layers.pooling import Pool
from chainrule.nn.layers.shape import Flatten, Identity, Unflatten
from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.base import RNNBase
from chainrule.nn.recurrent.cells import RNNCellBase
from chainrule.ops.creation.patterns import zeros
from chainrule.tensor import Tensor

__all__ = ["weight_scaled"]

# What multiplies its outputs when its inputs are multiplied.
_PROPORTIONAL = (
    ChannelShuffle,
    DropoutLayer,
    Flatten,
    Identity,
    PixelShuffle,
    PixelUnshuffle,
    Pool,
    PReLU,
    Unflatten,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
_OF_VECTORS = (GLU, LogSoftmax, Softmax, Softmax2d, Softmin)
_IN_ORDER = (ModuleDict, ModuleList, Sequential)


def weight_scaled(model: Module) -> Module:
    """A copy of a network for evaluation: weights behind :class:`UnscaledDropout` times 1 - p.

    The rule w <- (1 - p) w is applied to the weights that take the dropped units: of a linear,
    convolutional or recurrent layer behind the dropout, in the order in which the modules were
    registered. Between the two may stand what leaves a dropped unit at 0: pooling, and activations
    with f(0) = 0. A normalization takes the factor into its constants, as if its input had it. What
    does neither (a sigmoid, a residual link) is refused.

    >>> from chainrule import nn
    >>> net = nn.Sequential(nn.UnscaledDropout(0.5), nn.PReLU(), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.constant_(net[2].weight, 4.0)
    >>> scaled = nn.functional.weight_scaled(net)
    >>> scaled[2].weight.tolist(), scaled[1].weight.tolist()
    ([[2.0, 2.0]], [0.25])
    """
    scaled = copy.deepcopy(model).eval()
    with no_grad():
        if _through(scaled, "", 1.0) != 1.0:
            raise ValueError(
                "weight_scaled: behind the last UnscaledDropout comes no module with a weight to "
                "scale"
            )
    return scaled


def _through(module: Module, name: str, keep: float) -> float:
    """Lets a module take the factor, or part of it; what is left for those behind it."""
    if isinstance(module, UnscaledDropout):
        return keep * (1 - module.p)
    children = dict(module.named_children())
    if children and not isinstance(module, (Linear, Convolutional, RNNBase, RNNCellBase)):
        return _through_children(module, children, name, keep)
    if keep == 1.0 or _is_proportional(module):
        return keep
    if isinstance(module, Affine) and keep > 0:
        _take_constants(module, keep)
        return 1.0
    for weight in _weights(module, name):
        weight.mul_(keep)
    return 1.0


def _through_children(module: Module, children: dict[str, Module], name: str, keep: float) -> float:
    ours = type(module).__module__.startswith("chainrule.nn.")
    branches = ours and not isinstance(module, _IN_ORDER)
    if branches and keep != 1.0:
        raise _refused(module, name, "is more than one path")
    for child_name, child in children.items():
        keep = _through(child, f"{name}.{child_name}" if name else child_name, keep)
        if branches and keep != 1.0:
            raise _refused(module, name, "ends a path with UnscaledDropout beside others")
    return keep


def _is_proportional(module: Module) -> bool:
    if isinstance(module, Activation) and not isinstance(module, _OF_VECTORS):
        return float(module(zeros(1))) == 0
    if isinstance(module, ParametricActivation):
        return bool((module(zeros(1)) == 0).all())
    return isinstance(module, _PROPORTIONAL)


def _take_constants(module: Affine, keep: float) -> None:
    """y = (c x - m) / sqrt(v + eps) is (x - m / c) / sqrt(v / c^2 + eps / c^2)."""
    if module.eps is None:
        raise ValueError(
            "weight_scaled: an RMSNorm without eps cannot take a factor; give it a number"
        )
    module.eps = module.eps / (keep * keep)
    mean, var = module._buffers.get("running_mean"), module._buffers.get("running_var")
    if mean is not None and var is not None:
        mean.div_(keep)
        var.div_(keep * keep)


def _weights(module: Module, name: str) -> list[Tensor]:
    """The weights that multiply the inputs of a module."""
    if isinstance(module, (Linear, Convolutional)):
        names = ["weight"]
    elif isinstance(module, RNNBase):
        names = [n for n in module._parameters if n.startswith("weight_ih_l0")]
    elif isinstance(module, RNNCellBase):
        names = ["weight_ih"]
    else:
        raise _refused(module, name, "does not pass a factor on, nor has it weights for it")
    found = [module._parameters.get(n) for n in names]
    if not found or any(w is None for w in found):
        raise _refused(module, name, "has weights that are computed from others")
    return [w for w in found if w is not None]


def _refused(module: Module, name: str, why: str) -> ValueError:
    return ValueError(
        f"weight_scaled: the module {name!r} behind an UnscaledDropout, {type(module).__name__}, "
        f"{why}; use nn.Dropout, which scales in training"
    )
