// Pooling in up to three dimensions: maxima, averages, and the transposes of both.
#pragma once

#include "isa.hpp"

namespace chainrule {

// One dimension: the window of output i is the elements begin[i], begin[i] + dilation, ...,
// count[i] of them, all inside the input.
struct PoolAxis {
    std::int64_t in, out, dilation;
    const std::int64_t *begin, *count;
    const std::int64_t* counted;  // how many elements an average divides by
    // The outputs [from, to) have windows of the same length that begin `stride` apart.
    std::int64_t from, to, stride;
};

// Fewer dimensions than three: the leading ones are 1.
struct PoolShape {
    PoolAxis axis[3];
    double divisor;  // of averages; 0: what the axes count
};

// All work on the channels [from, to).
// max: where the maxima lie in each channel: the first of equal ones, the last NaN
// gather: y[i] = x[index[i]] in channels of m and n elements; false, with part of it done, at an
// index that is outside
// scatter: x = 0; x[index[i]] = y[i], or += if `add`
// Indices have 64 bits, or 32 (max32, gather32, scatter32).
#define CHAINRULE_KERNELS_pool(KERNEL)                                                             \
    KERNEL(                                                                                        \
        void, max,                                                                                 \
        (const PoolShape& s, std::int64_t from, std::int64_t to, const T* x, std::int64_t* index)) \
    KERNEL(                                                                                        \
        void, max32,                                                                               \
        (const PoolShape& s, std::int64_t from, std::int64_t to, const T* x, std::int32_t* index)) \
    KERNEL(void, average,                                                                          \
           (const PoolShape& s, std::int64_t from, std::int64_t to, const T* x, T* y))             \
    KERNEL(void, average_transpose,                                                                \
           (const PoolShape& s, std::int64_t from, std::int64_t to, const T* y, T* x))             \
    KERNEL(bool, gather,                                                                           \
           (std::int64_t n, std::int64_t m, std::int64_t from, std::int64_t to, const T* x,        \
            const std::int64_t* index, T* y))                                                      \
    KERNEL(bool, gather32,                                                                         \
           (std::int64_t n, std::int64_t m, std::int64_t from, std::int64_t to, const T* x,        \
            const std::int32_t* index, T* y))                                                      \
    KERNEL(bool, scatter,                                                                          \
           (std::int64_t n, std::int64_t m, std::int64_t from, std::int64_t to, bool add,          \
            const T* y, const std::int64_t* index, T* x))                                          \
    KERNEL(bool, scatter32,                                                                        \
           (std::int64_t n, std::int64_t m, std::int64_t from, std::int64_t to, bool add,          \
            const T* y, const std::int32_t* index, T* x))

CHAINRULE_FAMILY(pool)

}  // namespace chainrule
