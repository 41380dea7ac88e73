#include "general.hpp"

#include <string_view>
#include <unordered_map>

#include "sources.hpp"

namespace chainrule {
namespace {

// Each takes a call and says whether it knows what to do with it.
using General = bool (*)(const Call& call, PyObject** result);

PyObject* as_object(PyArrayObject* a) { return reinterpret_cast<PyObject*>(a); }

// --- one array -----------------------------------------------------------------------------------

template <class T>
PyObject* new_unary(Unary which, std::int64_t cost, PyArrayObject* a, Sources<1>& s) {
    PyArrayObject* out = new_like(a);
    if (out == nullptr) return nullptr;
    const auto f = which.in(elementwise_of<T>());
    T* to = data<T>(out);
    run_with(s, [=](const Sources<1>& held) {
        for_parts<T>(held, cost,
                     [=](std::int64_t n, const T* x, std::int64_t at) { f(n, x, to + at); });
    });
    return as_object(out);
}

// (a), of any steps
bool unary(const Call& call, PyObject** result, Unary which, std::int64_t cost, Floats floats) {
    PyArrayObject* a = call.has(1) && PyArray_CheckExact(call[0]) ? as_array(call[0]) : nullptr;
    if (a == nullptr || !is_real(a) || PyArray_SIZE(a) == 0) return false;
    const bool single = PyArray_TYPE(a) == NPY_FLOAT;
    Sources<1> s;
    if ((!single && floats == Floats::single) || !s.of[0].set(a, PyArray_NDIM(a), PyArray_DIMS(a)))
        return false;
    s.size = PyArray_SIZE(a);
    *result = single ? new_unary<float>(which, cost, a, s) : new_unary<double>(which, cost, a, s);
    return true;
}

// --- two arrays ----------------------------------------------------------------------------------

struct Pair {
    Operand o[2];
    Shape shape;
    Sources<2> sources;
    int type = -1;

    // Real numbers of one type.
    bool read(const Call& call) {
        if (!call.has(2) || !o[0].read(call[0]) || !o[1].read(call[1]) || !shape_of(o, &shape))
            return false;
        type = common_type(o, 2);
        return (type == NPY_FLOAT && set_sources<float>(o, 0, 2, shape, &sources)) ||
               (type == NPY_DOUBLE && set_sources<double>(o, 0, 2, shape, &sources));
    }
};

template <class T>
PyObject* new_binary(Binary which, std::int64_t cost, Pair& pair) {
    PyArrayObject* out = new_array(pair.shape.ndim, pair.shape.sizes, pair.type);
    if (out == nullptr) return nullptr;
    const auto f = which.in(elementwise_of<T>());
    T* to = data<T>(out);
    run_with(pair.sources, [=](const Sources<2>& held) {
        for_parts<T, T>(held, cost, [=](std::int64_t n, const T* a, const T* b, std::int64_t at) {
            f(n, a, b, to + at);
        });
    });
    return as_object(out);
}

// (g, y): arrays of one shape
bool binary(const Call& call, PyObject** result, Binary which, std::int64_t cost, Floats floats) {
    Pair pair;
    if (!pair.read(call) || (pair.type == NPY_DOUBLE && floats == Floats::single)) return false;
    PyArrayObject *g = pair.o[0].array, *y = pair.o[1].array;
    if (g == nullptr || y == nullptr || !same_shape(g, y)) return false;
    *result = pair.type == NPY_FLOAT ? new_binary<float>(which, cost, pair)
                                     : new_binary<double>(which, cost, pair);
    return true;
}

// (a, b): arrays that fit by repetition, or one of them and a number
bool arithmetic(const Call& call, PyObject** result, Binary which) {
    Pair pair;
    if (!pair.read(call)) return false;
    *result = pair.type == NPY_FLOAT ? new_binary<float>(which, LIGHT, pair)
                                     : new_binary<double>(which, LIGHT, pair);
    return true;
}

// --- powers --------------------------------------------------------------------------------------

// Of float64, NumPy has a faster power for many.
constexpr std::int64_t FEW_POWERS = 64;

// An exponent for which there is a shorter way, as NumPy and PyTorch take it.
template <class T>
bool simple_power(std::int64_t n, const T* x, T exponent, T* out) {
    if (exponent == T(2)) {
        elementwise_of<T>().square(n, x, out);
    } else if (exponent == T(3)) {
        for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * x[i] * x[i];
    } else if (exponent == T(1)) {
        for (std::int64_t i = 0; i < n; ++i) out[i] = x[i];
    } else if (exponent == T(-1)) {
        elementwise_of<T>().reciprocal(n, x, out);
    } else if (exponent == T(0.5)) {
        elementwise_of<T>().sqrt(n, x, out);
    } else {
        return false;
    }
    return true;
}

// Whether there is one exponent for all is told by its form, so that the bits depend on no values
// but those of the element.
template <class T>
void compute_powers(const Sources<2>& s, bool one_exponent, T* to) {
    T exponent;
    std::memcpy(&exponent, s.of[1].begin(), sizeof exponent);
    for_parts<T, T>(s, 8, [=](std::int64_t n, const T* a, const T* b, std::int64_t at) {
        if (!one_exponent || !simple_power(n, a, exponent, to + at))
            elementwise_of<T>().power(n, a, b, to + at);
    });
}

template <class T>
bool is_simple(T exponent) {
    const T few[] = {T(2), T(3), T(1), T(-1), T(0.5)};
    for (const T simple : few)
        if (exponent == simple) return true;
    return false;
}

template <class T>
bool new_powers(Pair& pair, PyObject** result) {
    const Source& by = pair.sources.of[1];
    const bool one_exponent = pair.o[1].array == nullptr || PyArray_NDIM(pair.o[1].array) == 0;
    T exponent;
    std::memcpy(&exponent, by.begin(), sizeof exponent);
    if (sizeof(T) == 8 && pair.shape.size > FEW_POWERS && !(one_exponent && is_simple(exponent)))
        return false;
    PyArrayObject* out = new_array(pair.shape.ndim, pair.shape.sizes, pair.type);
    *result = as_object(out);
    if (out == nullptr) return true;
    T* to = data<T>(out);
    run_with(pair.sources, [=](const Sources<2>& held) {
        T now;
        std::memcpy(&now, held.of[1].begin(), sizeof now);
        // An exponent in an array may have become another one.
        if (sizeof(T) == 8 && held.size > FEW_POWERS && !is_simple(now)) return false;
        compute_powers(held, one_exponent, to);
        return true;
    });
    return true;
}

// (a, b)
bool pow(const Call& call, PyObject** result) {
    Pair pair;
    if (!pair.read(call)) return false;
    return pair.type == NPY_FLOAT ? new_powers<float>(pair, result)
                                  : new_powers<double>(pair, result);
}

// --- by name -------------------------------------------------------------------------------------

#define CHAINRULE_UNARY(WITH, name, value, cost, floats, text)                                  \
    {#name, [](const Call& call, PyObject** result) {                                           \
         return unary(call, result, CHAINRULE_CHOSEN(elementwise, name), cost, Floats::floats); \
     }},
#define CHAINRULE_BINARY(WITH, name, value, cost, floats, text)                                  \
    {#name, [](const Call& call, PyObject** result) {                                            \
         return binary(call, result, CHAINRULE_CHOSEN(elementwise, name), cost, Floats::floats); \
     }},
#define CHAINRULE_OPERATION(WITH, name, op, text)                                      \
    {#name, [](const Call& call, PyObject** result) {                                  \
         return arithmetic(call, result, CHAINRULE_CHOSEN(elementwise, name##_pairs)); \
     }},

const std::unordered_map<std::string_view, General>& by_name() {
    static const std::unordered_map<std::string_view, General> table = {
        CHAINRULE_UNARIES(CHAINRULE_UNARY, ) CHAINRULE_BINARIES(CHAINRULE_BINARY, )
            CHAINRULE_ARITHMETIC(CHAINRULE_OPERATION, ){"pow", pow},
        {"matmul", general_matmul},
        {"sum", general_sum},
        {"mean", general_mean},
        {"sum_to", general_sum_to},
        {"softmax", general_softmax},
        {"log_softmax", general_log_softmax},
        {"softmax_backward", general_softmax_backward},
        {"log_softmax_backward", general_log_softmax_backward},
    };
    return table;
}

}  // namespace

bool taken_by_general(const Call& call, PyObject** result) {
    const auto found = by_name().find(call.kernel);
    return found != by_name().end() && found->second(call, result);
}

}  // namespace chainrule
