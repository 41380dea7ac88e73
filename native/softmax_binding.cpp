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
    const T* from = data<T>(x);
    T* to = data<T>(out);
    const std::int64_t n = last_size(x), rows = PyArray_SIZE(x) / n;
    run([=] {
        const auto f = softmax_of<T>().softmax;
        share(rows, COST * n, [=](std::int64_t i, std::int64_t end) {
            f(end - i, n, log, from + i * n, to + i * n);
        });
    });
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
    const T *gs = data<T>(g), *outs = data<T>(out);
    T* to = data<T>(result);
    const std::int64_t n = last_size(g), rows = PyArray_SIZE(g) / n;
    run([=] {
        const auto f = softmax_of<T>().softmax_backward;
        share(rows, (log ? COST : 1) * n, [=](std::int64_t i, std::int64_t end) {
            f(end - i, n, log, gs + i * n, outs + i * n, to + i * n);
        });
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

// Class numbers of the rows of an array in groups of equal size: a reduction is one for each group.
struct Targets {
    const std::int64_t* numbers;
    std::int64_t rows, ignore, groups, classes;
    std::int64_t kept = 0;  // of those that are not ignored; known after `count`

    std::int64_t size() const { return rows / groups; }  // of a group
    // Whether all of them are classes or to be ignored.
    bool count() {
        kept = rows;
        for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t t = numbers[i];
            if (t == ignore)
                --kept;
            else if (t < 0 || t >= classes)
                return false;
        }
        return true;
    }
    std::int64_t kept_of(std::int64_t group) const {
        if (kept == rows) return size();
        std::int64_t count = 0;
        for (std::int64_t i = group * size(); i < (group + 1) * size(); ++i)
            count += numbers[i] != ignore;
        return count;
    }
};

// False where anything is odd. A stray target is found when the targets are counted.
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
    out->classes = last_size(a);
    out->numbers = data<std::int64_t>(target);
    out->rows = PyArray_SIZE(target);
    return true;
}

// Adds in blocks, so that rounding grows slowly, and in an order that does not depend on threads.
template <class T>
double sum_of(std::int64_t n, const T* x) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
    return total;
}

constexpr std::int64_t FEW_ROWS = 256;  // whose losses need no array on the way to their sum

// False if there is a stray target. `each` gets the losses of the rows; it may be null if they are
// few. `reduced` is null if there is no reduction.
template <class T>
bool compute_cross_entropy(const T* from, Targets t, bool mean, T* to, T* each, T* reduced) {
    if (!t.count()) return false;
    T few[FEW_ROWS];
    if (each == nullptr) each = few;
    const auto f = softmax_of<T>().cross_entropy;
    const std::int64_t n = t.classes;
    share(t.rows, COST * n, [=, &t](std::int64_t i, std::int64_t end) {
        f(end - i, n, t.ignore, from + i * n, t.numbers + i, to + i * n, each + i);
    });
    for (std::int64_t k = 0; reduced != nullptr && k < t.groups; ++k) {
        double total = sum_of(t.size(), each + k * t.size());
        if (mean) total /= static_cast<double>(t.kept_of(k));
        reduced[k] = static_cast<T>(total);
    }
    return true;
}

template <class T>
PyObject* new_cross_entropy(const Call& call, PyArrayObject* x, const Targets& t,
                            Reduction reduction, int within, bool both) {
    const int type = PyArray_TYPE(x);
    Kept p, losses, reduced;
    if ((p.a = new_like(x)) == nullptr) return nullptr;
    if (reduction == Reduction::none || t.rows > FEW_ROWS) {
        losses.a = new_array(PyArray_NDIM(x) - 1, PyArray_DIMS(x), type);
        if (losses.a == nullptr) return nullptr;
    }
    if (reduction != Reduction::none) {
        reduced.a = new_array(within, PyArray_DIMS(x), type);
        if (reduced.a == nullptr) return nullptr;
    }
    const T* from = data<T>(x);
    T *to = data<T>(p.a), *each = losses.a == nullptr ? nullptr : data<T>(losses.a);
    T* sums = reduced.a == nullptr ? nullptr : data<T>(reduced.a);
    const bool mean = reduction == Reduction::mean;
    if (!run([=] { return compute_cross_entropy(from, t, mean, to, each, sums); }))
        return call.by_reference();
    Kept& result = reduced.a != nullptr ? reduced : losses;
    return both ? tuple_of({result.release(), p.release()}) : result.release();
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
    return PyArray_TYPE(x) == NPY_FLOAT
               ? new_cross_entropy<float>(call, x, t, reduction, front, both)
               : new_cross_entropy<double>(call, x, t, reduction, front, both);
}

PyObject* cross_entropy_and_softmax(const Call& call) { return any_cross_entropy(call, true); }

PyObject* cross_entropy(const Call& call) { return any_cross_entropy(call, false); }

// False if there is a stray target. `each`: g has a number for each row, else for each group.
template <class T>
bool compute_cross_entropy_backward(const T* gs, const T* ps, Targets t, bool each, bool mean,
                                    T* to) {
    if (!t.count()) return false;
    const auto f = softmax_of<T>().cross_entropy_backward;
    const std::int64_t n = t.classes;
    if (each) {
        share(t.rows, n, [=, &t](std::int64_t i, std::int64_t end) {
            f(end - i, n, t.ignore, false, gs + i, ps + i * n, t.numbers + i, to + i * n);
        });
        return true;
    }
    for (std::int64_t k = 0; k < t.groups; ++k) {
        const std::int64_t kept = mean ? t.kept_of(k) : 1;
        const double count = static_cast<double>(kept > 0 ? kept : 1);
        const T scale = static_cast<T>(static_cast<double>(gs[k]) / count);
        const std::int64_t first = k * t.size();
        share(t.size(), n, [=, &t, &scale](std::int64_t i, std::int64_t end) {
            const std::int64_t r = first + i;
            f(end - i, n, t.ignore, true, &scale, ps + r * n, t.numbers + r, to + r * n);
        });
    }
    return true;
}

template <class T>
PyObject* new_cross_entropy_backward(const Call& call, PyArrayObject* g, PyArrayObject* p,
                                     const Targets& t, Reduction reduction, bool in_place) {
    Kept out;
    if (in_place) Py_INCREF(p);
    if ((out.a = in_place ? p : new_like(p)) == nullptr) return nullptr;
    const T *gs = data<T>(g), *ps = data<T>(p);
    T* to = data<T>(out.a);
    const bool each = reduction == Reduction::none, mean = reduction == Reduction::mean;
    if (!run([=] { return compute_cross_entropy_backward(gs, ps, t, each, mean, to); }))
        return call.by_reference();
    return out.release();
}

// Whether g is one number for each loss.
bool is_gradient(PyArrayObject* g, PyArrayObject* target, Reduction reduction, int within) {
    if (reduction == Reduction::none) return same_shape(g, target);
    if (within == 0) return PyArray_SIZE(g) == 1;
    return PyArray_NDIM(g) == within &&
           PyArray_CompareLists(PyArray_DIMS(g), PyArray_DIMS(target), within);
}

// (g, p, target, dim, ignore_index, reduction, within=0, into=None); `into` may be p
PyObject* cross_entropy_backward(const Call& call) {
    static Names names{"g", "p", "target", "dim", "ignore_index", "reduction", "within", "into"};
    PyObject* given[8];
    PyArrayObject *g = nullptr, *p = nullptr;
    Targets t;
    std::int64_t within = 0;
    Reduction reduction = Reduction::unknown;
    if (read_arguments(call, names, given) && within_of(given[6], &within)) {
        g = plain_real(given[0]);
        reduction = reduction_of(given[5]);
    }
    if (g != nullptr) p = plain_of(given[1], PyArray_TYPE(g));
    const bool in_place = given[7] != nullptr && given[7] != Py_None;
    if (p == nullptr || reduction == Reduction::unknown || !is_last(given[3], p) ||
        !targets_of(given[2], p, given[4], within, &t) ||
        !is_gradient(g, as_array(given[2]), reduction, static_cast<int>(within)) ||
        (in_place && (given[7] != given[1] || !PyArray_ISWRITEABLE(p))))
        return call.by_reference();
    return PyArray_TYPE(p) == NPY_FLOAT
               ? new_cross_entropy_backward<float>(call, g, p, t, reduction, in_place)
               : new_cross_entropy_backward<double>(call, g, p, t, reduction, in_place);
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
