// What the bindings share: arrays as pointers and sizes, the reference kernel as the way out.
//
// A binding takes the arguments of the NumPy kernel of its name. It checks everything that the C++
// function relies on; what that cannot do (another dtype, odd strides, arguments it does not know)
// is handed to the NumPy kernel, which also raises the errors.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>  // before all others: it says which version of POSIX they declare
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL chainrule_numpy
#if !defined(CHAINRULE_MODULE)
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <cstdint>

#include "families.hpp"
#include "parallel.hpp"

namespace chainrule {

// The NumPy kernels by name; set when the module is bound.
extern PyObject* reference_kernels;

// A call of a kernel from Python.
struct Call {
    const char* kernel;
    PyObject* const* args;  // those by position, followed by those by name
    Py_ssize_t count;       // of those by position
    PyObject* names;        // a tuple, or null

    // Whether there are so many arguments, all by position.
    bool has(Py_ssize_t n) const { return count == n && names == nullptr; }
    PyObject* operator[](Py_ssize_t i) const { return args[i]; }

    // The second binding of the kernel, if it has one that takes the call (general.hpp); else the
    // NumPy kernel of the same name, with the same arguments.
    PyObject* by_reference() const;
};

static inline PyArrayObject* as_array(PyObject* o) {
    return PyArray_Check(o) ? reinterpret_cast<PyArrayObject*>(o) : nullptr;
}

static inline bool is_real(PyArrayObject* a) {
    const int type = PyArray_TYPE(a);
    return (type == NPY_FLOAT || type == NPY_DOUBLE) && PyArray_ISNOTSWAPPED(a);
}

// Contiguous in memory, aligned, of native byte order.
static inline bool is_plain(PyArrayObject* a) {
    return PyArray_ISCARRAY_RO(a) && PyArray_ISNOTSWAPPED(a);
}

static inline bool is_plain_writable(PyArrayObject* a) {
    return PyArray_ISCARRAY(a) && PyArray_ISNOTSWAPPED(a);
}

template <class T>
static inline T* data(PyArrayObject* a) {
    return static_cast<T*>(PyArray_DATA(a));
}

// An array for a result: a new one, or while a program is repeated (tape.hpp) its own.
PyArrayObject* new_array(int ndim, const npy_intp* shape, int type);

// An array for a result of the same shape and dtype.
static inline PyArrayObject* new_like(PyArrayObject* a) {
    return new_array(PyArray_NDIM(a), PyArray_DIMS(a), PyArray_TYPE(a));
}

// Whether this thread has released the GIL already, for a whole program (tape.hpp).
extern thread_local bool gil_is_released;

// Releases the GIL while kernels run.
struct WithoutGil {
    PyThreadState* state = gil_is_released ? nullptr : PyEval_SaveThread();
    WithoutGil() = default;
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;
    ~WithoutGil() {
        if (state != nullptr) PyEval_RestoreThread(state);
    }
};

// Fewer elements than this are not worth a second thread (nor letting other threads run).
constexpr std::int64_t GRAIN = 32768;

// An entry of a family's table of methods: the function `name` takes a Call. A function that cannot
// have the name of its kernel has it beside.
#define CHAINRULE_METHOD(name, text) CHAINRULE_METHOD_NAMED(#name, name, text)
#define CHAINRULE_METHOD_NAMED(kernel, function, text)                                           \
    {kernel,                                                                                     \
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(                                 \
         +[](PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) -> PyObject* { \
             return function(Call{kernel, args, count, names});                                  \
         })),                                                                                    \
     METH_FASTCALL | METH_KEYWORDS, text}

// The methods of the families, each ended by an entry of zeros.
#define CHAINRULE_EACH(F) extern PyMethodDef F##_methods[];
CHAINRULE_FAMILIES(CHAINRULE_EACH)
#undef CHAINRULE_EACH
extern PyMethodDef cells_methods[];  // of text, the same on every instruction set

}  // namespace chainrule
