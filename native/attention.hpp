// Attention: softmax(scale q k' + mask) v of each head, without an array of all weights.
//
// A block of rows of queries is done at a time: its scores with all keys stay in the cache. The
// forward pass leaves the logarithm of the sum of each row, from which the backward pass computes
// the weights again.
#pragma once

#include "isa.hpp"

namespace chainrule {

// One head of one sample. Rows of queries (L, D), keys (S, D), values (S, E) and the output (L, E)
// lie so many elements apart; `mask` may be null, and its rows 0 apart: one for all.
template <class T>
struct AttentionHead {
    std::int64_t L, S, D, E;
    const T *q, *k, *v, *mask;
    std::int64_t q_row, k_row, v_row, mask_row;
    T scale;
    bool causal;  // the query i reads from the keys up to i
};

// Gradients; their rows lie like those of (L, heads, D) in one piece, `row` elements for D.
template <class T>
struct AttentionSlopes {
    const T *g, *lse;
    std::int64_t g_row;
    T *gq, *gk, *gv;
    std::int64_t gq_row, gv_row;  // of gq and gk, of gv
};

// attention_room, attention_backward_room: how many elements of memory the kernels need
// attention: the rows [begin, end) of the output, and lse (L), the logarithms of the sums of the
// exponentials; -inf where a query may read nothing
// attention_backward: the gradients of a head
#define CHAINRULE_KERNELS_attention(KERNEL)                                             \
    KERNEL(std::int64_t, attention_room, (const AttentionHead<T>& head))                \
    KERNEL(std::int64_t, attention_backward_room, (const AttentionHead<T>& head))       \
    KERNEL(void, attention,                                                             \
           (const AttentionHead<T>& head, std::int64_t begin, std::int64_t end, T* out, \
            std::int64_t out_row, T* lse, T* memory))                                   \
    KERNEL(void, attention_backward,                                                    \
           (const AttentionHead<T>& head, const AttentionSlopes<T>& slopes, T* memory))

CHAINRULE_FAMILY(attention)

}  // namespace chainrule
