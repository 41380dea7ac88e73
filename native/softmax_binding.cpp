// Softmax and cross-entropy: the twins of backend/numpy_kernels/softmax.py.
#include "arguments.hpp"

namespace chainrule {
namespace {

template <class T>
const softmax_functions<T>& functions();
template <>
const softmax_functions<float>& functions<float>() { return softmax_kernels().f; }
template <>
const softmax_functions<double>& functions<double>() { return softmax_kernels().d; }

// Whether `dim` is the last dimension of an array with at least one element.
bool is_last(PyObject* dim, PyArrayObject* a) {
    std::int64_t d;
    return as_integer(dim, &d) && PyArray_NDIM(a) > 0 && PyArray_SIZE(a) > 0 &&
           (d == -1 || d == PyArray_NDIM(a) - 1);
}

std::int64_t last_size(PyArrayObject* a) { return PyArray_DIM(a, PyArray_NDIM(a) - 1); }

constexpr std::int64_t COST = 4;  // what an element costs, in simple operations

template <class T>
PyObject* new_softmax(PyArrayObject* x, bool log) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const auto f = functions<T>().softmax;
    const T* from = data<T>(x);
    T* to = data<T>(out);
    const std::int64_t n = last_size(x);
    share(PyArray_SIZE(x) / n, COST * n, [=](std::int64_t i, std::int64_t end) {
        f(end - i, n, log, from + i * n, to + i * n);
    });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* any_softmax(const char* name, bool log, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames) {
    static Names names = {{"a", "dim"}};
    PyObject* given[2];
    PyArrayObject* x = nullptr;
    if (read_arguments(args, nargs, kwnames, names, 2, given)) x = plain_real(given[0]);
    if (x == nullptr || !is_last(given[1], x)) return by_reference(name, args, nargs, kwnames);
    return PyArray_TYPE(x) == NPY_FLOAT ? new_softmax<float>(x, log) : new_softmax<double>(x, log);
}

PyObject* softmax(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return any_softmax("softmax", false, args, nargs, kwnames);
}

PyObject* log_softmax(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return any_softmax("log_softmax", true, args, nargs, kwnames);
}

template <class T>
PyObject* new_backward(PyArrayObject* g, PyArrayObject* out, bool log) {
    PyArrayObject* result = new_like(g);
    if (result == nullptr) return nullptr;
    const auto f = functions<T>().backward;
    const T *gs = data<T>(g), *outs = data<T>(out);
    T* to = data<T>(result);
    const std::int64_t n = last_size(g);
    share(PyArray_SIZE(g) / n, (log ? COST : 1) * n, [=](std::int64_t i, std::int64_t end) {
        f(end - i, n, log, gs + i * n, outs + i * n, to + i * n);
    });
    return reinterpret_cast<PyObject*>(result);
}

PyObject* any_backward(const char* name, bool log, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) {
    static Names names = {{"g", "out", "dim"}};
    PyObject* given[3];
    PyArrayObject *g = nullptr, *out = nullptr;
    if (read_arguments(args, nargs, kwnames, names, 3, given)) g = plain_real(given[0]);
    if (g != nullptr) out = plain_of(given[1], PyArray_TYPE(g));
    if (out == nullptr || !same_shape(g, out) || !is_last(given[2], g))
        return by_reference(name, args, nargs, kwnames);
    return PyArray_TYPE(g) == NPY_FLOAT ? new_backward<float>(g, out, log)
                                        : new_backward<double>(g, out, log);
}

PyObject* softmax_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return any_backward("softmax_backward", false, args, nargs, kwnames);
}

PyObject* log_softmax_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                               PyObject* kwnames) {
    return any_backward("log_softmax_backward", true, args, nargs, kwnames);
}

// --- cross-entropy --------------------------------------------------------------------------------

enum class Reduction { none, sum, mean, unknown };

Reduction reduction_of(PyObject* o) {
    if (o == nullptr || !PyUnicode_Check(o)) return Reduction::unknown;
    if (PyUnicode_CompareWithASCIIString(o, "mean") == 0) return Reduction::mean;
    if (PyUnicode_CompareWithASCIIString(o, "sum") == 0) return Reduction::sum;
    if (PyUnicode_CompareWithASCIIString(o, "none") == 0) return Reduction::none;
    return Reduction::unknown;
}

// Class numbers of the rows of an array, all of which are classes or to be ignored.
struct Targets {
    const std::int64_t* numbers;
    std::int64_t rows, ignore, kept;
};

// False where there is a stray target (which the NumPy kernel tells), or anything else is odd.
bool targets_of(PyObject* o, PyArrayObject* a, PyObject* ignore_index, Targets* out) {
    PyArrayObject* target = o == nullptr ? nullptr : as_array(o);
    const int ndim = PyArray_NDIM(a);
    if (target == nullptr || PyArray_TYPE(target) != NPY_INT64 || !is_plain(target) ||
        PyArray_NDIM(target) != ndim - 1 ||
        !PyArray_CompareLists(PyArray_DIMS(target), PyArray_DIMS(a), ndim - 1) ||
        !as_integer(ignore_index, &out->ignore))
        return false;
    const std::int64_t classes = last_size(a);
    out->numbers = data<std::int64_t>(target);
    out->rows = out->kept = PyArray_SIZE(target);
    for (std::int64_t i = 0; i < out->rows; ++i) {
        const std::int64_t t = out->numbers[i];
        if (t == out->ignore)
            --out->kept;
        else if (t < 0 || t >= classes)
            return false;
    }
    return true;
}

// Adds in blocks, so that rounding grows slowly, and in an order that does not depend on threads.
template <class T>
double sum_of(std::int64_t n, const T* x) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
    return total;
}

template <class T>
PyObject* new_cross_entropy(PyArrayObject* x, const Targets& t, Reduction reduction, bool both) {
    const std::int64_t n = last_size(x);
    const int type = PyArray_TYPE(x);
    PyArrayObject* p = new_like(x);
    if (p == nullptr) return nullptr;
    // The losses of the rows: the result, or on the way to it.
    T few[256];
    PyArrayObject* losses = nullptr;
    T* each = few;
    if (reduction == Reduction::none || t.rows > 256) {
        losses = reinterpret_cast<PyArrayObject*>(
            PyArray_SimpleNew(PyArray_NDIM(x) - 1, PyArray_DIMS(x), type));
        if (losses == nullptr) {
            Py_DECREF(p);
            return nullptr;
        }
        each = data<T>(losses);
    }
    const auto f = functions<T>().cross_entropy;
    const T* from = data<T>(x);
    T* to = data<T>(p);
    share(t.rows, COST * n, [=, &t](std::int64_t i, std::int64_t end) {
        f(end - i, n, t.ignore, from + i * n, t.numbers + i, to + i * n, each + i);
    });
    if (reduction != Reduction::none) {
        double total = sum_of(t.rows, each);
        if (reduction == Reduction::mean) total /= static_cast<double>(t.kept);
        Py_XDECREF(losses);
        losses = reinterpret_cast<PyArrayObject*>(PyArray_SimpleNew(0, nullptr, type));
        if (losses == nullptr) {
            Py_DECREF(p);
            return nullptr;
        }
        *data<T>(losses) = static_cast<T>(total);
    }
    if (!both) {
        Py_DECREF(p);
        return reinterpret_cast<PyObject*>(losses);
    }
    PyObject* pair = PyTuple_New(2);
    if (pair == nullptr) {
        Py_DECREF(p);
        Py_DECREF(losses);
        return nullptr;
    }
    PyTuple_SET_ITEM(pair, 0, reinterpret_cast<PyObject*>(losses));
    PyTuple_SET_ITEM(pair, 1, reinterpret_cast<PyObject*>(p));
    return pair;
}

// A reduction for each entry of dimensions in front is left to NumPy.
bool is_zero_or_missing(PyObject* within) {
    std::int64_t n;
    return within == nullptr || (as_integer(within, &n) && n == 0);
}

// (a, target, dim, ignore_index, reduction, within=0)
PyObject* any_cross_entropy(const char* name, bool both, PyObject* const* args, Py_ssize_t nargs,
                            PyObject* kwnames) {
    static Names names = {{"a", "target", "dim", "ignore_index", "reduction", "within"}};
    PyObject* given[6];
    PyArrayObject* x = nullptr;
    Targets t;
    Reduction reduction = Reduction::unknown;
    if (read_arguments(args, nargs, kwnames, names, 6, given) && is_zero_or_missing(given[5])) {
        x = plain_real(given[0]);
        reduction = reduction_of(given[4]);
    }
    if (x == nullptr || reduction == Reduction::unknown || !is_last(given[2], x) ||
        !targets_of(given[1], x, given[3], &t))
        return by_reference(name, args, nargs, kwnames);
    return PyArray_TYPE(x) == NPY_FLOAT ? new_cross_entropy<float>(x, t, reduction, both)
                                        : new_cross_entropy<double>(x, t, reduction, both);
}

PyObject* cross_entropy_and_softmax(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                                    PyObject* kwnames) {
    return any_cross_entropy("cross_entropy_and_softmax", true, args, nargs, kwnames);
}

PyObject* cross_entropy(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return any_cross_entropy("cross_entropy", false, args, nargs, kwnames);
}

template <class T>
PyObject* new_cross_entropy_backward(PyArrayObject* g, PyArrayObject* p, const Targets& t,
                                     Reduction reduction) {
    PyArrayObject* out = new_like(p);
    if (out == nullptr) return nullptr;
    const auto f = functions<T>().cross_entropy_backward;
    const std::int64_t n = last_size(p);
    const bool one = reduction != Reduction::none;
    T scale = 0;
    const T* gs = data<T>(g);
    if (one) {
        const std::int64_t count = reduction == Reduction::mean && t.kept > 0 ? t.kept : 1;
        scale = static_cast<T>(static_cast<double>(*gs) / static_cast<double>(count));
        gs = &scale;
    }
    const T* ps = data<T>(p);
    T* to = data<T>(out);
    share(t.rows, n, [=, &t](std::int64_t i, std::int64_t end) {
        f(end - i, n, t.ignore, one, gs + (one ? 0 : i), ps + i * n, t.numbers + i, to + i * n);
    });
    return reinterpret_cast<PyObject*>(out);
}

// (g, p, target, dim, ignore_index, reduction, within=0)
PyObject* cross_entropy_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                                 PyObject* kwnames) {
    static Names names = {{"g", "p", "target", "dim", "ignore_index", "reduction", "within"}};
    PyObject* given[7];
    PyArrayObject *g = nullptr, *p = nullptr;
    Targets t;
    Reduction reduction = Reduction::unknown;
    if (read_arguments(args, nargs, kwnames, names, 7, given) && is_zero_or_missing(given[6])) {
        g = plain_real(given[0]);
        reduction = reduction_of(given[5]);
    }
    if (g != nullptr) p = plain_of(given[1], PyArray_TYPE(g));
    if (p == nullptr || reduction == Reduction::unknown || !is_last(given[3], p) ||
        !targets_of(given[2], p, given[4], &t) ||
        PyArray_SIZE(g) != (reduction == Reduction::none ? t.rows : 1))
        return by_reference("cross_entropy_backward", args, nargs, kwnames);
    return PyArray_TYPE(p) == NPY_FLOAT ? new_cross_entropy_backward<float>(g, p, t, reduction)
                                        : new_cross_entropy_backward<double>(g, p, t, reduction);
}

}  // namespace

PyMethodDef softmax_methods[] = {
    CHAINRULE_METHOD(softmax, "exp(a) / sum(exp(a))"),
    CHAINRULE_METHOD(log_softmax, "The logarithm of softmax."),
    CHAINRULE_METHOD(softmax_backward, "out * (g - sum(g * out))"),
    CHAINRULE_METHOD(log_softmax_backward, "g - exp(out) * sum(g)"),
    CHAINRULE_METHOD(cross_entropy_and_softmax, "log(sum(exp(a))) - a[target], and softmax."),
    CHAINRULE_METHOD(cross_entropy, "log(sum(exp(a))) - a[target]"),
    CHAINRULE_METHOD(cross_entropy_backward, "(softmax - one_hot) * g"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
