// Sums along dimensions, rows added where integers say, and random masks.
#pragma once

#include "isa.hpp"

namespace chainrule {

// row_sums: out[r] = the sum of row r
// add_rows: out[at[i], begin:end] += g[i, begin:end] for rows of `width` elements
// mask: out[i] = value where the hash of first + i is at most `limit`, else 0
#define CHAINRULE_KERNELS_gather(KERNEL)                                                          \
    KERNEL(void, row_sums, (std::int64_t rows, std::int64_t n, const T* x, T* out))               \
    KERNEL(void, add_rows,                                                                        \
           (std::int64_t count, std::int64_t width, std::int64_t begin, std::int64_t end,         \
            const std::int64_t* at, const T* g, T* out))                                          \
    KERNEL(void, mask,                                                                            \
           (std::int64_t n, std::uint32_t first, std::uint64_t key, std::uint32_t limit, T value, \
            T* out))

CHAINRULE_FAMILY(gather)

}  // namespace chainrule
