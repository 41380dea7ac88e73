// What bindings read and hold: arguments by position or by name, arrays, and references and memory
// that are given up by themselves.
#pragma once

#include "binding.hpp"
#include "keep.hpp"

namespace chainrule {

// --- arguments -----------------------------------------------------------------------------------

// The names that a kernel's arguments have, as Python strings made at the first call.
template <std::size_t N>
struct Names {
    const char* text[N];
    PyObject* interned[N] = {};

    template <class... Text>
    explicit Names(Text... names) : text{names...} {}
};
template <class... Text>
Names(Text...) -> Names<sizeof...(Text)>;

// The place of a keyword among the names, -1 if it is none of them.
template <std::size_t N>
static inline int place_of(PyObject* keyword, Names<N>& names) {
    for (std::size_t i = 0; i < N; ++i) {
        if (names.interned[i] == nullptr)
            names.interned[i] = PyUnicode_InternFromString(names.text[i]);
        if (names.interned[i] == keyword) return static_cast<int>(i);
    }
    for (std::size_t i = 0; i < N; ++i)
        if (PyUnicode_CompareWithASCIIString(keyword, names.text[i]) == 0)
            return static_cast<int>(i);
    return -1;
}

// Puts the arguments into `out` in the order of the names; null where one was not given. False if
// there are more than the kernel has, or others.
template <std::size_t N>
static inline bool read_arguments(const Call& call, Names<N>& names, PyObject* (&out)[N]) {
    constexpr Py_ssize_t count = N;
    if (call.count > count) return false;
    for (Py_ssize_t i = 0; i < count; ++i) out[i] = i < call.count ? call[i] : nullptr;
    if (call.names == nullptr) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.names); ++i) {
        const int place = place_of(PyTuple_GET_ITEM(call.names, i), names);
        if (place < 0 || out[place] != nullptr) return false;
        out[place] = call[call.count + i];
    }
    return true;
}

// The arguments given by name, of a kernel with any number of others.
struct Named {
    PyObject* const* values;
    PyObject* names;

    explicit Named(const Call& call) : values(call.args + call.count), names(call.names) {}
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

// A Python number, or an array of the dtype with one element, which is read when it is needed.
template <class T>
struct Scalar {
    const T* place = nullptr;
    double number = 0;

    bool read(PyObject* o) {
        if (as_number(o, &number)) return true;
        PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
        if (a == nullptr || PyArray_TYPE(a) != (sizeof(T) == 4 ? NPY_FLOAT : NPY_DOUBLE) ||
            PyArray_NDIM(a) != 0 || !is_plain(a))
            return false;
        place = data<T>(a);
        return true;
    }
    double get() const { return place == nullptr ? number : static_cast<double>(*place); }
};

// --- arrays --------------------------------------------------------------------------------------

static inline bool same_shape(PyArrayObject* a, PyArrayObject* b) {
    return PyArray_NDIM(a) == PyArray_NDIM(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), PyArray_NDIM(a));
}

// Whether a shape, which ends where that of `a` ends, has the size of one dimension of `a` and is 1
// otherwise: that size, and how many elements of `a` belong to each place along it.
static inline bool along_one(PyArrayObject* a, int ndim, const npy_intp* shape, std::int64_t* n,
                             std::int64_t* inner) {
    const int extra = PyArray_NDIM(a) - ndim;
    int found = -1;
    if (extra < 0) return false;
    for (int i = 0; i < ndim; ++i) {
        if (shape[i] == 1) continue;
        if (found >= 0 || shape[i] != PyArray_DIM(a, extra + i)) return false;
        found = i;
    }
    if (found < 0) return false;
    *n = shape[found];
    *inner = 1;
    for (int i = found + 1; i < ndim; ++i) *inner *= PyArray_DIM(a, extra + i);
    return true;
}

// How an array of numbers is repeated to fill a shape, as a chain knows it (chain.hpp): its
// elements lie in one piece, and belong to dimensions of the shape that follow each other.
static inline bool chain_operand(PyArrayObject* a, int ndim, const npy_intp* shape,
                                 ChainOperand* out) {
    const int extra = ndim - PyArray_NDIM(a);
    if (extra < 0 || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return false;
    *out = {PyArray_DATA(a), 1, 1};
    bool ended = false;  // of the dimensions that it has, from the last to the first
    for (int i = ndim - 1; i >= 0; --i) {
        const npy_intp own = i < extra ? 1 : PyArray_DIM(a, i - extra);
        if (shape[i] == 1 && own == 1) continue;
        const bool repeated = own == 1 || PyArray_STRIDE(a, i - extra) == 0;
        if (own != 1 && own != shape[i]) return false;
        if (repeated) {
            if (out->count == 1) out->inner *= shape[i];
            ended = out->count != 1;
            continue;
        }
        if (ended || PyArray_STRIDE(a, i - extra) != out->count * PyArray_ITEMSIZE(a)) return false;
        out->count *= own;
    }
    return true;
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

// --- what is held and made -----------------------------------------------------------------------

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

// A new reference to an array if it lies in one piece, or to a copy that does; null with an error.
static inline PyArrayObject* in_one_piece(PyArrayObject* a) {
    PyArrayObject* plain =
        reinterpret_cast<PyArrayObject*>(PyArray_FromArray(a, nullptr, NPY_ARRAY_CARRAY_RO));
    if (plain != a) cannot_be_kept();
    return plain;
}

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

// --- threads -------------------------------------------------------------------------------------

// A part for a thread has at least this many simple operations, one to two microseconds: kernels
// follow each other closely, and a thread that looks for work begins at once. Letting other Python
// threads run may mean waiting for them: that takes more.
constexpr std::int64_t PART = 1 << 14, WITHOUT_GIL = 1 << 16;

// Calls work(begin, end) for parts of [0, count), each element costing about `cost` simple ones;
// other Python threads run meanwhile where it takes long enough.
template <class F>
static inline void share(std::int64_t count, std::int64_t cost, const F& work) {
    if (count * cost < 2 * PART) {
        work(std::int64_t(0), count);
        return;
    }
    const std::int64_t grain = cost < PART ? PART / cost : 1;
    if (count * cost < WITHOUT_GIL) {
        parallel_for(count, grain, work);
        return;
    }
    WithoutGil released;
    parallel_for(count, grain, work);
}

}  // namespace chainrule
