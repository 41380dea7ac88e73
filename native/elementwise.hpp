// Arithmetic, activations and their slopes, element by element, in one pass over the memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

// What an element costs: a few operations, or a polynomial.
constexpr std::int64_t LIGHT = 1, HEAVY = 4;

// The dtypes that a kernel takes. The normal distribution in float64 is SciPy's, which is exact far
// to the left.
enum class Floats { both, single };

// out[i] = value, of x = in[i]; out may be in. A line has the name, the value, what it costs, the
// dtypes, and the docstring.
#define CHAINRULE_UNARIES(EACH, WITH)   \
    CHAINRULE_PLAIN_UNARIES(EACH, WITH) \
    CHAINRULE_CIRCULAR(EACH, WITH)

// Of these the value is that of numbers which are not far from 0.
#define CHAINRULE_CIRCULAR(EACH, WITH)                          \
    EACH(WITH, sin, (vsin(x)), HEAVY, both, "The sine of a.")   \
    EACH(WITH, cos, (vcos(x)), HEAVY, both, "The cosine of a.") \
    EACH(WITH, tan, (vtan(x)), HEAVY, both, "The tangent of a.")

#define CHAINRULE_PLAIN_UNARIES(EACH, WITH)                                                       \
    EACH(WITH, neg, (-x), LIGHT, both, "-a")                                                      \
    EACH(WITH, square, (x * x), LIGHT, both, "a * a")                                             \
    EACH(WITH, sqrt, (std::sqrt(x)), LIGHT, both, "The square root of a.")                        \
    EACH(WITH, abs, (absolute(x)), LIGHT, both, "a without its sign.")                            \
    EACH(WITH, sign, (sign_of(x)), LIGHT, both, "-1, 0 or 1.")                                    \
    EACH(WITH, floor, (std::floor(x)), LIGHT, both, "The whole number at or below a.")            \
    EACH(WITH, ceil, (std::ceil(x)), LIGHT, both, "The whole number at or above a.")              \
    EACH(WITH, reciprocal, (T(1) / x), LIGHT, both, "1 / a")                                      \
    EACH(WITH, rsqrt, (T(1) / std::sqrt(x)), LIGHT, both, "1 / sqrt(a)")                          \
    EACH(WITH, exp, (vexp(x)), HEAVY, both, "e to the power a.")                                  \
    EACH(WITH, expm1, (vexpm1(x)), HEAVY, both, "exp(a) - 1")                                     \
    EACH(WITH, log, (vlog(x)), HEAVY, both, "The natural logarithm of a.")                        \
    EACH(WITH, log1p, (vlog1p(x)), HEAVY, both, "log(1 + a)")                                     \
    EACH(WITH, sinh, (vsinh(x)), HEAVY, both, "The hyperbolic sine of a.")                        \
    EACH(WITH, cosh, (vcosh(x)), HEAVY, both, "The hyperbolic cosine of a.")                      \
    EACH(WITH, atan, (vatan(x)), HEAVY, both, "The angle of which a is the tangent.")             \
    EACH(WITH, tanh, (vtanh(x)), HEAVY, both, "The hyperbolic tangent of a.")                     \
    EACH(WITH, sigmoid, (vsigmoid(x)), HEAVY, both, "1 / (1 + exp(-a))")                          \
    EACH(WITH, erf, (verf(x)), HEAVY, both, "The error function of a.")                           \
    EACH(WITH, relu, (positive(x)), LIGHT, both, "max(a, 0)")                                     \
    EACH(WITH, softplus, (softplus_of(x)), HEAVY, both, "log(1 + exp(a))")                        \
    EACH(WITH, log_sigmoid, (log_sigmoid_of(x)), HEAVY, both, "log(sigmoid(a))")                  \
    EACH(WITH, silu, (x * vsigmoid(x)), HEAVY, both, "a sigmoid(a)")                              \
    EACH(WITH, gelu_tanh, (gelu_tanh_of(x)), HEAVY, both,                                         \
         "a Phi(a), with Phi approximated by a tanh.")                                            \
    EACH(WITH, normal_cdf, (normal_cdf_of(x)), HEAVY, single, "Phi(a), the normal distribution.") \
    EACH(WITH, gelu, (x * normal_cdf_of(x)), HEAVY, single, "a Phi(a)")

// out[i] = value, of two arrays of one shape, g = gs[i] and y = ys[i]; out may be one of them.
// Those of the slopes take the gradient first (a NaN of relu passes it on), cross-entropy the
// logit.
#define CHAINRULE_BINARIES(EACH, WITH)                                                          \
    EACH(WITH, relu_backward, (y != T(0) ? g : T(0)), LIGHT, both, "g where out is not 0.")     \
    EACH(WITH, tanh_backward, (g * (T(1) - y * y)), LIGHT, both, "g (1 - out^2)")               \
    EACH(WITH, sigmoid_backward, (g * (y - y * y)), LIGHT, both, "g (out - out^2)")             \
    EACH(WITH, softplus_backward, (g * vsigmoid(y)), HEAVY, both, "g sigmoid(a)")               \
    EACH(WITH, log_sigmoid_backward, (g * vsigmoid(-y)), HEAVY, both, "g sigmoid(-a)")          \
    EACH(WITH, silu_backward, (g * silu_slope(y)), HEAVY, both, "g times the slope of silu.")   \
    EACH(WITH, gelu_tanh_backward, (g * gelu_tanh_slope(y)), HEAVY, both,                       \
         "g times the slope of gelu_tanh.")                                                     \
    EACH(WITH, gelu_backward, (g * gelu_slope(y)), HEAVY, single, "g times the slope of gelu.") \
    EACH(WITH, erf_backward, (g * erf_slope(y)), HEAVY, both, "g times the slope of erf.")      \
    EACH(WITH, binary_cross_entropy_with_logits, (softplus_of(g) - g * y), HEAVY, both,         \
         "log(1 + exp(x)) - x y")

// out[i] = a[i] op b[i], where out may be a or b: NAME_pairs; with one number for a: NAME_from;
// with one for b: NAME_with.
#define CHAINRULE_ARITHMETIC(EACH, WITH) \
    EACH(WITH, add, +, "a + b")          \
    EACH(WITH, sub, -, "a - b")          \
    EACH(WITH, mul, *, "a * b")          \
    EACH(WITH, div, /, "a / b")

// elu: scale * (x > 0 ? x : alpha * expm1(rate * x)), and its slope times g
// prelu: x > 0 ? x : slope * x
// hardtanh_backward: g where low < x < high, else 0
// power: a[i] to the power b[i]
// squared_error: the sum of (x - y)^2, in double precision
// scaled_difference: factor * (x - y)
// logits_backward: g * (sigmoid(x) - y)
#define CHAINRULE_KERNELS_elementwise(KERNEL)                                                   \
    CHAINRULE_UNARIES(CHAINRULE_UNARY_KERNEL, KERNEL)                                           \
    CHAINRULE_BINARIES(CHAINRULE_BINARY_KERNEL, KERNEL)                                         \
    CHAINRULE_ARITHMETIC(CHAINRULE_ARITHMETIC_KERNELS, KERNEL)                                  \
    KERNEL(void, elu, (std::int64_t n, const T* x, T alpha, T scale, T rate, T* out))           \
    KERNEL(void, elu_backward,                                                                  \
           (std::int64_t n, const T* g, const T* x, T alpha, T scale, T rate, T* out))          \
    KERNEL(void, prelu, (std::int64_t n, const T* x, T slope, T* out))                          \
    KERNEL(void, prelu_backward, (std::int64_t n, const T* g, const T* x, T slope, T* out))     \
    KERNEL(void, hardtanh_backward,                                                             \
           (std::int64_t n, const T* g, const T* x, T low, T high, T* out))                     \
    KERNEL(void, power, (std::int64_t n, const T* a, const T* b, T* out))                       \
    KERNEL(double, squared_error, (std::int64_t n, const T* x, const T* y))                     \
    KERNEL(void, scaled_difference, (std::int64_t n, const T* x, const T* y, T factor, T* out)) \
    KERNEL(void, logits_backward, (std::int64_t n, const T* g, const T* x, const T* y, T* out))

#define CHAINRULE_UNARY_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name, (std::int64_t n, const T* x, T* out))
#define CHAINRULE_BINARY_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name, (std::int64_t n, const T* g, const T* y, T* out))
#define CHAINRULE_ARITHMETIC_KERNELS(KERNEL, name, ...)                          \
    KERNEL(void, name##_pairs, (std::int64_t n, const T* a, const T* b, T* out)) \
    KERNEL(void, name##_from, (std::int64_t n, T a, const T* b, T* out))         \
    KERNEL(void, name##_with, (std::int64_t n, const T* a, T b, T* out))

CHAINRULE_FAMILY(elementwise)

template <class T>
using UnaryFunction = void (*)(std::int64_t n, const T* x, T* out);
template <class T>
using BinaryFunction = void (*)(std::int64_t n, const T* g, const T* y, T* out);
using Unary = Chosen<elementwise_functions, UnaryFunction>;
using Binary = Chosen<elementwise_functions, BinaryFunction>;

}  // namespace chainrule
