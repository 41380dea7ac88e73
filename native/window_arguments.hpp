// What the bindings of convolution and pooling share: tuples of settings, contiguous arrays.
#pragma once

#include "arguments.hpp"

namespace chainrule {

// No size or setting is larger than this: so products of two of them do not overflow.
constexpr std::int64_t LARGEST = std::int64_t{1} << 30;

// A tuple of `count` integers, at the end of three that are `other` by default.
static inline bool triple(PyObject* o, int count, std::int64_t other, std::int64_t* out) {
    if (o == nullptr || !PyTuple_CheckExact(o) || PyTuple_GET_SIZE(o) != count) return false;
    for (int i = 0; i < 3 - count; ++i) out[i] = other;
    for (int i = 0; i < count; ++i) {
        std::int64_t& n = out[3 - count + i];
        if (!as_integer(PyTuple_GET_ITEM(o, i), &n) || n > LARGEST || n < -LARGEST) return false;
    }
    return true;
}

static inline bool all_positive(const std::int64_t* n) { return n[0] > 0 && n[1] > 0 && n[2] > 0; }

// How many dimensions a tuple speaks of; 0 if there are too many or none.
static inline int dimensions(PyObject* o) {
    if (o == nullptr || !PyTuple_CheckExact(o)) return 0;
    const Py_ssize_t n = PyTuple_GET_SIZE(o);
    return n >= 1 && n <= 3 ? static_cast<int>(n) : 0;
}

// The last `nd` sizes of an array, at the end of three that are 1 by default; false if one is zero
// or too large.
static inline bool spatial(PyArrayObject* a, int nd, std::int64_t* out) {
    if (nd > PyArray_NDIM(a)) return false;
    for (int i = 0; i < 3; ++i) {
        out[i] = i < 3 - nd ? 1 : PyArray_DIM(a, PyArray_NDIM(a) - 3 + i);
        if (out[i] < 1 || out[i] > LARGEST) return false;
    }
    return true;
}

// A new array with the leading dimensions of `a` up to the last `nd`, and these trailing ones.
static inline PyArrayObject* with_size(PyArrayObject* a, int nd, const std::int64_t* size,
                                       int type) {
    npy_intp dims[NPY_MAXDIMS];
    const int lead = PyArray_NDIM(a) - nd;
    for (int i = 0; i < lead; ++i) dims[i] = PyArray_DIM(a, i);
    for (int i = 0; i < nd; ++i) dims[lead + i] = size[3 - nd + i];
    return new_array(lead + nd, dims, type);
}

// An array of float32 or float64 with elements, as it is or copied into one piece. Null for
// anything else, or with an error set.
class Contiguous {
  public:
    explicit Contiguous(PyObject* o) : array_(nullptr) {
        PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
        if (a == nullptr || !is_real(a) || PyArray_SIZE(a) == 0) return;
        if (is_plain(a)) {
            Py_INCREF(o);
            array_ = a;
        } else {
            cannot_be_kept();
            array_ = reinterpret_cast<PyArrayObject*>(PyArray_FROM_OF(o, NPY_ARRAY_CARRAY_RO));
        }
    }
    ~Contiguous() { Py_XDECREF(array_); }
    Contiguous(const Contiguous&) = delete;
    Contiguous& operator=(const Contiguous&) = delete;

    PyArrayObject* get() const { return array_; }

  private:
    PyArrayObject* array_;
};

}  // namespace chainrule
