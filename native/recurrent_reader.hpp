// Reading the arguments of the recurrent layers.
#pragma once

#include "arguments.hpp"

namespace chainrule {

static inline bool has_shape(PyArrayObject* a, std::int64_t d0, std::int64_t d1 = -1,
                             std::int64_t d2 = -1) {
    const int ndim = d2 >= 0 ? 3 : d1 >= 0 ? 2 : 1;
    return PyArray_NDIM(a) == ndim && PyArray_DIM(a, 0) == d0 &&
           (ndim < 2 || PyArray_DIM(a, 1) == d1) && (ndim < 3 || PyArray_DIM(a, 2) == d2);
}

// A matrix that is packed as the right factor of products when these are computed.
template <class T>
struct Packing {
    const T* data = nullptr;
    std::int64_t n = 0, k = 0, down = 0, along = 0;

    // Null if there is no memory.
    const T* into(Memory<T>& memory) const {
        if (!memory.get(recurrent_of<T>().packed_size(n, k))) return nullptr;
        recurrent_of<T>().pack(n, k, data, down, along, memory.data);
        return memory.data;
    }
};

// Reads the arguments of one call. Nothing is raised: where something does not fit, `fits` turns
// false and the NumPy kernel is called instead.
template <class T>
struct Reader {
    static constexpr int type = sizeof(T) == 4 ? NPY_FLOAT : NPY_DOUBLE;
    bool fits = true;
    bool no_memory = false;

    // An array as it is, or null.
    PyArrayObject* array(PyObject* o, std::int64_t d0, std::int64_t d1 = -1, std::int64_t d2 = -1) {
        PyArrayObject* a = as_array(o);
        if (a == nullptr || !is_readable(a, type) || !has_shape(a, d0, d1, d2)) {
            fits = false;
            return nullptr;
        }
        return a;
    }

    const T* contiguous(PyObject* o, Kept& kept, std::int64_t d0, std::int64_t d1 = -1,
                        std::int64_t d2 = -1) {
        PyArrayObject* a = array(o, d0, d1, d2);
        if (a == nullptr) return nullptr;
        kept.a = in_one_piece(a);
        if (kept.a == nullptr) {
            PyErr_Clear();
            fits = false;
            return nullptr;
        }
        return data<T>(kept.a);
    }

    Steps<T> steps(PyObject* o, Kept& kept, std::int64_t d0, std::int64_t d1, std::int64_t d2) {
        PyArrayObject* a = array(o, d0, d1, d2);
        if (a == nullptr) return {};
        if (d2 == 1 || stride(a, 2) == 1) return {data<T>(a), stride(a, 0), stride(a, 1)};
        return {contiguous(o, kept, d0, d1, d2), d1 * d2, d2};
    }

    // Whether there is a mask at args[at]; none is fine as well, more arguments are not.
    const unsigned char* mask(PyObject* const* args, Py_ssize_t nargs, Py_ssize_t at, Kept& kept,
                              std::int64_t steps, std::int64_t batch) {
        if (nargs == at) return nullptr;
        PyArrayObject* a = nargs == at + 1 ? as_array(args[at]) : nullptr;
        if (a == nullptr || PyArray_TYPE(a) != NPY_BOOL || !has_shape(a, steps, batch)) {
            fits = false;
            return nullptr;
        }
        kept.a = in_one_piece(a);
        if (kept.a == nullptr) {
            PyErr_Clear();
            fits = false;
            return nullptr;
        }
        return data<unsigned char>(kept.a);
    }

    // The matrix (rows, columns), or its transpose.
    Packing<T> packing(PyObject* o, std::int64_t rows, std::int64_t columns, bool transposed) {
        PyArrayObject* w = array(o, rows, columns);
        if (w == nullptr) return {};
        return {data<T>(w), transposed ? rows : columns, transposed ? columns : rows,
                stride(w, transposed ? 1 : 0), stride(w, transposed ? 0 : 1)};
    }

    T* make(Kept& kept, npy_intp d0, npy_intp d1, npy_intp d2 = -1) {
        const npy_intp dims[] = {d0, d1, d2};
        kept.a = new_array(d2 < 0 ? 2 : 3, dims, type);
        if (kept.a == nullptr) {
            PyErr_Clear();
            no_memory = true;
            fits = false;
            return nullptr;
        }
        return data<T>(kept.a);
    }
};

}  // namespace chainrule
