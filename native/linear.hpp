// Products of small matrices and sums of rows; large products are BLAS's.
#pragma once

#include "isa.hpp"

namespace chainrule {

// Up to this many multiplications a loop is faster than a call of BLAS.
constexpr std::int64_t SMALL_PRODUCT = 256;

constexpr std::int64_t THIN = 4;

template <class T>
struct linear_functions {
    // C (m, n) = A B: the element (i, p) of A (m, k) lies at a[i * row + p * col], the rows of B
    // (k, n) `ldb` apart, C in one piece. `start` (n) is what the sums start from, or null.
    void (*product)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row,
                    std::int64_t col, const T* b, std::int64_t ldb, const T* start, T* c);
    // C = A B^T with the rows of A and of B (n, k), which is small, in one piece each
    void (*product_t)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row,
                      const T* b, std::int64_t ldb, const T* start, T* c);
    // C = A B with the columns of A in one piece each, `lda` apart, and n <= THIN: BLAS is slow there
    void (*product_thin)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                         std::int64_t lda, const T* b, std::int64_t ldb, const T* start, T* c);
    // out (n) = the sum of `rows` rows that lie `ld` apart
    void (*sum_rows)(std::int64_t rows, std::int64_t n, const T* x, std::int64_t ld, T* out);
};

struct linear_kernels_table {
    linear_functions<float> f;
    linear_functions<double> d;
};

CHAINRULE_TABLES(linear_kernels)

}  // namespace chainrule
