// Softmax along the last dimension and cross-entropy with class numbers, row by row.
#pragma once

#include "isa.hpp"

namespace chainrule {

// softmax: rows x n, each row shifted by its largest element; `log`: the logarithm of the softmax
// softmax_backward: the slopes out * (g - sum(g * out)), and g - exp(out) * sum(g) for the
// logarithm cross_entropy: the softmax p and log(sum(exp(x))) - x[target] of each row; 0 where the
// target is ignored cross_entropy_backward: (p - one_hot) * g[row] (or g[0], `one`), 0 where the
// target is ignored
#define CHAINRULE_KERNELS_softmax(KERNEL)                                                    \
    KERNEL(void, softmax, (std::int64_t rows, std::int64_t n, bool log, const T* x, T* out)) \
    KERNEL(void, softmax_backward,                                                           \
           (std::int64_t rows, std::int64_t n, bool log, const T* g, const T* out, T* to))   \
    KERNEL(void, cross_entropy,                                                              \
           (std::int64_t rows, std::int64_t n, std::int64_t ignore, const T* x,              \
            const std::int64_t* target, T* p, T* losses))                                    \
    KERNEL(void, cross_entropy_backward,                                                     \
           (std::int64_t rows, std::int64_t n, std::int64_t ignore, bool one, const T* g,    \
            const T* p, const std::int64_t* target, T* out))

CHAINRULE_FAMILY(softmax)

}  // namespace chainrule
