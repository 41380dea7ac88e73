#include "copies.hpp"

#include <cstring>

#include "arguments.hpp"

namespace chainrule {
namespace {

// One loop over some elements of both arrays, steps in bytes.
using Loop = void (*)(npy_intp n, char* to, npy_intp to_step, const char* from, npy_intp from_step);

template <class To, class From>
void convert(npy_intp n, char* to, npy_intp to_step, const char* from, npy_intp from_step) {
    for (npy_intp i = 0; i < n; ++i)
        *reinterpret_cast<To*>(to + i * to_step) =
            static_cast<To>(*reinterpret_cast<const From*>(from + i * from_step));
}

template <std::size_t SIZE>
void move(npy_intp n, char* to, npy_intp to_step, const char* from, npy_intp from_step) {
    if (to_step == SIZE && from_step == SIZE) {
        std::memcpy(to, from, static_cast<std::size_t>(n) * SIZE);
        return;
    }
    for (npy_intp i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, SIZE);
}

Loop loop_of_size(npy_intp size) {
    switch (size) {
        case 1: return move<1>;
        case 2: return move<2>;
        case 4: return move<4>;
        case 8: return move<8>;
        case 16: return move<16>;
        default: return nullptr;
    }
}

// Conversions that every processor does alike.
template <class To>
Loop loop_from(int type) {
    switch (type) {
        case NPY_BOOL: return convert<To, npy_bool>;
        case NPY_INT32: return convert<To, std::int32_t>;
        case NPY_INT64: return convert<To, std::int64_t>;
        case NPY_FLOAT: return convert<To, float>;
        case NPY_DOUBLE: return convert<To, double>;
        default: return nullptr;
    }
}

Loop loop_between(PyArrayObject* target, PyArrayObject* source) {
    const int to = PyArray_TYPE(target), from = PyArray_TYPE(source);
    if (to == from) return loop_of_size(PyArray_ITEMSIZE(target));
    if (to == NPY_FLOAT) return loop_from<float>(from);
    if (to == NPY_DOUBLE) return loop_from<double>(from);
    if (to == NPY_INT64 && (from == NPY_BOOL || from == NPY_INT32))
        return loop_from<std::int64_t>(from);
    return nullptr;
}

bool is_simple(PyArrayObject* a) {
    const int type = PyArray_TYPE(a);
    return PyArray_ISNOTSWAPPED(a) && PyArray_ISALIGNED(a) &&
           (PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type));
}

// Where the elements of an array begin and end.
void extent(PyArrayObject* a, const char** first, const char** end) {
    *first = *end = PyArray_BYTES(a);
    for (int i = 0; i < PyArray_NDIM(a); ++i) {
        const npy_intp far = (PyArray_DIM(a, i) - 1) * PyArray_STRIDE(a, i);
        (far < 0 ? *first : *end) += far;
    }
    *end += PyArray_ITEMSIZE(a);
}

bool may_overlap(PyArrayObject* a, PyArrayObject* b) {
    const char *first_a, *end_a, *first_b, *end_b;
    extent(a, &first_a, &end_a);
    extent(b, &first_b, &end_b);
    return first_a < end_b && first_b < end_a;
}

// The dimensions of the target, as few as there can be, and the steps of both arrays along them.
struct Walk {
    int ndim = 0;
    npy_intp shape[NPY_MAXDIMS], to[NPY_MAXDIMS], from[NPY_MAXDIMS];

    bool plan(PyArrayObject* target, PyArrayObject* source) {
        const int extra = PyArray_NDIM(target) - PyArray_NDIM(source);
        if (extra < 0) return false;
        for (int i = 0; i < PyArray_NDIM(target); ++i) {
            const npy_intp n = PyArray_DIM(target, i),
                           own = i < extra ? 1 : PyArray_DIM(source, i - extra);
            if (own != n && own != 1) return false;
            if (n == 1) continue;
            add(n, PyArray_STRIDE(target, i), own == 1 ? 0 : PyArray_STRIDE(source, i - extra));
        }
        if (ndim == 0) add(1, 0, 0);
        return true;
    }

    void run(Loop loop, char* target, const char* source) const {
        npy_intp place[NPY_MAXDIMS] = {};
        const int inner = ndim - 1;
        for (;;) {
            loop(shape[inner], target, to[inner], source, from[inner]);
            int i = inner - 1;
            for (; i >= 0; --i) {
                target += to[i];
                source += from[i];
                if (++place[i] < shape[i]) break;
                target -= shape[i] * to[i];
                source -= shape[i] * from[i];
                place[i] = 0;
            }
            if (i < 0) return;
        }
    }

  private:
    void add(npy_intp n, npy_intp to_step, npy_intp from_step) {
        if (ndim > 0 && to[ndim - 1] == n * to_step && from[ndim - 1] == n * from_step) {
            shape[ndim - 1] *= n;
            to[ndim - 1] = to_step;
            from[ndim - 1] = from_step;
            return;
        }
        shape[ndim] = n;
        to[ndim] = to_step;
        from[ndim++] = from_step;
    }
};

}  // namespace

KeptFunction copy_between(PyArrayObject* target, PyArrayObject* source) {
    if (!PyArray_ISWRITEABLE(target) || !is_simple(target) || !is_simple(source)) return nullptr;
    const Loop loop = loop_between(target, source);
    auto walk = std::make_shared<Walk>();
    if (loop == nullptr || !walk->plan(target, source)) return nullptr;
    if (PyArray_SIZE(target) == 0) return [] { return true; };
    if (may_overlap(target, source)) return nullptr;
    char* to = PyArray_BYTES(target);
    const char* from = PyArray_BYTES(source);
    if (walk->ndim == 1) {
        const npy_intp n = walk->shape[0], to_step = walk->to[0], from_step = walk->from[0];
        return [=] {
            loop(n, to, to_step, from, from_step);
            return true;
        };
    }
    return [=] {
        walk->run(loop, to, from);
        return true;
    };
}

std::unique_ptr<ElementCall> copied_elements(PyArrayObject* target, PyArrayObject* source) {
    auto call = std::make_unique<ElementCall>();
    if (!is_real(target) || PyArray_TYPE(source) != PyArray_TYPE(target) || !is_plain(target) ||
        PyArray_SIZE(target) == 0 ||
        !chain_operand(source, PyArray_NDIM(target), PyArray_DIMS(target), &call->from[0]))
        return nullptr;
    call->operands = 1;
    call->bytes = static_cast<int>(PyArray_ITEMSIZE(target));
    call->to = PyArray_DATA(target);
    call->size = PyArray_SIZE(target);
    call->code = NumberCode::copy;
    call->apply = [](const ElementCall& c, std::int64_t n, const void* const* from, void* to) {
        std::memcpy(to, from[0], static_cast<std::size_t>(n) * static_cast<std::size_t>(c.bytes));
    };
    return call;
}

}  // namespace chainrule
