// Sums along dimensions, rows added where integers say, and random masks.
#pragma once

#include "isa.hpp"

namespace chainrule {

// Rows (outer, inner) that lie in one piece each, so many elements apart; 0 where one is repeated.
struct RowsAt {
    std::int64_t outer, inner, outer_step, inner_step;
    std::int64_t count() const { return outer * inner; }
};

// row_sums: out[r] = the sum of row r
// add_rows: out[at[i], begin:end] += the row i of g, begin:end, for rows of `width` elements
// mask: out[i] = value where the hash of first + i is at most `limit`, else 0
#define CHAINRULE_KERNELS_gather(KERNEL)                                                          \
    KERNEL(void, row_sums, (std::int64_t rows, std::int64_t n, const T* x, T* out))               \
    KERNEL(void, add_rows,                                                                        \
           (const RowsAt& rows, std::int64_t width, std::int64_t begin, std::int64_t end,         \
            const std::int64_t* at, const T* g, T* out))                                          \
    KERNEL(void, mask,                                                                            \
           (std::int64_t n, std::uint32_t first, std::uint64_t key, std::uint32_t limit, T value, \
            T* out))

CHAINRULE_FAMILY(gather)

}  // namespace chainrule
