// Softmax and cross-entropy: the twins of backend/numpy_kernels/softmax.py.
#include "arguments.hpp"

namespace chainrule {
namespace {

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
    const auto f = softmax_of<T>().softmax;
    const T* from = data<T>(x);
    T* to = data<T>(out);
    const std::int64_t n = last_size(x);
    share(PyArray_SIZE(x) / n, COST * n,
          [=](std::int64_t i, std::int64_t end) { f(end - i, n, log, from + i * n, to + i * n); });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* any_softmax(const Call& call, bool log) {
    static Names names{"a", "dim"};
    PyObject* given[2];
    PyArrayObject* x = nullptr;
    if (read_arguments(call, names, given)) x = plain_real(given[0]);
    if (x == nullptr || !is_last(given[1], x)) return call.by_reference();
    return PyArray_TYPE(x) == NPY_FLOAT ? new_softmax<float>(x, log) : new_softmax<double>(x, log);
}

PyObject* softmax(const Call& call) { return any_softmax(call, false); }

PyObject* log_softmax(const Call& call) { return any_softmax(call, true); }

template <class T>
PyObject* new_backward(PyArrayObject* g, PyArrayObject* out, bool log) {
    PyArrayObject* result = new_like(g);
    if (result == nullptr) return nullptr;
    const auto f = softmax_of<T>().softmax_backward;
    const T *gs = data<T>(g), *outs = data<T>(out);
    T* to = data<T>(result);
    const std::int64_t n = last_size(g);
    share(PyArray_SIZE(g) / n, (log ? COST : 1) * n, [=](std::int64_t i, std::int64_t end) {
        f(end - i, n, log, gs + i * n, outs + i * n, to + i * n);
    });
    return reinterpret_cast<PyObject*>(result);
}

PyObject* any_backward(const Call& call, bool log) {
    static Names names{"g", "out", "dim"};
    PyObject* given[3];
    PyArrayObject *g = nullptr, *out = nullptr;
    if (read_arguments(call, names, given)) g = plain_real(given[0]);
    if (g != nullptr) out = plain_of(given[1], PyArray_TYPE(g));
    if (out == nullptr || !same_shape(g, out) || !is_last(given[2], g)) return call.by_reference();
    return PyArray_TYPE(g) == NPY_FLOAT ? new_backward<float>(g, out, log)
                                        : new_backward<double>(g, out, log);
}

PyObject* softmax_backward(const Call& call) { return any_backward(call, false); }

PyObject* log_softmax_backward(const Call& call) { return any_backward(call, true); }

// --- cross-entropy -------------------------------------------------------------------------------

#define CHAINRULE_REDUCTIONS(EACH) EACH(mean) EACH(sum) EACH(none)
#define CHAINRULE_EACH(name) name,
enum class Reduction { CHAINRULE_REDUCTIONS(CHAINRULE_EACH) unknown };
#undef CHAINRULE_EACH

Reduction reduction_of(PyObject* o) {
    if (o == nullptr || !PyUnicode_Check(o)) return Reduction::unknown;
#define CHAINRULE_EACH(name) \
    if (PyUnicode_CompareWithASCIIString(o, #name) == 0) return Reduction::name;
    CHAINRULE_REDUCTIONS(CHAINRULE_EACH)
#undef CHAINRULE_EACH
    return Reduction::unknown;
}

// Class numbers of the rows of an array, all of which are classes or to be ignored, in groups of
// equal size: a reduction is one for each group.
struct Targets {
    const std::int64_t* numbers;
    std::int64_t rows, ignore, kept, groups;

    std::int64_t size() const { return rows / groups; }  // of a group
    std::int64_t kept_of(std::int64_t group) const {
        if (kept == rows) return size();
        std::int64_t count = 0;
        for (std::int64_t i = group * size(); i < (group + 1) * size(); ++i)
            count += numbers[i] != ignore;
        return count;
    }
};

// False where there is a stray target (which the NumPy kernel tells), or anything else is odd.
bool targets_of(PyObject* o, PyArrayObject* a, PyObject* ignore_index, std::int64_t within,
                Targets* out) {
    PyArrayObject* target = o == nullptr ? nullptr : as_array(o);
    const int ndim = PyArray_NDIM(a);
    if (target == nullptr || PyArray_TYPE(target) != NPY_INT64 || !is_plain(target) ||
        PyArray_NDIM(target) != ndim - 1 ||
        !PyArray_CompareLists(PyArray_DIMS(target), PyArray_DIMS(a), ndim - 1) ||
        !as_integer(ignore_index, &out->ignore) || within < 0 || within >= ndim)
        return false;
    out->groups = 1;
    for (int i = 0; i < within; ++i) out->groups *= PyArray_DIM(a, i);
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
PyObject* new_cross_entropy(PyArrayObject* x, const Targets& t, Reduction reduction, int within,
                            bool both) {
    const std::int64_t n = last_size(x);
    const int type = PyArray_TYPE(x);
    PyArrayObject* p = new_like(x);
    if (p == nullptr) return nullptr;
    // The losses of the rows: the result, or on the way to it.
    T few[256];
    PyArrayObject* losses = nullptr;
    T* each = few;
    if (reduction == Reduction::none || t.rows > 256) {
        losses = new_array(PyArray_NDIM(x) - 1, PyArray_DIMS(x), type);
        if (losses == nullptr) {
            Py_DECREF(p);
            return nullptr;
        }
        each = data<T>(losses);
    }
    const auto f = softmax_of<T>().cross_entropy;
    const T* from = data<T>(x);
    T* to = data<T>(p);
    share(t.rows, COST * n, [=, &t](std::int64_t i, std::int64_t end) {
        f(end - i, n, t.ignore, from + i * n, t.numbers + i, to + i * n, each + i);
    });
    if (reduction != Reduction::none) {
        PyArrayObject* reduced = new_array(within, PyArray_DIMS(x), type);
        for (std::int64_t k = 0; reduced != nullptr && k < t.groups; ++k) {
            double total = sum_of(t.size(), each + k * t.size());
            if (reduction == Reduction::mean) total /= static_cast<double>(t.kept_of(k));
            data<T>(reduced)[k] = static_cast<T>(total);
        }
        Py_XDECREF(losses);
        losses = reduced;
        if (losses == nullptr) {
            Py_DECREF(p);
            return nullptr;
        }
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

// The number of dimensions in front for each entry of which there is a reduction; 0 if not given.
bool within_of(PyObject* given, std::int64_t* out) {
    *out = 0;
    return given == nullptr || as_integer(given, out);
}

// (a, target, dim, ignore_index, reduction, within=0)
PyObject* any_cross_entropy(const Call& call, bool both) {
    static Names names{"a", "target", "dim", "ignore_index", "reduction", "within"};
    PyObject* given[6];
    PyArrayObject* x = nullptr;
    Targets t;
    std::int64_t within = 0;
    Reduction reduction = Reduction::unknown;
    if (read_arguments(call, names, given) && within_of(given[5], &within)) {
        x = plain_real(given[0]);
        reduction = reduction_of(given[4]);
    }
    if (x == nullptr || reduction == Reduction::unknown || !is_last(given[2], x) ||
        !targets_of(given[1], x, given[3], within, &t))
        return call.by_reference();
    const int front = static_cast<int>(within);
    return PyArray_TYPE(x) == NPY_FLOAT ? new_cross_entropy<float>(x, t, reduction, front, both)
                                        : new_cross_entropy<double>(x, t, reduction, front, both);
}

PyObject* cross_entropy_and_softmax(const Call& call) { return any_cross_entropy(call, true); }

PyObject* cross_entropy(const Call& call) { return any_cross_entropy(call, false); }

template <class T>
PyObject* new_cross_entropy_backward(PyArrayObject* g, PyArrayObject* p, const Targets& t,
                                     Reduction reduction) {
    PyArrayObject* out = new_like(p);
    if (out == nullptr) return nullptr;
    const auto f = softmax_of<T>().cross_entropy_backward;
    const std::int64_t n = last_size(p);
    const T *gs = data<T>(g), *ps = data<T>(p);
    T* to = data<T>(out);
    if (reduction == Reduction::none) {
        share(t.rows, n, [=, &t](std::int64_t i, std::int64_t end) {
            f(end - i, n, t.ignore, false, gs + i, ps + i * n, t.numbers + i, to + i * n);
        });
        return reinterpret_cast<PyObject*>(out);
    }
    for (std::int64_t k = 0; k < t.groups; ++k) {
        const std::int64_t kept = reduction == Reduction::mean ? t.kept_of(k) : 1;
        const double count = static_cast<double>(kept > 0 ? kept : 1);
        const T scale = static_cast<T>(static_cast<double>(gs[k]) / count);
        const std::int64_t first = k * t.size();
        share(t.size(), n, [=, &t, &scale](std::int64_t i, std::int64_t end) {
            const std::int64_t r = first + i;
            f(end - i, n, t.ignore, true, &scale, ps + r * n, t.numbers + r, to + r * n);
        });
    }
    return reinterpret_cast<PyObject*>(out);
}

// Whether g is one number for each loss.
bool is_gradient(PyArrayObject* g, PyArrayObject* target, Reduction reduction, int within) {
    if (reduction == Reduction::none) return same_shape(g, target);
    if (within == 0) return PyArray_SIZE(g) == 1;
    return PyArray_NDIM(g) == within &&
           PyArray_CompareLists(PyArray_DIMS(g), PyArray_DIMS(target), within);
}

// (g, p, target, dim, ignore_index, reduction, within=0)
PyObject* cross_entropy_backward(const Call& call) {
    static Names names{"g", "p", "target", "dim", "ignore_index", "reduction", "within"};
    PyObject* given[7];
    PyArrayObject *g = nullptr, *p = nullptr;
    Targets t;
    std::int64_t within = 0;
    Reduction reduction = Reduction::unknown;
    if (read_arguments(call, names, given) && within_of(given[6], &within)) {
        g = plain_real(given[0]);
        reduction = reduction_of(given[5]);
    }
    if (g != nullptr) p = plain_of(given[1], PyArray_TYPE(g));
    if (p == nullptr || reduction == Reduction::unknown || !is_last(given[3], p) ||
        !targets_of(given[2], p, given[4], within, &t) ||
        !is_gradient(g, as_array(given[2]), reduction, static_cast<int>(within)))
        return call.by_reference();
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
