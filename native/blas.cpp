#define PY_SSIZE_T_CLEAN
#include <Python.h>  // before all others: it says which version of POSIX they declare

#include "blas.hpp"

#include <pthread.h>

#include <mutex>
#include <new>

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
int (*set_threads)(int) = nullptr;  // openblas_set_num_threads_local: returns what it was

alignas(std::mutex) char room[sizeof(std::mutex)];
std::mutex* counting = new (room) std::mutex;
int users = 0, threads_before = 0;

// A thread that asked for a product does not exist in the child.
void in_child() {
    counting = new (room) std::mutex;
    if (users > 0 && set_threads != nullptr) set_threads(threads_before);
    users = 0;
}

const int registered = pthread_atfork(nullptr, nullptr, in_child);

void* capsule(PyObject* table, const char* name) {
    PyObject* found = PyDict_GetItemString(table, name);  // borrowed
    if (found == nullptr || !PyCapsule_CheckExact(found)) {
        PyErr_Format(PyExc_ImportError, "scipy.linalg.cython_blas has no function %s", name);
        return nullptr;
    }
    return PyCapsule_GetPointer(found, PyCapsule_GetName(found));
}

// It is to start no more threads when it is loaded than there are to be had.
bool prepare() {
    PyObject* module = PyImport_ImportModule("chainrule.backend.openblas");
    if (module == nullptr) return false;
    PyObject* done = PyObject_CallMethod(module, "before_loading", "s", "scipy.linalg");
    Py_DECREF(module);
    Py_XDECREF(done);
    return done != nullptr;
}

#if defined(__linux__)
// OpenBLAS can be told to use one thread; other libraries are left as they are.
int look_for_openblas(dl_phdr_info* info, std::size_t, void*) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "scipy_openblas") == nullptr ||
        std::strstr(info->dlpi_name, "scipy.libs") == nullptr)
        return 0;
    void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    set_threads = reinterpret_cast<int (*)(int)>(dlsym(library, "openblas_set_num_threads_local"));
    if (set_threads == nullptr)
        set_threads =
            reinterpret_cast<int (*)(int)>(dlsym(library, "scipy_openblas_set_num_threads_local"));
    return set_threads != nullptr;
}
#endif

// Row-major C = A B is column-major C' = B' A'.
template <class T>
void product(Gemm<T> function, bool trans_a, bool trans_b, int m, int n, int k, T alpha, const T* a,
             int lda, const T* b, int ldb, T beta, T* c, int ldc) {
    char ta = trans_a ? 'T' : 'N', tb = trans_b ? 'T' : 'N';
    const OneThread alone;
    function(&tb, &ta, &n, &m, &k, &alpha, const_cast<T*>(b), &ldb, const_cast<T*>(a), &lda, &beta,
             c, &ldc);
}

}  // namespace

OneThread::OneThread() {
    if (set_threads == nullptr) return;
    std::lock_guard<std::mutex> lock(*counting);
    if (users++ == 0) threads_before = set_threads(1);
}

OneThread::~OneThread() {
    if (set_threads == nullptr) return;
    std::lock_guard<std::mutex> lock(*counting);
    if (users > 0 && --users == 0) set_threads(threads_before);
}

bool find_blas() {
    if (dgemm != nullptr) return true;
    if (!prepare()) return false;
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
