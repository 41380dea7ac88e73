// Reductions and sums along the way: the twins of amax, argmax, pnorm, var, logsumexp, cumsum and
// their like in backend/numpy_kernels/reduce.py, of arrays of any steps along any dimensions; and
// the second bindings of sum, mean, sum_to and softmax.
#include "reduce.hpp"

#include "general.hpp"
#include "rows.hpp"

namespace chainrule {
namespace {

PyObject* as_object(PyArrayObject* a) { return reinterpret_cast<PyObject*>(a); }

PyArrayObject* real_array(PyObject* o) {
    PyArrayObject* a = o != nullptr && PyArray_CheckExact(o) ? as_array(o) : nullptr;
    return a != nullptr && is_real(a) ? a : nullptr;
}

// An array and the rows of it that become a number each.
struct Reduced {
    PyArrayObject* a = nullptr;
    Rows rows;

    bool read(PyObject* array, PyObject* dims, PyObject* keepdim) {
        a = real_array(array);
        Dims taken;
        return a != nullptr && keepdim != nullptr && PyBool_Check(keepdim) &&
               taken.add_all(dims, PyArray_NDIM(a)) && rows.set(a, taken, keepdim == Py_True);
    }
    bool read_one(PyObject* array, PyObject* dim, PyObject* keepdim) {
        a = real_array(array);
        Dims taken;
        return a != nullptr && keepdim != nullptr && PyBool_Check(keepdim) && dim != nullptr &&
               taken.add(dim, PyArray_NDIM(a)) && rows.set(a, taken, keepdim == Py_True);
    }
    int type() const { return PyArray_TYPE(a); }
};

// f(n, x) of each row.
template <class T, class F>
PyObject* new_numbers(Reduced& r, std::int64_t cost, const F& f) {
    Kept out;
    out.a = new_array(r.rows.ndim, r.rows.shape, r.type());
    if (out.a == nullptr) return nullptr;
    T* to = data<T>(out.a);
    const bool done = run_with(r.rows, [=](const Rows& rows) {
        return rows.each<T>(cost, [&](const T* x, std::int64_t row) { to[row] = f(rows.n, x); });
    });
    return done ? out.release() : PyErr_NoMemory();
}

// f(T(), n, x) of each row, for the type of the array.
template <class F>
PyObject* numbers(Reduced& r, std::int64_t cost, const F& f) {
    if (r.type() == NPY_FLOAT)
        return new_numbers<float>(r, cost, [=](std::int64_t n, const float* x) { return f(n, x); });
    return new_numbers<double>(r, cost, [=](std::int64_t n, const double* x) { return f(n, x); });
}

// (a, dim, keepdim)
template <class F>
PyObject* reduction(const Call& call, std::int64_t cost, const F& f) {
    static Names names{"a", "dim", "keepdim"};
    PyObject* given[3];
    Reduced r;
    if (!read_arguments(call, names, given) || !r.read(given[0], given[1], given[2]))
        return call.by_reference();
    return numbers(r, cost, f);
}

template <class T>
const reduce_functions<T>& functions(const T*) {
    return reduce_of<T>();
}

PyObject* amax(const Call& call) {
    return reduction(call, LIGHT,
                     [](std::int64_t n, const auto* x) { return functions(x).largest(n, x); });
}

PyObject* amin(const Call& call) {
    return reduction(call, LIGHT,
                     [](std::int64_t n, const auto* x) { return functions(x).smallest(n, x); });
}

PyObject* prod(const Call& call) {
    return reduction(call, LIGHT,
                     [](std::int64_t n, const auto* x) { return functions(x).product(n, x); });
}

PyObject* logsumexp(const Call& call) {
    return reduction(call, HEAVY, [](std::int64_t n, const auto* x) {
        const auto& f = functions(x);
        const auto top = f.largest(n, x);
        const auto shift = std::isfinite(top) ? top : decltype(top)(0);
        return f.logarithm(f.exponentials(n, x, shift)) + shift;
    });
}

// (a, dim, keepdim, p)
PyObject* pnorm(const Call& call) {
    static Names names{"a", "dim", "keepdim", "p"};
    PyObject* given[4];
    Reduced r;
    double p;
    if (!read_arguments(call, names, given) || !as_number(given[3], &p) || !(p > 0) ||
        !std::isfinite(p) || !r.read(given[0], given[1], given[2]))
        return call.by_reference();
    if (p == 1)
        return numbers(r, LIGHT,
                       [](std::int64_t n, const auto* x) { return functions(x).sizes(n, x); });
    if (p == 2)
        return numbers(r, LIGHT, [](std::int64_t n, const auto* x) {
            return std::sqrt(functions(x).about(n, x, 0));
        });
    return numbers(r, 8, [=](std::int64_t n, const auto* x) {
        using T = std::decay_t<decltype(*x)>;
        return std::pow(functions(x).powers(n, x, T(p)), T(1 / p));
    });
}

// (a, dim, keepdim, correction)
PyObject* any_variance(const Call& call, bool root) {
    static Names names{"a", "dim", "keepdim", "correction"};
    PyObject* given[4];
    Reduced r;
    double correction;
    if (!read_arguments(call, names, given) || !as_number(given[3], &correction) ||
        !r.read(given[0], given[1], given[2]))
        return call.by_reference();
    return numbers(r, 2, [=](std::int64_t n, const auto* x) {
        using T = std::decay_t<decltype(*x)>;
        const auto& f = functions(x);
        const double left = static_cast<double>(n) - correction;
        const T mean = f.total(n, x) / static_cast<T>(n);
        const T variance = f.about(n, x, mean) / static_cast<T>(left > 0 ? left : 0);
        return root ? std::sqrt(variance) : variance;
    });
}

PyObject* var(const Call& call) { return any_variance(call, false); }

PyObject* std_(const Call& call) { return any_variance(call, true); }

// --- which one -----------------------------------------------------------------------------------

template <class T>
PyObject* new_places(Reduced& r, bool largest, bool with_values) {
    Kept values, places;
    if (with_values) {
        values.a = new_array(r.rows.ndim, r.rows.shape, r.type());
        if (values.a == nullptr) return nullptr;
    }
    places.a = new_array(r.rows.ndim, r.rows.shape, NPY_INT64);
    if (places.a == nullptr) return nullptr;
    T* to = with_values ? data<T>(values.a) : nullptr;
    std::int64_t* at = data<std::int64_t>(places.a);
    const bool done = run_with(r.rows, [=](const Rows& rows) {
        const auto& f = reduce_of<T>();
        return rows.each<T>(LIGHT, [&](const T* x, std::int64_t row) {
            const T best = largest ? f.largest(rows.n, x) : f.smallest(rows.n, x);
            if (to != nullptr) to[row] = best;
            at[row] = f.place_of(rows.n, x, best);
        });
    });
    if (!done) return PyErr_NoMemory();
    if (!with_values) return places.release();
    return tuple_of({values.release(), places.release()});
}

// (a, dim, keepdim)
PyObject* chosen(const Call& call, bool largest, bool with_values) {
    static Names names{"a", "dim", "keepdim"};
    PyObject* given[3];
    Reduced r;
    if (!read_arguments(call, names, given) || !r.read_one(given[0], given[1], given[2]))
        return call.by_reference();
    return r.type() == NPY_FLOAT ? new_places<float>(r, largest, with_values)
                                 : new_places<double>(r, largest, with_values);
}

PyObject* argmax(const Call& call) { return chosen(call, true, false); }
PyObject* argmin(const Call& call) { return chosen(call, false, false); }
PyObject* max_along(const Call& call) { return chosen(call, true, true); }
PyObject* min_along(const Call& call) { return chosen(call, false, true); }

// --- along the way -------------------------------------------------------------------------------

template <class T>
PyObject* new_running(PyArrayObject* a, int dim, bool reverse) {
    PyArrayObject* out = new_like(a);
    if (out == nullptr) return nullptr;
    const std::int64_t n = PyArray_DIM(a, dim), size = PyArray_SIZE(a);
    std::int64_t inner = 1;
    for (int d = dim + 1; d < PyArray_NDIM(a); ++d) inner *= PyArray_DIM(a, d);
    const T* from = data<T>(a);
    T* to = data<T>(out);
    run([=] {
        const auto f = reduce_of<T>().running;
        const std::int64_t begin = reverse ? (n - 1) * inner : 0, step = reverse ? -inner : inner;
        share(size / n, n * 2, [=](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) {
                const std::int64_t at = i / inner * n * inner + i % inner + begin;
                f(n, step, from + at, to + at);
            }
        });
    });
    return as_object(out);
}

// (a, dim, reverse)
PyObject* cumsum(const Call& call) {
    static Names names{"a", "dim", "reverse"};
    PyObject* given[3];
    PyArrayObject* a = nullptr;
    std::int64_t dim;
    if (read_arguments(call, names, given)) a = plain_real(given[0]);
    if (a == nullptr || PyArray_SIZE(a) == 0 || !as_integer(given[1], &dim) ||
        dim < -PyArray_NDIM(a) || dim >= PyArray_NDIM(a) || given[2] == nullptr ||
        !PyBool_Check(given[2]))
        return call.by_reference();
    const int d = static_cast<int>(dim < 0 ? dim + PyArray_NDIM(a) : dim);
    return PyArray_TYPE(a) == NPY_FLOAT ? new_running<float>(a, d, given[2] == Py_True)
                                        : new_running<double>(a, d, given[2] == Py_True);
}

// --- second bindings -----------------------------------------------------------------------------

// Sums of (outer, n, inner) in one piece row after row, all others each for itself.
template <class T>
PyObject* new_sums(Reduced& r, bool mean) {
    Kept out;
    out.a = new_array(r.rows.ndim, r.rows.shape, r.type());
    if (out.a == nullptr) return nullptr;
    T* to = data<T>(out.a);
    const bool done = run_with(r.rows, [=](const Rows& rows) {
        const T* x = reinterpret_cast<const T*>(rows.source.place);
        const T by = static_cast<T>(rows.n);
        if (rows.inner <= 1) {
            const auto f = reduce_of<T>().total;
            return rows.each<T>(LIGHT, [&](const T* row, std::int64_t i) {
                const T sum = f(rows.n, row);
                to[i] = mean ? sum / by : sum;
            });
        }
        const std::int64_t n = rows.n, inner = rows.inner;
        const auto f = linear_of<T>().sum_rows;
        share(rows.count / inner, n * inner, [=](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) {
                T* sums = to + i * inner;
                f(n, inner, x + i * n * inner, inner, sums);
                for (std::int64_t k = 0; mean && k < inner; ++k) sums[k] /= by;
            }
        });
        return true;
    });
    return done ? out.release() : PyErr_NoMemory();
}

bool any_sum(const Call& call, bool mean, PyObject** result) {
    static Names names{"a", "dim", "keepdim"};
    PyObject* given[3];
    Reduced r;
    if (!read_arguments(call, names, given) || !r.read(given[0], given[1], given[2])) return false;
    *result = r.type() == NPY_FLOAT ? new_sums<float>(r, mean) : new_sums<double>(r, mean);
    return true;
}

}  // namespace

bool general_sum(const Call& call, PyObject** result) { return any_sum(call, false, result); }
bool general_mean(const Call& call, PyObject** result) { return any_sum(call, true, result); }

// (a, shape): what is 1 in the shape, or is not in it, is summed
bool general_sum_to(const Call& call, PyObject** result) {
    static Names names{"a", "shape"};
    PyObject* given[2];
    Reduced r;
    if (!read_arguments(call, names, given) || given[1] == nullptr || !PyTuple_Check(given[1]))
        return false;
    r.a = real_array(given[0]);
    const Py_ssize_t ndim = PyTuple_GET_SIZE(given[1]);
    if (r.a == nullptr || ndim > PyArray_NDIM(r.a)) return false;
    const int extra = PyArray_NDIM(r.a) - static_cast<int>(ndim);
    npy_intp shape[NPY_MAXDIMS];
    Dims taken;
    for (int d = 0; d < PyArray_NDIM(r.a); ++d) {
        std::int64_t size = 0;
        if (d >= extra && !as_integer(PyTuple_GET_ITEM(given[1], d - extra), &size)) return false;
        if (d >= extra) shape[d - extra] = size;
        if (d >= extra && size == PyArray_DIM(r.a, d)) continue;
        if (d >= extra && size != 1) return false;
        taken.is[d] = true;
    }
    if (!r.rows.set(r.a, taken, false)) return false;
    r.rows.ndim = static_cast<int>(ndim);
    for (int d = 0; d < r.rows.ndim; ++d) r.rows.shape[d] = shape[d];
    *result = r.type() == NPY_FLOAT ? new_sums<float>(r, false) : new_sums<double>(r, false);
    return true;
}

namespace {

// --- softmax along other dimensions than the last ------------------------------------------------

// A matrix (n, inner) turned, so that its columns are rows, or back.
template <class T>
void turn(std::int64_t rows, std::int64_t cols, const T* from, T* to) {
    constexpr std::int64_t TILE = 16;
    for (std::int64_t i = 0; i < rows; i += TILE)
        for (std::int64_t j = 0; j < cols; j += TILE)
            for (std::int64_t y = i; y < rows && y < i + TILE; ++y)
                for (std::int64_t x = j; x < cols && x < j + TILE; ++x)
                    to[x * rows + y] = from[y * cols + x];
}

// f(rows, n, first, second, out) for arrays (outer, n, inner), each turned; the second may be null.
template <class T, class F>
bool on_turned(std::int64_t outer, std::int64_t n, std::int64_t inner, const T* first,
               const T* second, T* out, const F& f) {
    std::atomic<bool> done{true};
    const std::int64_t size = n * inner;
    share(outer, size * 8, [&](std::int64_t i, std::int64_t end) {
        const Scratch memory(1, static_cast<std::size_t>(3 * size) * sizeof(T));
        T* held = static_cast<T*>(memory.get());
        if (held == nullptr) {
            done = false;
            return;
        }
        for (; i < end; ++i) {
            turn(n, inner, first + i * size, held);
            if (second != nullptr) turn(n, inner, second + i * size, held + size);
            f(inner, n, held, held + size, held + 2 * size);
            turn(inner, n, held + 2 * size, out + i * size);
        }
    });
    return done;
}

struct Along {
    std::int64_t outer = 1, n = 1, inner = 1;

    bool read(PyArrayObject* a, PyObject* dim) {
        std::int64_t d;
        const int ndim = PyArray_NDIM(a);
        if (!as_integer(dim, &d) || d < -ndim || d >= ndim || PyArray_SIZE(a) == 0) return false;
        d = d < 0 ? d + ndim : d;
        for (int i = 0; i < ndim; ++i) (i < d ? outer : i == d ? n : inner) *= PyArray_DIM(a, i);
        return true;
    }
};

template <class T>
PyObject* new_softmax(PyArrayObject* a, const Along& along, bool log) {
    Kept out;
    out.a = new_like(a);
    if (out.a == nullptr) return nullptr;
    const T* x = data<T>(a);
    T* to = data<T>(out.a);
    const bool done = run([=] {
        const auto f = softmax_of<T>().softmax;
        return on_turned<T>(along.outer, along.n, along.inner, x, nullptr, to,
                            [=](std::int64_t rows, std::int64_t n, const T* from, const T*, T* y) {
                                f(rows, n, log, from, y);
                            });
    });
    return done ? out.release() : PyErr_NoMemory();
}

bool any_softmax(const Call& call, bool log, PyObject** result) {
    static Names names{"a", "dim"};
    PyObject* given[2];
    PyArrayObject* a = nullptr;
    Along along;
    if (read_arguments(call, names, given)) a = plain_real(given[0]);
    if (a == nullptr || !along.read(a, given[1])) return false;
    *result = PyArray_TYPE(a) == NPY_FLOAT ? new_softmax<float>(a, along, log)
                                           : new_softmax<double>(a, along, log);
    return true;
}

template <class T>
PyObject* new_softmax_backward(PyArrayObject* g, PyArrayObject* out, const Along& along, bool log) {
    Kept made;
    made.a = new_like(g);
    if (made.a == nullptr) return nullptr;
    const T *gs = data<T>(g), *outs = data<T>(out);
    T* to = data<T>(made.a);
    const bool done = run([=] {
        const auto f = softmax_of<T>().softmax_backward;
        return on_turned<T>(along.outer, along.n, along.inner, gs, outs, to,
                            [=](std::int64_t rows, std::int64_t n, const T* first, const T* second,
                                T* y) { f(rows, n, log, first, second, y); });
    });
    return done ? made.release() : PyErr_NoMemory();
}

bool any_softmax_backward(const Call& call, bool log, PyObject** result) {
    static Names names{"g", "out", "dim"};
    PyObject* given[3];
    PyArrayObject *g = nullptr, *out = nullptr;
    Along along;
    if (read_arguments(call, names, given)) g = plain_real(given[0]);
    if (g != nullptr) out = plain_of(given[1], PyArray_TYPE(g));
    if (out == nullptr || !same_shape(g, out) || !along.read(g, given[2])) return false;
    *result = PyArray_TYPE(g) == NPY_FLOAT ? new_softmax_backward<float>(g, out, along, log)
                                           : new_softmax_backward<double>(g, out, along, log);
    return true;
}

}  // namespace

bool general_softmax(const Call& call, PyObject** result) {
    return any_softmax(call, false, result);
}
bool general_log_softmax(const Call& call, PyObject** result) {
    return any_softmax(call, true, result);
}
bool general_softmax_backward(const Call& call, PyObject** result) {
    return any_softmax_backward(call, false, result);
}
bool general_log_softmax_backward(const Call& call, PyObject** result) {
    return any_softmax_backward(call, true, result);
}

PyMethodDef reduce_methods[] = {
    CHAINRULE_METHOD(amax, "The largest element along dimensions."),
    CHAINRULE_METHOD(amin, "The smallest element along dimensions."),
    CHAINRULE_METHOD(prod, "The product along dimensions."),
    CHAINRULE_METHOD(logsumexp, "log(sum(exp(a))) along dimensions."),
    CHAINRULE_METHOD(pnorm, "(sum |a|^p)^(1/p) along dimensions."),
    CHAINRULE_METHOD(var, "The variance along dimensions."),
    CHAINRULE_METHOD_NAMED("std", std_, "The standard deviation along dimensions."),
    CHAINRULE_METHOD(argmax, "Where the largest element stands first."),
    CHAINRULE_METHOD(argmin, "Where the smallest element stands first."),
    CHAINRULE_METHOD(max_along, "The largest element, and where it stands first."),
    CHAINRULE_METHOD(min_along, "The smallest element, and where it stands first."),
    CHAINRULE_METHOD(cumsum, "The sums of all elements so far."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
