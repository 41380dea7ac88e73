// Activations and their slopes, element by element, in one pass over the memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

// One input: out[i] = f(x[i]).
enum Unary {
    U_EXP, U_TANH, U_SIGMOID, U_ERF, U_RELU, U_SOFTPLUS, U_LOG_SIGMOID, U_SILU, U_GELU_TANH,
    U_NORMAL_CDF, U_GELU, UNARIES
};

// Two inputs of one shape: out[i] = f(g[i], y[i]); those of the slopes take the gradient first.
enum Binary {
    B_RELU, B_TANH, B_SIGMOID, B_SOFTPLUS, B_LOG_SIGMOID, B_SILU, B_GELU_TANH, B_GELU, B_ERF,
    B_CROSS_ENTROPY, BINARIES
};

template <class T>
struct elementwise_functions {
    void (*unary[UNARIES])(std::int64_t n, const T* x, T* out);
    void (*binary[BINARIES])(std::int64_t n, const T* g, const T* y, T* out);
    // scale * (x > 0 ? x : alpha * expm1(rate * x)), and its slope times g
    void (*elu)(std::int64_t n, const T* x, T alpha, T scale, T rate, T* out);
    void (*elu_backward)(std::int64_t n, const T* g, const T* x, T alpha, T scale, T rate, T* out);
    // x > 0 ? x : slope * x
    void (*prelu)(std::int64_t n, const T* x, T slope, T* out);
    void (*prelu_backward)(std::int64_t n, const T* g, const T* x, T slope, T* out);
    // g * (sigmoid(x) - y)
    void (*logits_backward)(std::int64_t n, const T* g, const T* x, const T* y, T* out);
};

struct elementwise_table {
    elementwise_functions<float> f;
    elementwise_functions<double> d;
};

CHAINRULE_TABLES(elementwise)

}  // namespace chainrule
