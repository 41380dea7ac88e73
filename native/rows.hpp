// Arrays as rows along some of their dimensions, whatever these are, and whatever the steps.
//
// Where a row does not lie in one piece, some rows at a time are copied to where they do.
#pragma once

#include <atomic>

#include "scratch.hpp"
#include "sources.hpp"

namespace chainrule {

// Dimensions that an argument names, each at most once; counted from the end if negative.
struct Dims {
    bool is[NPY_MAXDIMS] = {};
    int count = 0;

    bool add(PyObject* o, int ndim) {
        std::int64_t d;
        if (!as_integer(o, &d) || d < -ndim || d >= ndim) return false;
        d = d < 0 ? d + ndim : d;
        if (is[d]) return false;
        is[d] = true;
        ++count;
        return true;
    }
    bool add_all(PyObject* dims, int ndim) {
        if (dims == nullptr || !PyTuple_Check(dims)) return false;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); ++i)
            if (!add(PyTuple_GET_ITEM(dims, i), ndim)) return false;
        return true;
    }
};

// More elements are no array but one that repeats a few of them.
constexpr std::int64_t MOST = std::int64_t(1) << 36;

struct Rows {
    std::int64_t count = 1, n = 1;  // rows, and elements of each
    std::int64_t inner = 1;         // of (outer, n, inner) in one piece; 0 if it is by steps
    Source source;                  // the elements, row by row
    int ndim = 0;                   // of the result: an element for each row
    npy_intp shape[NPY_MAXDIMS];

    // False if the processor does not read it, or there is nothing, or far too much, in it.
    bool set(PyArrayObject* a, const Dims& dims, bool keepdim) {
        const int all = PyArray_NDIM(a);
        if (PyArray_SIZE(a) == 0 || PyArray_SIZE(a) > MOST || !is_readable(a, PyArray_TYPE(a)))
            return false;
        int order[NPY_MAXDIMS], at = 0;
        for (int d = 0; d < all; ++d)
            if (!dims.is[d]) order[at++] = d;
        for (int d = 0; d < all; ++d)
            if (dims.is[d]) order[at++] = d;
        // (kept, taken, kept) in one piece, where kept ones may be none
        int part = 0;  // 0 and 2: kept, 1: taken, 3: taken once more
        for (int d = 0; d < all; ++d) {
            const npy_intp size = PyArray_DIM(a, d);
            (dims.is[d] ? n : count) *= size;
            if (!dims.is[d] || keepdim) shape[ndim++] = dims.is[d] ? 1 : size;
            if (size == 1) continue;
            if (dims.is[d])
                part = part < 2 ? 1 : 3;
            else if (part == 1)
                part = 2;
            if (part == 2) inner *= size;
        }
        if (part == 3 || !is_plain(a)) inner = 0;
        source.item = static_cast<std::size_t>(PyArray_ITEMSIZE(a));
        source.place = PyArray_BYTES(a);
        source.kind = Source::Kind::steps;
        if (inner == 0) source.set_steps(a, order);
        return true;
    }

    // f(x, row): of each row where its elements are, and which one it is. False without memory.
    template <class T, class F>
    bool each(std::int64_t cost, const F& f) const {
        const T* x = reinterpret_cast<const T*>(source.place);
        if (inner == 1) {
            share(count, n * cost, [&](std::int64_t i, std::int64_t end) {
                for (; i < end; ++i) f(x + i * n, i);
            });
            return true;
        }
        std::atomic<bool> done{true};
        // Columns that lie beside each other are read together, by lines of the cache.
        constexpr std::int64_t BESIDE = 64 / sizeof(T);
        const std::int64_t blocks = inner == 0 ? 0 : (inner + BESIDE - 1) / BESIDE;
        const std::int64_t units = inner == 0 ? count : count / inner * blocks;
        const std::int64_t together = inner == 0 ? 1 : BESIDE;
        share(units, n * (cost + 2) * together, [&](std::int64_t i, std::int64_t end) {
            const Scratch memory(1, static_cast<std::size_t>(n * together) * sizeof(T));
            T* held = static_cast<T*>(memory.get());
            if (held == nullptr) {
                done = false;
            } else if (inner == 0) {
                Reader<T> reader(source, i * n, (end - i) * n);
                for (; i < end; ++i) f(read(reader, held), i);
            } else {
                for (; i < end; ++i) block(x, i / blocks, i % blocks * BESIDE, held, f);
            }
        });
        return done;
    }

  private:
    template <class T>
    const T* read(Reader<T>& reader, T* held) const {
        if (n <= PIECE) return reader.next(n);
        for (std::int64_t k = 0, some; k < n; k += some) {
            some = n - k < PIECE ? n - k : PIECE;
            std::memcpy(held + k, reader.next(some), static_cast<std::size_t>(some) * sizeof(T));
        }
        return held;
    }

    template <class T, class F>
    void block(const T* x, std::int64_t outer, std::int64_t column, T* held, const F& f) const {
        constexpr std::int64_t BESIDE = 64 / sizeof(T);
        const std::int64_t width = inner - column < BESIDE ? inner - column : BESIDE;
        const T* from = x + outer * n * inner + column;
        for (std::int64_t k = 0; k < n; ++k)
            for (std::int64_t j = 0; j < width; ++j) held[j * n + k] = from[k * inner + j];
        for (std::int64_t j = 0; j < width; ++j) f(held + j * n, outer * inner + column + j);
    }
};

}  // namespace chainrule
