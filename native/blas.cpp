#include "blas.hpp"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#endif

namespace chainrule {
namespace {

template <class T>
using Gemm = void (*)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);

Gemm<float> sgemm = nullptr;
Gemm<double> dgemm = nullptr;
int (*threads_of_this_thread)(int) = nullptr;  // openblas_set_num_threads_local

void* capsule(PyObject* table, const char* name) {
    PyObject* found = PyDict_GetItemString(table, name);  // borrowed
    if (found == nullptr || !PyCapsule_CheckExact(found)) {
        PyErr_Format(PyExc_ImportError, "scipy.linalg.cython_blas has no function %s", name);
        return nullptr;
    }
    return PyCapsule_GetPointer(found, PyCapsule_GetName(found));
}

#if defined(__linux__)
// OpenBLAS can use one thread for the calls of one thread; other libraries are left as they are.
int look_for_openblas(dl_phdr_info* info, std::size_t, void*) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "scipy_openblas") == nullptr ||
        std::strstr(info->dlpi_name, "scipy.libs") == nullptr)
        return 0;
    void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    threads_of_this_thread =
        reinterpret_cast<int (*)(int)>(dlsym(library, "openblas_set_num_threads_local"));
    if (threads_of_this_thread == nullptr)
        threads_of_this_thread = reinterpret_cast<int (*)(int)>(
            dlsym(library, "scipy_openblas_set_num_threads_local"));
    return threads_of_this_thread != nullptr;
}
#endif

// Row-major C = A B is column-major C' = B' A'.
template <class T>
void product(Gemm<T> function, bool trans_a, bool trans_b, int m, int n, int k, T alpha, const T* a,
             int lda, const T* b, int ldb, T beta, T* c, int ldc) {
    char ta = trans_a ? 'T' : 'N', tb = trans_b ? 'T' : 'N';
    const int before = threads_of_this_thread != nullptr ? threads_of_this_thread(1) : 0;
    function(&tb, &ta, &n, &m, &k, &alpha, const_cast<T*>(b), &ldb, const_cast<T*>(a), &lda, &beta,
             c, &ldc);
    if (threads_of_this_thread != nullptr) threads_of_this_thread(before);
}

}  // namespace

bool find_blas() {
    if (dgemm != nullptr) return true;
    PyObject* module = PyImport_ImportModule("scipy.linalg.cython_blas");
    if (module == nullptr) return false;
    PyObject* table = PyObject_GetAttrString(module, "__pyx_capi__");
    Py_DECREF(module);
    if (table == nullptr) return false;
    void* single = capsule(table, "sgemm");
    void* twice = single == nullptr ? nullptr : capsule(table, "dgemm");
    Py_DECREF(table);
    if (twice == nullptr) return false;
#if defined(__linux__)
    dl_iterate_phdr(look_for_openblas, nullptr);
#endif
    sgemm = reinterpret_cast<Gemm<float>>(single);
    dgemm = reinterpret_cast<Gemm<double>>(twice);
    return true;
}

void gemm(bool trans_a, bool trans_b, int m, int n, int k, float alpha, const float* a, int lda,
          const float* b, int ldb, float beta, float* c, int ldc) {
    product<float>(sgemm, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(bool trans_a, bool trans_b, int m, int n, int k, double alpha, const double* a, int lda,
          const double* b, int ldb, double beta, double* c, int ldc) {
    product<double>(dgemm, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace chainrule
