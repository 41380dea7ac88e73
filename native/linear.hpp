// Products of small matrices and sums of rows; large products are BLAS's.
#pragma once

#include "isa.hpp"

namespace chainrule {

// Up to this many multiplications, and so many terms in a sum, BLAS is slower than `product`.
constexpr std::int64_t SMALL_PRODUCT = 16384, SMALL_DEPTH = 256;

constexpr std::int64_t THIN = 4, FEW = 2;

// Panels of so many rows, and of at most 32 columns, are packed at a time: they stay in the cache.
constexpr std::int64_t PANEL_DEPTH = 1024, PACKED = PANEL_DEPTH * 32;

// product: C (m, n) = A (m, k) B (k, n), C in one piece: the element (i, p) of A lies at
// a[i * a_row + p * a_col], (p, j) of B at b[p * b_row + j * b_col]. For few multiplications or few
// columns. `start` (n) is what the sums start from, or null.
// product_panels: the same for any sizes, with the rows of C `ldc` apart; `packed` has room for
// PACKED elements
// product_thin: C = A B with the columns of A in one piece each, `lda` apart, and n <= THIN: BLAS
// is slow there dots: c[i * c_step] = start[i * start_step] + the product of the row i of A (m, k),
// whose rows lie `lda` apart, and x (k); `start` may be null sum_blocks: the sum of `count` blocks
// of n elements each that lie `step` apart sum_rows: out (n) = the sum of `rows` rows that lie `ld`
// apart
#define CHAINRULE_KERNELS_linear(KERNEL)                                                    \
    KERNEL(void, product,                                                                   \
           (std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row, \
            std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col,         \
            const T* start, T* c))                                                          \
    KERNEL(void, product_panels,                                                            \
           (std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row, \
            std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col,         \
            const T* start, T* c, std::int64_t ldc, T* packed))                             \
    KERNEL(void, product_thin,                                                              \
           (std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda,   \
            const T* b, std::int64_t ldb, const T* start, T* c))                            \
    KERNEL(void, dots,                                                                      \
           (std::int64_t m, std::int64_t k, const T* a, std::int64_t lda, const T* x,       \
            const T* start, std::int64_t start_step, T* c, std::int64_t c_step))            \
    KERNEL(double, sum_blocks,                                                              \
           (std::int64_t count, std::int64_t step, std::int64_t n, const T* x))             \
    KERNEL(void, sum_rows, (std::int64_t rows, std::int64_t n, const T* x, std::int64_t ld, T* out))

CHAINRULE_FAMILY(linear)

}  // namespace chainrule
