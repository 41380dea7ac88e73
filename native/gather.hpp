// Sums along dimensions, rows added where integers say, and random masks.
#pragma once

#include "isa.hpp"

namespace chainrule {

template <class T>
struct gather_functions {
    // out[r] = the sum of row r
    void (*row_sums)(std::int64_t rows, std::int64_t n, const T* x, T* out);
    // out[at[i], begin:end] += g[i, begin:end] for rows of `width` elements
    void (*add_rows)(std::int64_t count, std::int64_t width, std::int64_t begin, std::int64_t end,
                     const std::int64_t* at, const T* g, T* out);
    // out[i] = value where the hash of first + i is at most `limit`, else 0
    void (*mask)(std::int64_t n, std::uint32_t first, std::uint64_t key, std::uint32_t limit,
                 T value, T* out);
};

struct gather_table {
    gather_functions<float> f;
    gather_functions<double> d;
};

CHAINRULE_TABLES(gather)

}  // namespace chainrule
