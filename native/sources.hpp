// Arrays of any steps, and numbers, as what a loop over the elements of a result reads.
//
// The loops of kernels go over elements that lie together. A source that lies so is read where it
// is; of any other (a column, a row that is repeated, one number) some elements at a time are
// copied to where they do.
#pragma once

#include <cstring>

#include "arguments.hpp"

namespace chainrule {

// Elements that are read at a time: they stay in the cache.
constexpr std::int64_t PIECE = 512;
constexpr std::size_t MOST_BYTES = 8;  // of an element

// Where the elements of a result come from, in the order of the result.
struct Source {
    // All in one piece; one element for all; or by steps, along dimensions of which none is 1 and
    // no two are one.
    enum class Kind { plain, one, steps };

    Kind kind = Kind::plain;
    int ndim = 0;
    std::size_t item = 0;
    const char* place = nullptr;   // null: a number
    char number[MOST_BYTES] = {};  // of the type of the elements
    npy_intp shape[NPY_MAXDIMS];   // of the result
    npy_intp step[NPY_MAXDIMS];    // in bytes

    const char* begin() const { return place == nullptr ? number : place; }

    // The elements of an array, repeated to a shape that it fits. False if it does not, or if the
    // processor does not read them as they are.
    bool set(PyArrayObject* a, int ndim_of_result, const npy_intp* shape_of_result) {
        const int extra = ndim_of_result - PyArray_NDIM(a);
        if (extra < 0 || !PyArray_ISALIGNED(a) || !PyArray_ISNOTSWAPPED(a)) return false;
        item = static_cast<std::size_t>(PyArray_ITEMSIZE(a));
        place = PyArray_BYTES(a);
        ndim = 0;
        for (int i = 0; i < ndim_of_result; ++i) {
            const npy_intp n = shape_of_result[i];
            const npy_intp own = i < extra ? 1 : PyArray_DIM(a, i - extra);
            if (own != n && own != 1) return false;
            if (n != 1) add(n, own == 1 ? 0 : PyArray_STRIDE(a, i - extra));
        }
        const npy_intp size = static_cast<npy_intp>(item);
        kind = ndim == 0                      ? Kind::plain
               : ndim == 1 && step[0] == size ? Kind::plain
               : ndim == 1 && step[0] == 0    ? Kind::one
                                              : Kind::steps;
        return true;
    }

    // The elements of an array with its dimensions in another order, always by steps.
    void set_steps(PyArrayObject* a, const int* order) {
        ndim = 0;
        for (int i = 0; i < PyArray_NDIM(a); ++i)
            if (PyArray_DIM(a, order[i]) != 1)
                add(PyArray_DIM(a, order[i]), PyArray_STRIDE(a, order[i]));
        if (ndim == 0) add(1, 0);
        kind = Kind::steps;
    }

    // One number for a result of any size.
    template <class T>
    void set_number(T value, std::int64_t size) {
        item = sizeof(T);
        place = nullptr;
        ndim = 0;
        std::memcpy(number, &value, sizeof value);
        kind = size == 1 ? Kind::plain : Kind::one;
    }

  private:
    void add(npy_intp n, npy_intp by) {
        if (ndim > 0 && step[ndim - 1] == n * by) {
            shape[ndim - 1] *= n;
            step[ndim - 1] = by;
            return;
        }
        shape[ndim] = n;
        step[ndim++] = by;
    }
};

// Hands out the elements of a source from a place on, some at a time.
template <class T>
class Reader {
  public:
    Reader(const Source& source, std::int64_t first, std::int64_t count) : s_(source) {
        if (s_.kind == Source::Kind::plain) {
            at_ = s_.begin() + first * static_cast<std::int64_t>(sizeof(T));
        } else if (s_.kind == Source::Kind::one) {
            const std::int64_t n = count < PIECE ? count : PIECE;
            T value;
            std::memcpy(&value, s_.begin(), sizeof value);
            for (std::int64_t i = 0; i < n; ++i) held_[i] = value;
        } else {
            at_ = s_.begin();
            for (int i = s_.ndim - 1; i >= 0; --i) {
                index_[i] = first % s_.shape[i];
                first /= s_.shape[i];
                at_ += index_[i] * s_.step[i];
            }
        }
    }

    // The next n elements, n <= PIECE.
    const T* next(std::int64_t n) {
        if (s_.kind == Source::Kind::plain) {
            const char* here = at_;
            at_ += n * static_cast<std::int64_t>(sizeof(T));
            return reinterpret_cast<const T*>(here);
        }
        if (s_.kind == Source::Kind::steps) collect(n);
        return held_;
    }

  private:
    void collect(std::int64_t n) {
        const int inner = s_.ndim - 1;
        const npy_intp by = s_.step[inner];
        for (std::int64_t i = 0; i < n;) {
            const std::int64_t left = s_.shape[inner] - index_[inner], room = n - i;
            const std::int64_t count = left < room ? left : room;
            copy(held_ + i, at_, by, count);
            i += count;
            at_ += count * by;
            if ((index_[inner] += count) == s_.shape[inner]) carry(inner);
        }
    }

    // One further along the dimension before, and so on.
    void carry(int d) {
        while (index_[d] == s_.shape[d]) {
            at_ -= s_.shape[d] * s_.step[d];
            index_[d] = 0;
            if (d == 0) return;
            --d;
            at_ += s_.step[d];
            ++index_[d];
        }
    }

    static void copy(T* to, const char* from, npy_intp by, std::int64_t n) {
        if (by == static_cast<npy_intp>(sizeof(T))) {
            std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
        } else {
            for (std::int64_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const T*>(from + i * by);
        }
    }

    const Source& s_;
    const char* at_ = nullptr;
    npy_intp index_[NPY_MAXDIMS];
    alignas(64) T held_[PIECE];
};

// The shape to which arrays are repeated.
struct Shape {
    int ndim = 0;
    npy_intp sizes[NPY_MAXDIMS];
    std::int64_t size = 1;

    // False if they do not fit together. Null stands for a number.
    bool of(PyArrayObject* const* arrays, int count) {
        for (int k = 0; k < count; ++k)
            if (arrays[k] != nullptr && PyArray_NDIM(arrays[k]) > ndim)
                ndim = PyArray_NDIM(arrays[k]);
        for (int i = 0; i < ndim; ++i) sizes[i] = 1;
        for (int k = 0; k < count; ++k) {
            if (arrays[k] == nullptr) continue;
            const int extra = ndim - PyArray_NDIM(arrays[k]);
            for (int i = extra; i < ndim; ++i) {
                const npy_intp n = PyArray_DIM(arrays[k], i - extra);
                if (n == 1) continue;
                if (sizes[i] != 1 && sizes[i] != n) return false;
                sizes[i] = n;
            }
        }
        for (int i = 0; i < ndim; ++i) {
            if (sizes[i] != 0 && size > PY_SSIZE_T_MAX / 64 / sizes[i]) return false;
            size *= sizes[i];
        }
        return true;
    }
};

// Sources of one, two or three types, and the number of elements.
template <int N>
struct Sources {
    Source of[N];
    std::int64_t size = 0;

    bool all_plain() const {
        for (const Source& s : of)
            if (s.kind != Source::Kind::plain) return false;
        return true;
    }
};

// f(n, elements..., first) for parts of all elements, shared among threads.
template <class A, class F>
static inline void for_parts(const Sources<1>& s, std::int64_t cost, const F& f) {
    share(s.size, cost, [&](std::int64_t i, std::int64_t end) {
        if (s.all_plain()) {
            f(end - i, reinterpret_cast<const A*>(s.of[0].begin()) + i, i);
            return;
        }
        Reader<A> a(s.of[0], i, end - i);
        for (std::int64_t n; i < end; i += n) {
            n = end - i < PIECE ? end - i : PIECE;
            f(n, a.next(n), i);
        }
    });
}

template <class A, class B, class F>
static inline void for_parts(const Sources<2>& s, std::int64_t cost, const F& f) {
    share(s.size, cost, [&](std::int64_t i, std::int64_t end) {
        if (s.all_plain()) {
            f(end - i, reinterpret_cast<const A*>(s.of[0].begin()) + i,
              reinterpret_cast<const B*>(s.of[1].begin()) + i, i);
            return;
        }
        Reader<A> a(s.of[0], i, end - i);
        Reader<B> b(s.of[1], i, end - i);
        for (std::int64_t n; i < end; i += n) {
            n = end - i < PIECE ? end - i : PIECE;
            f(n, a.next(n), b.next(n), i);
        }
    });
}

template <class A, class B, class C, class F>
static inline void for_parts(const Sources<3>& s, std::int64_t cost, const F& f) {
    share(s.size, cost, [&](std::int64_t i, std::int64_t end) {
        if (s.all_plain()) {
            f(end - i, reinterpret_cast<const A*>(s.of[0].begin()) + i,
              reinterpret_cast<const B*>(s.of[1].begin()) + i,
              reinterpret_cast<const C*>(s.of[2].begin()) + i, i);
            return;
        }
        Reader<A> a(s.of[0], i, end - i);
        Reader<B> b(s.of[1], i, end - i);
        Reader<C> c(s.of[2], i, end - i);
        for (std::int64_t n; i < end; i += n) {
            n = end - i < PIECE ? end - i : PIECE;
            f(n, a.next(n), b.next(n), c.next(n), i);
        }
    });
}

// --- operands ------------------------------------------------------------------------------------

// An argument of an elementwise kernel: an array, or a number of Python's or of NumPy's.
struct Operand {
    PyArrayObject* array = nullptr;
    PyObject* number = nullptr;
    int type = -1;  // of the array, or of NumPy's number; -1 for one of Python's

    bool read(PyObject* o) {
        if (o == nullptr) return false;
        if (PyArray_CheckExact(o)) {
            array = as_array(o);
            type = PyArray_TYPE(array);
            return true;
        }
        number = o;
        if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return true;
        if (PyArray_IsScalar(o, Float32)) type = NPY_FLOAT;
        if (PyArray_IsScalar(o, Float64)) type = NPY_DOUBLE;
        if (PyArray_IsScalar(o, Int64)) type = NPY_INT64;
        if (PyArray_IsScalar(o, Bool)) type = NPY_BOOL;
        return type >= 0;
    }
};

// The type that all of them have; numbers of Python's have that of the others. -1 if there is none,
// or no array.
static inline int common_type(const Operand* operands, int count) {
    int type = -1;
    bool found = false;
    for (int k = 0; k < count; ++k) {
        found = found || operands[k].array != nullptr;
        if (operands[k].type < 0) continue;
        if (type >= 0 && operands[k].type != type) return -1;
        type = operands[k].type;
    }
    return found ? type : -1;
}

// A number as an element of a type. A fraction is no whole number, and neither is a truth value.
template <class T>
static inline bool value_of(const Operand& o, T* value) {
    if (o.type >= 0) {
        PyArray_ScalarAsCtype(o.number, value);
        return true;
    }
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        double number;
        if (!as_number(o.number, &number)) return false;
        *value = static_cast<T>(number);
        // NumPy warns of a number that becomes infinite.
        return std::isinf(*value) == std::isinf(number);
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        return as_integer(o.number, value);
    } else {
        return false;
    }
}

// The elements of operands of type T, from operand `first` on as sources from there on.
template <class T, int N>
static inline bool set_sources(const Operand* operands, int first, int count, const Shape& shape,
                               Sources<N>* out) {
    for (int k = first; k < first + count; ++k) {
        Source& s = out->of[k];
        if (operands[k].array != nullptr) {
            if (!s.set(operands[k].array, shape.ndim, shape.sizes)) return false;
        } else {
            T value;
            if (!value_of(operands[k], &value)) return false;
            s.set_number(value, shape.size);
        }
    }
    out->size = shape.size;
    return true;
}

template <int N>
static inline bool shape_of(const Operand (&operands)[N], Shape* shape) {
    PyArrayObject* arrays[N];
    for (int k = 0; k < N; ++k) arrays[k] = operands[k].array;
    return shape->of(arrays, N) && shape->size > 0;
}

}  // namespace chainrule
