// Comparisons, logic and choices: the twins of eq, maximum, where, clamp, isnan and their like in
// backend/numpy_kernels/elementwise.py. Arrays have any steps, and are repeated to one shape.
#include "compare.hpp"

#include "sources.hpp"

namespace chainrule {
namespace {

PyObject* as_object(PyArrayObject* a) { return reinterpret_cast<PyObject*>(a); }

// Keeps or runs f(sources), which is a copy of less where all elements lie in one piece.
template <class A, class B, class To, class F>
void run_pairs(Sources<2>& s, To* to, const F& f) {
    if (s.all_plain() && s.of[0].place != nullptr && s.of[1].place != nullptr) {
        const A* a = reinterpret_cast<const A*>(s.of[0].place);
        const B* b = reinterpret_cast<const B*>(s.of[1].place);
        const std::int64_t size = s.size;
        run([=] {
            share(size, LIGHT,
                  [=](std::int64_t i, std::int64_t end) { f(end - i, a + i, b + i, to + i); });
        });
        return;
    }
    run_with(s, [=](const Sources<2>& held) {
        for_parts<A, B>(held, LIGHT, [=](std::int64_t n, const A* a, const B* b, std::int64_t at) {
            f(n, a, b, to + at);
        });
    });
}

// A function of two operands of type T, into elements of another type or the same.
template <class T, class To, class F>
PyObject* new_pairs(const Call& call, const Operand (&o)[2], const Shape& shape, int type,
                    const F& f) {
    Sources<2> s;
    if (!set_sources<T>(o, 0, 2, shape, &s)) return call.by_reference();
    PyArrayObject* out = new_array(shape.ndim, shape.sizes, type);
    if (out == nullptr) return nullptr;
    run_pairs<T, T>(s, data<To>(out), f);
    return as_object(out);
}

// --- comparisons ---------------------------------------------------------------------------------

using ComparingChosen = Chosen<compare_functions, Comparing>;

// (a, b), of real numbers by the compiled loops, of whole numbers and truth values by f
template <class F>
PyObject* comparison(const Call& call, ComparingChosen which, const F& f) {
    Operand o[2];
    Shape shape;
    if (!call.has(2) || !o[0].read(call[0]) || !o[1].read(call[1]) || !shape_of(o, &shape))
        return call.by_reference();
    switch (common_type(o, 2)) {
        case NPY_FLOAT:
            return new_pairs<float, Truth>(call, o, shape, NPY_BOOL, which.in(compare_of<float>()));
        case NPY_DOUBLE:
            return new_pairs<double, Truth>(call, o, shape, NPY_BOOL,
                                            which.in(compare_of<double>()));
        case NPY_INT64: return new_pairs<std::int64_t, Truth>(call, o, shape, NPY_BOOL, f);
        case NPY_BOOL: return new_pairs<Truth, Truth>(call, o, shape, NPY_BOOL, f);
        default: return call.by_reference();
    }
}

#define CHAINRULE_COMPARISON(WITH, name, op, text)                                        \
    PyObject* name(const Call& call) {                                                    \
        return comparison(call, CHAINRULE_CHOSEN(compare, name),                          \
                          [](std::int64_t n, const auto* a, const auto* b, Truth* out) {  \
                              for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] op b[i]; \
                          });                                                             \
    }
CHAINRULE_COMPARISONS(CHAINRULE_COMPARISON, )

// --- the larger, the smaller ---------------------------------------------------------------------

// (a, b)
template <class F>
PyObject* choice(const Call& call, Chosen<compare_functions, Choosing> which, const F& f) {
    Operand o[2];
    Shape shape;
    if (!call.has(2) || !o[0].read(call[0]) || !o[1].read(call[1]) || !shape_of(o, &shape))
        return call.by_reference();
    switch (common_type(o, 2)) {
        case NPY_FLOAT:
            return new_pairs<float, float>(call, o, shape, NPY_FLOAT,
                                           which.in(compare_of<float>()));
        case NPY_DOUBLE:
            return new_pairs<double, double>(call, o, shape, NPY_DOUBLE,
                                             which.in(compare_of<double>()));
        case NPY_INT64: return new_pairs<std::int64_t, std::int64_t>(call, o, shape, NPY_INT64, f);
        default: return call.by_reference();
    }
}

#define CHAINRULE_CHOICE(WITH, name, first, text)                                             \
    PyObject* name(const Call& call) {                                                        \
        return choice(call, CHAINRULE_CHOSEN(compare, name),                                  \
                      [](std::int64_t n, const auto* as, const auto* bs, std::int64_t* out) { \
                          for (std::int64_t i = 0; i < n; ++i) {                              \
                              const std::int64_t a = as[i], b = bs[i];                        \
                              out[i] = first ? a : b;                                         \
                          }                                                                   \
                      });                                                                     \
    }
CHAINRULE_CHOICES(CHAINRULE_CHOICE, )

// A limit that is a number, or none; false for any other, and for NaN.
template <class T>
bool limit_of(const Call& call, const Operand (&o)[3], int k, T none, T* limit) {
    *limit = none;
    if (call[k] == Py_None) return true;
    return o[k].array == nullptr && value_of(o[k], limit) && *limit == *limit;
}

template <class T>
PyObject* new_clamped(const Call& call, const Operand (&o)[3], const Shape& shape, int type) {
    Sources<3> s;
    if (!set_sources<T>(o, 0, 1, shape, &s)) return call.by_reference();
    constexpr T far = std::numeric_limits<T>::infinity();
    T low, high;
    if (limit_of(call, o, 1, -far, &low) && limit_of(call, o, 2, far, &high)) {
        Sources<1> of_x;
        if (!set_sources<T>(o, 0, 1, shape, &of_x)) return call.by_reference();
        PyArrayObject* out = new_array(shape.ndim, shape.sizes, type);
        if (out == nullptr) return nullptr;
        T* to = data<T>(out);
        run_with(of_x, [=](const Sources<1>& held) {
            const auto f = compare_of<T>().clamp_between;
            for_parts<T>(held, LIGHT, [=](std::int64_t n, const T* x, std::int64_t at) {
                f(n, x, low, high, to + at);
            });
        });
        return as_object(out);
    }
    for (int k = 1; k < 3; ++k) {
        if (call[k] == Py_None)
            s.of[k].set_number(k == 1 ? -far : far, shape.size);
        else if (!set_sources<T>(o, k, 1, shape, &s))
            return call.by_reference();
    }
    PyArrayObject* out = new_array(shape.ndim, shape.sizes, type);
    if (out == nullptr) return nullptr;
    T* to = data<T>(out);
    run_with(s, [=](const Sources<3>& held) {
        const auto f = compare_of<T>().clamp;
        for_parts<T, T, T>(held, LIGHT,
                           [=](std::int64_t n, const T* x, const T* low, const T* high,
                               std::int64_t at) { f(n, x, low, high, to + at); });
    });
    return as_object(out);
}

// (a, low, high), a limit of None is none
PyObject* clamp(const Call& call) {
    static Names names{"a", "low", "high"};
    PyObject* given[3];
    Operand o[3];
    Shape shape;
    if (!read_arguments(call, names, given) || given[0] == nullptr || given[1] == nullptr ||
        given[2] == nullptr || (given[1] == Py_None && given[2] == Py_None) || !o[0].read(given[0]))
        return call.by_reference();
    for (int k = 1; k < 3; ++k)
        if (given[k] != Py_None && !o[k].read(given[k])) return call.by_reference();
    if (o[0].array == nullptr || !shape_of(o, &shape)) return call.by_reference();
    const Call ordered{call.kernel, given, 3, nullptr};
    switch (common_type(o, 3)) {
        case NPY_FLOAT: return new_clamped<float>(ordered, o, shape, NPY_FLOAT);
        case NPY_DOUBLE: return new_clamped<double>(ordered, o, shape, NPY_DOUBLE);
        default: return call.by_reference();
    }
}

// --- where ---------------------------------------------------------------------------------------

template <class T, class F>
PyObject* new_selected(const Call& call, const Operand (&o)[3], const Shape& shape, int type,
                       const F& f) {
    Sources<3> s;
    if (!set_sources<Truth>(o, 0, 1, shape, &s) || !set_sources<T>(o, 1, 2, shape, &s))
        return call.by_reference();
    PyArrayObject* out = new_array(shape.ndim, shape.sizes, type);
    if (out == nullptr) return nullptr;
    T* to = data<T>(out);
    run_with(s, [=](const Sources<3>& held) {
        for_parts<Truth, T, T>(held, LIGHT,
                               [=](std::int64_t n, const Truth* c, const T* a, const T* b,
                                   std::int64_t at) { f(n, c, a, b, to + at); });
    });
    return as_object(out);
}

template <class T>
void select(std::int64_t n, const Truth* c, const T* a, const T* b, T* out) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? a[i] : b[i];
}

// (condition, a, b)
PyObject* where(const Call& call) {
    Operand o[3];
    Shape shape;
    if (!call.has(3) || !o[0].read(call[0]) || !o[1].read(call[1]) || !o[2].read(call[2]) ||
        o[0].type != NPY_BOOL || !shape_of(o, &shape))
        return call.by_reference();
    switch (common_type(o + 1, 2)) {
        case NPY_FLOAT:
            return new_selected<float>(call, o, shape, NPY_FLOAT, compare_of<float>().select);
        case NPY_DOUBLE:
            return new_selected<double>(call, o, shape, NPY_DOUBLE, compare_of<double>().select);
        case NPY_INT64:
            return new_selected<std::int64_t>(call, o, shape, NPY_INT64, select<std::int64_t>);
        case NPY_BOOL: return new_selected<Truth>(call, o, shape, NPY_BOOL, select<Truth>);
        default: return call.by_reference();
    }
}

// --- of one array --------------------------------------------------------------------------------

template <class T, class F>
PyObject* new_judged(const Call& call, PyArrayObject* a, const F& f) {
    Sources<1> s;
    PyArrayObject* out = new_array(PyArray_NDIM(a), PyArray_DIMS(a), NPY_BOOL);
    if (out == nullptr) return nullptr;
    if (!s.of[0].set(a, PyArray_NDIM(a), PyArray_DIMS(a))) {
        Py_DECREF(as_object(out));
        return call.by_reference();
    }
    s.size = PyArray_SIZE(a);
    Truth* to = data<Truth>(out);
    run_with(s, [=](const Sources<1>& held) {
        for_parts<T>(held, LIGHT,
                     [=](std::int64_t n, const T* x, std::int64_t at) { f(n, x, to + at); });
    });
    return as_object(out);
}

// (a)
PyObject* predicate(const Call& call, Chosen<compare_functions, Judging> which) {
    PyArrayObject* a = call.has(1) && PyArray_CheckExact(call[0]) ? as_array(call[0]) : nullptr;
    if (a == nullptr || PyArray_SIZE(a) == 0) return call.by_reference();
    if (PyArray_TYPE(a) == NPY_FLOAT)
        return new_judged<float>(call, a, which.in(compare_of<float>()));
    if (PyArray_TYPE(a) == NPY_DOUBLE)
        return new_judged<double>(call, a, which.in(compare_of<double>()));
    return call.by_reference();
}

#define CHAINRULE_PREDICATE(WITH, name, holds, text) \
    PyObject* name(const Call& call) { return predicate(call, CHAINRULE_CHOSEN(compare, name)); }
CHAINRULE_PREDICATES(CHAINRULE_PREDICATE, )

// --- truth values --------------------------------------------------------------------------------

// (a, b), of truth values alone
template <class F>
PyObject* logic(const Call& call, const F& f) {
    Operand o[2];
    Shape shape;
    if (!call.has(2) || !o[0].read(call[0]) || !o[1].read(call[1]) || !shape_of(o, &shape) ||
        common_type(o, 2) != NPY_BOOL)
        return call.by_reference();
    return new_pairs<Truth, Truth>(call, o, shape, NPY_BOOL, f);
}

#define CHAINRULE_LOGIC(EACH)                             \
    EACH(logical_and, &, "Whether a and b hold.")         \
    EACH(logical_or, |, "Whether a or b holds.")          \
    EACH(logical_xor, ^, "Whether one of a and b holds.") \
    EACH(bitwise_and, &, "The bits of both a and b.")     \
    EACH(bitwise_or, |, "The bits of a or b.")            \
    EACH(bitwise_xor, ^, "The bits of one of a and b.")

#define CHAINRULE_OF_TRUTH(name, op, text)                                                  \
    PyObject* name(const Call& call) {                                                      \
        return logic(call, [](std::int64_t n, const Truth* a, const Truth* b, Truth* out) { \
            for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<Truth>(a[i] op b[i]); \
        });                                                                                 \
    }
CHAINRULE_LOGIC(CHAINRULE_OF_TRUTH)

// (a), of truth values alone
PyObject* logical_not(const Call& call) {
    PyArrayObject* a = call.has(1) && PyArray_CheckExact(call[0]) ? as_array(call[0]) : nullptr;
    if (a == nullptr || PyArray_TYPE(a) != NPY_BOOL || PyArray_SIZE(a) == 0)
        return call.by_reference();
    return new_judged<Truth>(call, a, [](std::int64_t n, const Truth* x, Truth* out) {
        for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<Truth>(x[i] ^ 1);
    });
}

PyObject* bitwise_not(const Call& call) { return logical_not(call); }

}  // namespace

#define CHAINRULE_LISTED(WITH, name, value, text) CHAINRULE_METHOD(name, text),
#define CHAINRULE_LISTED_LOGIC(name, op, text) CHAINRULE_METHOD(name, text),

PyMethodDef compare_methods[] = {
    CHAINRULE_COMPARISONS(CHAINRULE_LISTED, ) CHAINRULE_CHOICES(CHAINRULE_LISTED, )
        CHAINRULE_PREDICATES(CHAINRULE_LISTED, ) CHAINRULE_LOGIC(CHAINRULE_LISTED_LOGIC)
            CHAINRULE_METHOD(logical_not, "Where a does not hold."),
    CHAINRULE_METHOD(bitwise_not, "a with every bit turned."),
    CHAINRULE_METHOD(clamp, "min(max(a, low), high)"),
    CHAINRULE_METHOD(where, "a where the condition holds, else b."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
