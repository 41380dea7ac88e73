// Reading the arguments of a binding: by position or by name, in the order of its NumPy twin.
#pragma once

#include "binding.hpp"

namespace chainrule {

constexpr int MAX_ARGUMENTS = 8;

// The names that a kernel's arguments have, as Python strings made at the first call.
struct Names {
    const char* text[MAX_ARGUMENTS];
    PyObject* interned[MAX_ARGUMENTS] = {};
};

// The place of a keyword among the names, -1 if it is none of them.
static inline int place_of(PyObject* keyword, Names& names, int count) {
    for (int i = 0; i < count; ++i) {
        if (names.interned[i] == nullptr) names.interned[i] = PyUnicode_InternFromString(names.text[i]);
        if (names.interned[i] == keyword) return i;
    }
    for (int i = 0; i < count; ++i)
        if (PyUnicode_CompareWithASCIIString(keyword, names.text[i]) == 0) return i;
    return -1;
}

// Puts the arguments into `out` in the order of the names; null where one was not given. False if
// there are more than the kernel has, or others.
static inline bool read_arguments(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                                  Names& names, int count, PyObject** out) {
    if (nargs > count) return false;
    for (int i = 0; i < count; ++i) out[i] = i < nargs ? args[i] : nullptr;
    if (kwnames == nullptr) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
        const int place = place_of(PyTuple_GET_ITEM(kwnames, i), names, count);
        if (place < 0 || out[place] != nullptr) return false;
        out[place] = args[nargs + i];
    }
    return true;
}

// A Python int, if it is one and fits.
static inline bool as_integer(PyObject* o, std::int64_t* out) {
    if (o == nullptr || !PyLong_CheckExact(o)) return false;
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow == 0;
}

// A Python float or int.
static inline bool as_number(PyObject* o, double* out) {
    if (o == nullptr) return false;
    if (PyFloat_CheckExact(o)) {
        *out = PyFloat_AS_DOUBLE(o);
        return true;
    }
    std::int64_t n;
    if (!as_integer(o, &n)) return false;
    *out = static_cast<double>(n);
    return true;
}

// A Python number, or an array of the dtype with one element.
static inline bool as_scalar(PyObject* o, int type, double* out) {
    if (as_number(o, out)) return true;
    PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
    if (a == nullptr || PyArray_TYPE(a) != type || PyArray_NDIM(a) != 0 || !is_plain(a)) return false;
    *out = type == NPY_FLOAT ? static_cast<double>(*data<float>(a)) : *data<double>(a);
    return true;
}

static inline bool same_shape(PyArrayObject* a, PyArrayObject* b) {
    return PyArray_NDIM(a) == PyArray_NDIM(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

// An array of float32 or float64 that lies in one piece; null for anything else.
static inline PyArrayObject* plain_real(PyObject* o) {
    PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
    return a != nullptr && Py_IS_TYPE(o, &PyArray_Type) && is_real(a) && is_plain(a) ? a : nullptr;
}

// The same, of a given dtype.
static inline PyArrayObject* plain_of(PyObject* o, int type) {
    PyArrayObject* a = plain_real(o);
    return a != nullptr && PyArray_TYPE(a) == type ? a : nullptr;
}

// A part for a thread has at least this many simple operations: some 5 microseconds, or as long as it
// takes to wake the thread.
constexpr std::int64_t PART = 65536;

// Calls work(begin, end) for parts of [0, count), each element costing about `cost` simple ones;
// other Python threads run meanwhile where it takes long enough.
template <class F>
static inline void share(std::int64_t count, std::int64_t cost, const F& work) {
    if (count * cost < PART) {
        work(std::int64_t(0), count);
        return;
    }
    const std::int64_t grain = PART / cost;
    WithoutGil released;
    parallel_for(count, grain > 0 ? grain : 1, work);
}

}  // namespace chainrule
