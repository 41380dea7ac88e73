"""Products, convolutions, normalization and softmax."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.onnx.graph import Quantity, is_fixed
from chainrule.onnx.site import Made, Rule, Site
from chainrule.ops.shape.views import transpose

__all__ = ["RULES"]

# --- products -------------------------------------------------------------------------------------


def _linear(s: Site) -> str:
    """Gemm for rows, with the weights as they are; a product with the transposed ones else."""
    biased = s.count == 3
    if s.ndim() == 2 and s.ndim(1) == 2 and s.dtype.is_floating_point:
        return s.add("Gemm", s.x(), s.x(1), *([s.x(2)] if biased else []), transB=1)
    weight = s.fixed_tensor(1)
    if weight is not None:
        turned = s.constant(transpose(weight.detach(), -2, -1), name=f"{s.x(1)}.T")
    else:
        dims = list(range(s.ndim(1)))
        turned = s.add("Transpose", s.x(1), perm=[*dims[:-2], dims[-1], dims[-2]])
    found = s.add("MatMul", s.x(), turned)
    return s.add("Add", found, s.x(2)) if biased else found


def _activated(kind: str) -> Rule:
    return lambda s: s.add(kind, _linear(s))


# --- convolutions ---------------------------------------------------------------------------------


def _conv(s: Site) -> Made:
    """Padding is the same at both ends, unless the size of the output says otherwise."""
    weight = s.shape(1)
    space = len(weight) - 2
    if s.ndim() != space + 2:
        s.fail("it has no batch; add one with unsqueeze(0)")
    kernel = [int(d[0]) for d in weight[2:]]
    stride, padding, dilation = (s.param(k) for k in ("stride", "padding", "dilation"))
    ends = [
        _end(
            s,
            d,
            s.shape()[2 + d],
            s.out_shape()[2 + d],
            kernel[d],
            stride[d],
            padding[d],
            dilation[d],
        )
        for d in range(space)
    ]
    inputs = [s.x(i) for i in range(s.count)]
    return s.add(
        "Conv",
        *inputs,
        kernel_shape=kernel,
        strides=list(stride),
        pads=[*padding, *ends],
        dilations=list(dilation),
        group=s.param("groups"),
    )


def _end(
    s: Site,
    d: int,
    size: Quantity,
    made: Quantity,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
) -> int:
    reach = dilation * (kernel - 1) + 1
    pairs = list(zip(size, made, strict=True))
    if all((n + 2 * padding - reach) // stride + 1 == m for n, m in pairs):
        return int(padding)
    needed = [(m - 1) * stride + reach - n - padding for n, m in pairs]
    if not is_fixed(needed) or needed[0] < 0:
        s.fail(f"the padding along dimension {d + 2} changes with a dynamic axis")
    return int(needed[0])


def _conv_transpose(s: Site) -> Made:
    weight = s.shape(1)
    space = len(weight) - 2
    kernel = [int(d[0]) for d in weight[2:]]
    stride, padding, dilation = (s.param(k) for k in ("stride", "padding", "dilation"))
    extra = []
    for d in range(space):
        pairs = zip(s.shape()[2 + d], s.out_shape()[2 + d], strict=True)
        reach = dilation[d] * (kernel[d] - 1) + 1
        more = [m - ((n - 1) * stride[d] - 2 * padding[d] + reach) for n, m in pairs]
        if not is_fixed(more):
            s.fail(f"its output padding along dimension {d + 2} changes with a dynamic axis")
        extra.append(int(more[0]))
    return s.add(
        "ConvTranspose",
        s.x(),
        s.x(1),
        kernel_shape=kernel,
        strides=list(stride),
        pads=[*padding, *padding],
        output_padding=extra,
        dilations=list(dilation),
        group=s.param("groups"),
    )


# --- normalization --------------------------------------------------------------------------------


def _normalize(s: Site) -> Made:
    """weight * (x - mean) / sqrt(var + eps) + bias; LayerNormalization where that is the same."""
    dims, eps, center = sorted(s.dims()), s.param("eps"), s.param("center")
    last = dims == list(range(s.ndim() - len(dims), s.ndim()))
    if last and center and s.count == 3 and _same_sizes(s.shape(1), s.shape()[dims[0] :]):
        inputs = (s.x(0), s.x(1), s.x(2))
        return s.add("LayerNormalization", *inputs, axis=dims[0], epsilon=float(eps))
    axes, x = s.integers(dims), s.x()
    if center:
        x = s.add("Sub", x, s.add("ReduceMean", x, axes, keepdims=1))
    power = s.add("ReduceMean", s.add("Mul", x, x), axes, keepdims=1)
    found = s.add("Div", x, s.add("Sqrt", s.add("Add", power, s.number_of(eps))))
    if s.count > 1:
        found = s.add("Mul", found, s.x(1))
    return s.add("Add", found, s.x(2)) if s.count > 2 else found


def _same_sizes(first: Sequence[Quantity], second: Sequence[Quantity]) -> bool:
    return [list(d) for d in first] == [list(d) for d in second]


def _softmax(kind: str) -> Rule:
    return lambda s: s.add(kind, s.x(), axis=s.param("dim") % s.ndim())


RULES: dict[str, Rule] = {
    "biased_convolution": _conv,
    "convolution": _conv,
    "convolution_input": _conv_transpose,
    "linear": _linear,
    "linear_relu": _activated("Relu"),
    "linear_sigmoid": _activated("Sigmoid"),
    "linear_tanh": _activated("Tanh"),
    "log_softmax": _softmax("LogSoftmax"),
    "matmul": lambda s: s.add("MatMul", s.x(), s.x(1)),
    "normalize": _normalize,
    "softmax": _softmax("Softmax"),
}
