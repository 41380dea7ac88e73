// What the larger bindings share: references and memory that are given up by themselves, arguments by
// name, and arrays of any strides.
#pragma once

#include "binding.hpp"

namespace chainrule {

// A reference to an array, given up at the end.
struct Kept {
    PyArrayObject* a = nullptr;
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() { Py_XDECREF(reinterpret_cast<PyObject*>(a)); }
    PyObject* release() {
        PyObject* given = reinterpret_cast<PyObject*>(a);
        a = nullptr;
        return given;
    }
};

// Memory of the kernels, given up at the end.
template <class T>
struct Memory {
    T* data = nullptr;
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { PyMem_RawFree(data); }
    bool get(std::int64_t count) {
        constexpr std::int64_t most = PY_SSIZE_T_MAX / static_cast<std::int64_t>(sizeof(T));
        if (count > most) return false;
        data = static_cast<T*>(PyMem_RawMalloc(static_cast<std::size_t>(count) * sizeof(T)));
        return data != nullptr;
    }
};

// Elements of the type at addresses that the processor reads as they are, whole elements apart.
static inline bool is_readable(PyArrayObject* a, int type) {
    if (PyArray_TYPE(a) != type || !PyArray_ISNOTSWAPPED(a) || !PyArray_ISALIGNED(a)) return false;
    for (int i = 0; i < PyArray_NDIM(a); ++i)
        if (PyArray_STRIDE(a, i) % PyArray_ITEMSIZE(a) != 0) return false;
    return true;
}

static inline std::int64_t stride(PyArrayObject* a, int dim) {
    return PyArray_STRIDE(a, dim) / PyArray_ITEMSIZE(a);
}

// The arguments given by name.
struct Named {
    PyObject* const* values;
    PyObject* names;
    PyObject* get(const char* name) const {
        for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), name) == 0)
                return values[i];
        return nullptr;
    }
    // True and false only; whatever else is left to the NumPy kernel.
    bool flag(const char* name, bool* out) const {
        PyObject* value = get(name);
        if (value == nullptr || !PyBool_Check(value)) return false;
        *out = value == Py_True;
        return true;
    }
    Py_ssize_t count() const { return names == nullptr ? 0 : PyTuple_GET_SIZE(names); }
};

// A tuple of new references; they are given up if one is null.
template <std::size_t N>
static inline PyObject* tuple_of(PyObject* const (&items)[N]) {
    PyObject* tuple = PyTuple_New(N);
    for (std::size_t i = 0; i < N; ++i) {
        if (tuple == nullptr)
            Py_XDECREF(items[i]);
        else
            PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), items[i]);
    }
    return tuple;
}

}  // namespace chainrule
