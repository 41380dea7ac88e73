// Sums along dimensions, rows added where integers say, and random masks.
#pragma once

#include "isa.hpp"

namespace chainrule {

// Rows (outer, inner) that lie in one piece each, so many elements apart; 0 where one is repeated.
struct RowsAt {
    std::int64_t outer, inner, outer_step, inner_step;
    std::int64_t count() const { return outer * inner; }
};

// Bags of row numbers: bag b has those from start(b) to start(b + 1), without the number
// `left_out`.
struct Bags {
    const std::int64_t *rows, *offsets;  // without offsets there are `each` in a bag
    std::int64_t count, given, each;     // numbers, offsets
    std::int64_t left_out;
    std::int64_t start(std::int64_t b) const {
        return offsets == nullptr ? b * each : b < given ? offsets[b] : count;
    }
    std::int64_t size(std::int64_t b) const {
        std::int64_t n = 0;
        for (std::int64_t i = start(b); i < start(b + 1); ++i) n += rows[i] != left_out;
        return n;
    }
};

enum class Pooling { sum, mean, max };

// row_sums: out[r] = the sum of row r
// add_rows: out[at[i], begin:end] += the row i of g, begin:end, for rows of `width` elements
// bag_rows: out[b] = the rows of the table that bag b names, times their weights, pooled
// bag_rows_backward: out[row, begin:end] += what the row has of g[b] for sums and means
// mask: out[i] = value where the hash of first + i is at most `limit`, else 0
#define CHAINRULE_KERNELS_gather(KERNEL)                                                          \
    KERNEL(void, row_sums, (std::int64_t rows, std::int64_t n, const T* x, T* out))               \
    KERNEL(void, add_rows,                                                                        \
           (const RowsAt& rows, std::int64_t width, std::int64_t begin, std::int64_t end,         \
            const std::int64_t* at, const T* g, T* out))                                          \
    KERNEL(void, bag_rows,                                                                        \
           (const Bags& bags, Pooling pooling, std::int64_t width, std::int64_t begin,            \
            std::int64_t end, const T* table, const T* weights, T* out))                          \
    KERNEL(void, bag_rows_backward,                                                               \
           (const Bags& bags, std::int64_t number, bool mean, std::int64_t width,                 \
            std::int64_t begin, std::int64_t end, const T* weights, const T* g, T* out))          \
    KERNEL(void, mask,                                                                            \
           (std::int64_t n, std::uint32_t first, std::uint64_t key, std::uint32_t limit, T value, \
            T* out))

CHAINRULE_FAMILY(gather)

}  // namespace chainrule
