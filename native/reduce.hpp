// One number of a row: the largest, a norm, a variance; and sums along the way.
#pragma once

#include "isa.hpp"

namespace chainrule {

// largest, smallest: NaN if there is one
// place_of: where a value, or the first NaN if it is that, stands first
// total: the sum; product
// about: the sum of (x - center)^2
// sizes: the sum of |x|; powers: that of |x|^p
// exponentials: the sum of exp(x - shift)
// running: out[i] = x[0] + ... + x[i], each `step` elements from the next, which may be negative
#define CHAINRULE_KERNELS_reduce(KERNEL)                                  \
    KERNEL(T, largest, (std::int64_t n, const T* x))                      \
    KERNEL(T, smallest, (std::int64_t n, const T* x))                     \
    KERNEL(std::int64_t, place_of, (std::int64_t n, const T* x, T value)) \
    KERNEL(T, total, (std::int64_t n, const T* x))                        \
    KERNEL(T, product, (std::int64_t n, const T* x))                      \
    KERNEL(T, about, (std::int64_t n, const T* x, T center))              \
    KERNEL(T, sizes, (std::int64_t n, const T* x))                        \
    KERNEL(T, powers, (std::int64_t n, const T* x, T p))                  \
    KERNEL(T, exponentials, (std::int64_t n, const T* x, T shift))        \
    KERNEL(T, logarithm, (T x))                                           \
    KERNEL(void, running, (std::int64_t n, std::int64_t step, const T* x, T* out))

CHAINRULE_FAMILY(reduce)

}  // namespace chainrule
