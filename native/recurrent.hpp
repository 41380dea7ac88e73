// Recurrent layers over a whole sequence, for some rows of the batch: they do not depend on others.
//
// The contributions of the input are given; weights are packed (panels.inc). L is the number of
// steps, N the batch, H the size of the state, S that of an LSTM's output. Arrays without strides
// are contiguous.
#pragma once

#include "isa.hpp"

namespace chainrule {

// (L, N, ...) with its last dimension contiguous.
template <class T>
struct Steps {
    const T* data;
    std::int64_t step, row;
    const T* at(std::int64_t t, std::int64_t n) const { return data + t * step + n * row; }
};

struct Span {
    std::int64_t steps, batch, hidden;
    const unsigned char* mask;  // (L, N), or null; 0 where the state is held
    bool reverse;
};

#define CHAINRULE_NONLINEARITIES(EACH) EACH(tanh) EACH(relu) EACH(sigmoid)
#define CHAINRULE_EACH(name) name,
enum class Nonlinearity { CHAINRULE_NONLINEARITIES(CHAINRULE_EACH) };
#undef CHAINRULE_EACH

template <class T>
struct RnnForward {
    Span span;
    Nonlinearity nonlinearity;
    Steps<T> x;       // (L, N, H)
    const T *h0, *w;  // (N, H); (H, H) packed
    T* out;           // (L, N, H)
};

template <class T>
struct RnnBackward {
    Span span;
    Nonlinearity nonlinearity;
    Steps<T> g;             // (L, N, H)
    const T *out, *w;       // (L, N, H); (H, H) packed
    T *gx, *carry, *total;  // (L, N, H), (N, H), and memory (N, H)
};

template <class T>
struct LstmForward {
    Span span;
    std::int64_t size;        // S
    Steps<T> x;               // (L, N, 4H)
    const T *h0, *c0;         // (N, S), (N, H)
    const T *w, *projection;  // (S, 4H) and (H, S) packed; the latter may be null
    const T* peepholes;       // (3, H) for i, f and o, or null
    T *h, *c, *gates;         // (L, N, S), (L, N, H), (L, N, 4H)
    T* memory;                // (N, H) if there is a projection
};

template <class T>
struct LstmBackward {
    Span span;
    std::int64_t size;
    Steps<T> gh, gc;            // (L, N, S), (L, N, H)
    const T *c, *gates, *c0;    // (L, N, H), (L, N, 4H), (N, H)
    const T *w, *projection;    // (4H, S) and (S, H) packed; the latter may be null
    const T* peepholes;         // (3, H), or null
    T *gx, *carry_h, *carry_c;  // (L, N, 4H), (N, S), (N, H)
    T* arrived;                 // (L, N, S) if there is a projection
    T *total, *memory;          // (N, S), and (N, H) if there is a projection
};

template <class T>
struct GruForward {
    Span span;
    Steps<T> x;           // (L, N, 3H)
    const T *h0, *w, *b;  // (N, H), (H, 3H) packed, (3H)
    T *out, *kept;        // (L, N, H), (L, N, 4H)
    T* memory;            // (N, 3H)
};

template <class T>
struct GruBackward {
    Span span;
    Steps<T> g;                    // (L, N, H)
    const T *out, *kept, *h0, *w;  // (L, N, H), (L, N, 4H), (N, H), (3H, H) packed
    T *gx, *gp, *carry;            // (L, N, 3H), (L, N, 3H), (N, H)
    T *total, *direct;             // memory (N, H): the gradient of h, its part z
};

// The gradient of the weights: the sum over all rows of the products of g and the state before.
template <class T>
struct WeightGradient {
    std::int64_t gates, size;  // G, S
    const T* g;                // (L * N, G)
    // The states before, (., S), in two pieces: the first state stands at one end of time.
    std::int64_t rows[2];
    const T* states[2];
    T* out;  // (G, S)
};

// weight_gradient: for the panels [begin, end) of the gates, each of `panel_width` columns; the
// layers: each for the rows [begin, end) of the batch
#define CHAINRULE_KERNELS_recurrent(KERNEL)                                                       \
    KERNEL(std::int64_t, packed_size, (std::int64_t n, std::int64_t k))                           \
    KERNEL(void, pack,                                                                            \
           (std::int64_t n, std::int64_t k, const T* b, std::int64_t down, std::int64_t across,   \
            T* packed))                                                                           \
    KERNEL(std::int64_t, panel_width, ())                                                         \
    KERNEL(void, weight_gradient,                                                                 \
           (const WeightGradient<T>& a, std::int64_t begin, std::int64_t end))                    \
    KERNEL(void, rnn, (const RnnForward<T>& a, std::int64_t begin, std::int64_t end))             \
    KERNEL(void, rnn_backward, (const RnnBackward<T>& a, std::int64_t begin, std::int64_t end))   \
    KERNEL(void, lstm, (const LstmForward<T>& a, std::int64_t begin, std::int64_t end))           \
    KERNEL(void, lstm_backward, (const LstmBackward<T>& a, std::int64_t begin, std::int64_t end)) \
    KERNEL(void, gru, (const GruForward<T>& a, std::int64_t begin, std::int64_t end))             \
    KERNEL(void, gru_backward, (const GruBackward<T>& a, std::int64_t begin, std::int64_t end))

CHAINRULE_FAMILY(recurrent)

}  // namespace chainrule
