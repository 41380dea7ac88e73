// Activations and their slopes, element by element, in one pass over the memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

// One input: out[i] = f(x[i]); out may be x.
enum Unary {
    U_EXP,
    U_TANH,
    U_SIGMOID,
    U_ERF,
    U_RELU,
    U_SOFTPLUS,
    U_LOG_SIGMOID,
    U_SILU,
    U_GELU_TANH,
    U_NORMAL_CDF,
    U_GELU,
    U_NEG,
    U_SQUARE,
    U_SQRT,
    UNARIES
};

// Two inputs of one shape: out[i] = f(g[i], y[i]); those of the slopes take the gradient first, and
// out may be one of them.
enum Binary {
    B_RELU,
    B_TANH,
    B_SIGMOID,
    B_SOFTPLUS,
    B_LOG_SIGMOID,
    B_SILU,
    B_GELU_TANH,
    B_GELU,
    B_ERF,
    B_CROSS_ENTROPY,
    BINARIES
};

enum Arithmetic { ADD, SUB, MUL, DIV, ARITHMETIC };

template <class T>
struct elementwise_functions {
    void (*unary[UNARIES])(std::int64_t n, const T* x, T* out);
    void (*binary[BINARIES])(std::int64_t n, const T* g, const T* y, T* out);
    // out[i] = a[i] op b[i], where out may be a or b; with one number for a, and with one for b
    void (*pairs[ARITHMETIC])(std::int64_t n, const T* a, const T* b, T* out);
    void (*from_number[ARITHMETIC])(std::int64_t n, T a, const T* b, T* out);
    void (*with_number[ARITHMETIC])(std::int64_t n, const T* a, T b, T* out);
    // scale * (x > 0 ? x : alpha * expm1(rate * x)), and its slope times g
    void (*elu)(std::int64_t n, const T* x, T alpha, T scale, T rate, T* out);
    void (*elu_backward)(std::int64_t n, const T* g, const T* x, T alpha, T scale, T rate, T* out);
    // x > 0 ? x : slope * x
    void (*prelu)(std::int64_t n, const T* x, T slope, T* out);
    void (*prelu_backward)(std::int64_t n, const T* g, const T* x, T slope, T* out);
    // the sum of (x - y)^2, in double precision, and factor * (x - y)
    double (*squared_error)(std::int64_t n, const T* x, const T* y);
    void (*scaled_difference)(std::int64_t n, const T* x, const T* y, T factor, T* out);
    // g * (sigmoid(x) - y)
    void (*logits_backward)(std::int64_t n, const T* g, const T* x, const T* y, T* out);
};

struct elementwise_table {
    elementwise_functions<float> f;
    elementwise_functions<double> d;
};

CHAINRULE_TABLES(elementwise)

template <class T>
const elementwise_functions<T>& elementwise_of();
template <>
inline const elementwise_functions<float>& elementwise_of<float>() {
    return elementwise().f;
}
template <>
inline const elementwise_functions<double>& elementwise_of<double>() {
    return elementwise().d;
}

}  // namespace chainrule
