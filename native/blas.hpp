// The matrix product of SciPy's BLAS, found when it is first needed: no second BLAS is linked.
#pragma once

#include <cstdint>

namespace chainrule {

// C (m, n) = alpha * op(A) (m, k) op(B) (k, n) + beta * C for row-major matrices whose rows lie
// lda, ldb, ldc elements apart. Computed by the calling thread alone.
void gemm(bool trans_a, bool trans_b, int m, int n, int k, float alpha, const float* a, int lda,
          const float* b, int ldb, float beta, float* c, int ldc);
void gemm(bool trans_a, bool trans_b, int m, int n, int k, double alpha, const double* a, int lda,
          const double* b, int ldb, double beta, double* c, int ldc);

// While there is one, all products are computed by the threads that ask for them. OpenBLAS counts
// its threads for the whole process, so what it had before comes back with the last of these.
struct OneThread {
    OneThread();
    ~OneThread();
    OneThread(const OneThread&) = delete;
};

// Finds the functions; needs the GIL. False with a Python error set if SciPy does not have them.
bool find_blas();

}  // namespace chainrule
