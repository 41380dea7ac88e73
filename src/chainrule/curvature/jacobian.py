"""The Jacobians of a model: by its parameters, by its inputs, and of a single layer.

What a model is, and the order of its parameters, is described in ``parameters.py``. ``inputs`` is a
tensor, or a tuple with one entry for each argument. Jacobians are in numerator layout, the output's
dimensions first, (*Y, *X), unless ``layout="denominator"`` asks for (*X, *Y).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule.autograd.func import jvp, vjp
from chainrule.autograd.jacobian import jacfwd, jacrev
from chainrule.curvature.parameters import Model, arguments, as_function, one_tensor
from chainrule.autograd.nested import flatten, map_tree, unflatten
from chainrule.autograd.vmap import vmap
from chainrule.backend import K
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.shape.views import permute, reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Inputs, Nested

__all__ = [
    "LayerJacobian",
    "input_jacobian",
    "layer_jacobian",
    "parameter_jacobian",
    "per_output_hvp",
]


def parameter_jacobian(
    model: Model,
    inputs: Inputs,
    params: Nested | None = None,
    *,
    layout: str = "numerator",
    strategy: str = "reverse-mode",
    chunk_size: int | None = None,
) -> Any:
    """The derivative of the output y by each parameter w, as a tree like the parameters.

    A block has the shape (*Y, *W) in numerator layout, (*W, *Y) in denominator layout. Reverse
    mode makes one pass for each output, forward mode (``strategy="forward-mode"``) one for each
    parameter.

    >>> import chainrule
    >>> from chainrule.curvature.jacobian import parameter_jacobian
    >>> parameter_jacobian(lambda w, x: w * x, chainrule.tensor(3.0), chainrule.ones(2))
    tensor([[3., 0.],
            [0., 3.]])
    """
    function, params = as_function(model, params)
    transform = _transform("parameter_jacobian", strategy, layout)
    jacobian = transform(one_tensor("parameter_jacobian", function), chunk_size=chunk_size)
    found, structure = flatten(jacobian(params, *arguments(inputs)))
    pairs = zip(found, flatten(params)[0], strict=True)
    return unflatten([_laid_out(j, p.ndim, layout) for j, p in pairs], structure)


def input_jacobian(
    model: Model,
    inputs: Inputs,
    params: Nested | None = None,
    *,
    argnum: int = 0,
    per_sample: bool = False,
    layout: str = "numerator",
    strategy: str = "reverse-mode",
    chunk_size: int | None = None,
) -> Tensor:
    """The derivative dy/dx of the output by an input (the one with number ``argnum``).

    A function without ``params`` is called with the inputs alone. The shape is (*Y, *X) in
    numerator layout, (*X, *Y) in denominator layout. With ``per_sample`` all inputs are batches,
    the model sees one sample at a time, and the batch stays in front: (N, *Y, *X).

    >>> import chainrule
    >>> from chainrule.curvature.jacobian import input_jacobian
    >>> w, x = chainrule.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), chainrule.zeros(3)
    >>> input_jacobian(lambda x: w @ x, x).shape
    chainrule.Size([2, 3])
    >>> input_jacobian(lambda x: w @ x, x, layout="denominator").shape
    chainrule.Size([3, 2])
    """
    function = model
    if params is not None or hasattr(model, "named_parameters"):
        of_both, params = as_function(model, params)
        function = lambda *values: of_both(params, *values)  # noqa: E731
    transform = _transform("input_jacobian", strategy, layout)
    jacobian = transform(one_tensor("input_jacobian", function), argnum, chunk_size=chunk_size)

    def at(*values: Any) -> Tensor:
        return _laid_out(jacobian(*values), values[argnum].ndim, layout)

    return (vmap(at) if per_sample else at)(*arguments(inputs))


class LayerJacobian(NamedTuple):
    """The two matrices that are called the Jacobian of a layer with weight W and activation f."""

    activation_to_activation: Tensor  # d f(W x + b) / dx = diag(f'(W x + b)) W
    signal_to_signal: Tensor  # d (W f(s) + b) / ds = W diag(f'(s))


def layer_jacobian(
    weight: Tensor,
    x: Tensor,
    activation: Callable[[Tensor], Tensor],
    bias: Tensor | None = None,
    *,
    layout: str = "numerator",
) -> LayerJacobian:
    """The Jacobians of one layer from activations to activations, and from signals to signals.

    Read ``x`` as the activations of the layer below, with a = f(W x + b), and the first is da/dx =
    diag(f'(W x + b)) W. Read it as the signals s of the layer below, before their activation, and
    the second is ds'/ds = W diag(f'(s)) for s' = W f(s) + b; its transpose carries the delta errors
    down. If f mixes its elements (softmax), its whole Jacobian stands in place of diag(f').

    Shape: ``weight`` (K, D), ``x`` (D), ``bias`` (K); results (K, D), in denominator layout (D, K).

    >>> import chainrule
    >>> from chainrule import curvature
    >>> weight, x = chainrule.tensor([[1.0, 2.0]]), chainrule.zeros(2)
    >>> curvature.layer_jacobian(weight, x, chainrule.sigmoid).activation_to_activation
    tensor([[0.2500, 0.5000]])
    """
    if weight.ndim != 2 or tuple(x.shape) != (weight.shape[1],):
        raise RuntimeError(
            "layer_jacobian: expected a weight of shape (K, D) and x of shape (D,), got "
            f"{tuple(weight.shape)} and {tuple(x.shape)}; for a batch use vmap"
        )
    shift = 0 if bias is None else bias
    jacobians = [
        input_jacobian(lambda v: activation(matmul(weight, v) + shift), x, layout=layout),
        input_jacobian(lambda v: matmul(weight, activation(v)), x, layout=layout),
    ]
    return LayerJacobian(*jacobians)


def per_output_hvp(
    model: Model,
    inputs: Inputs,
    vectors: Nested,
    params: Nested | None = None,
    *,
    chunk_size: int | None = None,
) -> Any:
    """sum_k H^k v_k: the Hessian by the parameters of each output k times a vector of its own.

    ``vectors`` is a tree like the parameters, each tensor with the output's dimensions in front, as
    in :func:`parameter_jacobian`: (*Y, *P). If the v_k are the derivatives of a function of the
    parameter Jacobian by its rows, this is the gradient of that function (flat minimum search).

    >>> import chainrule
    >>> from chainrule import curvature
    >>> x, w, v = chainrule.tensor([3.0]), chainrule.tensor([1.0, 2.0]), chainrule.ones(2, 2)
    >>> curvature.per_output_hvp(lambda w, x: x * w**2, x, v, w)  # H^k has 2 x at (k, k)
    tensor([6., 6.])
    """
    function, params = as_function(model, params)
    f = one_tensor("per_output_hvp", lambda p: function(p, *arguments(inputs)))
    y, _ = vjp(f, params)
    leaves, structure = flatten(params)
    expected = [(*y.shape, *p.shape) for p in leaves]
    shapes = [tuple(v.shape) for v in flatten(vectors)[0]]
    if shapes != expected:
        raise RuntimeError(
            f"per_output_hvp: expected vectors of the shapes (output..., parameter...) {expected}, "
            f"got {shapes}"
        )
    pairs = zip(flatten(vectors)[0], leaves, strict=True)
    rows = unflatten([reshape(v, (y.numel(), *p.shape)) for v, p in pairs], structure)
    units = of_array(K.eye(y.numel(), dtype=y.array.dtype).reshape((y.numel(), *y.shape)))

    def product(unit: Tensor, v: Any) -> Any:
        return jvp(lambda p: vjp(f, p)[1](unit)[0], (params,), (v,))[1]

    products = vmap(product, chunk_size=chunk_size)(units, rows)
    return map_tree(lambda t: sum_over(t, 0), products)


def _transform(op: str, strategy: str, layout: str) -> Callable[..., Any]:
    """jacrev or jacfwd."""
    if layout not in ("numerator", "denominator"):
        raise ValueError(f"{op}: layout must be 'numerator' or 'denominator', got {layout!r}")
    transforms: dict[str, Callable[..., Any]] = {"reverse-mode": jacrev, "forward-mode": jacfwd}
    if strategy not in transforms:
        raise ValueError(
            f"{op}: strategy must be 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )
    return transforms[strategy]


def _laid_out(jacobian: Tensor, input_ndim: int, layout: str) -> Tensor:
    """A Jacobian (output..., input...) in the layout asked for."""
    first = jacobian.ndim - input_ndim
    if layout == "numerator" or first == 0:
        return jacobian
    return permute(jacobian, (*range(first, jacobian.ndim), *range(first)))
