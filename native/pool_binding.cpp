// Pooling: the twins of backend/numpy_kernels/pool.py.
#include "window_arguments.hpp"

#include <atomic>

namespace chainrule {
namespace {

using Int = std::int64_t;

Int product(const Int* n) { return n[0] * n[1] * n[2]; }

// --- windows -------------------------------------------------------------------------------------

// The tables of a shape: begin, count and counted for every output of every dimension.
struct Tables {
    Int few[768];
    Int* memory = few;
    ~Tables() {
        if (memory != few) PyMem_Free(memory);
    }
    // False with an error set if there is no memory.
    bool reserve(const Int* out) {
        const Int n = 3 * (out[0] + out[1] + out[2]);
        if (n > 768)
            memory = static_cast<Int*>(PyMem_Malloc(static_cast<std::size_t>(n) * sizeof(Int)));
        if (memory == nullptr) PyErr_NoMemory();
        return memory != nullptr;
    }
};

// The outputs whose windows have the length of the longest and follow each other evenly.
void find_even(PoolAxis& a, Int stride, Int longest) {
    a.stride = stride;
    a.from = a.to = 0;
    if (stride < 1) return;
    while (a.from < a.out && a.count[a.from] != longest) ++a.from;
    a.to = a.from;
    while (a.to < a.out && a.count[a.to] == longest &&
           (a.to == a.from || a.begin[a.to] == a.begin[a.to - 1] + stride))
        ++a.to;
}

struct Windows {
    Int in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// False if a window has no element inside.
bool place_windows(const Windows& w, bool count_pad, Tables& tables, PoolShape& s) {
    Int* next = tables.memory;
    for (int d = 0; d < 3; ++d) {
        PoolAxis& a = s.axis[d];
        Int *begin = next, *count = next + w.out[d], *counted = next + 2 * w.out[d];
        next += 3 * w.out[d];
        a = {w.in[d], w.out[d], w.dilation[d], begin, count, counted, 0, 0, 0};
        const Int step = w.dilation[d];
        for (Int i = 0; i < w.out[d]; ++i) {
            const Int start = i * w.stride[d] - w.padding[d];
            const Int before = start < 0 ? (-start + step - 1) / step : 0;
            const Int room = w.in[d] - start;  // places up to the end
            const Int all = room <= 0 ? 0 : (room + step - 1) / step;
            const Int last = all < w.kernel[d] ? all : w.kernel[d];
            if (before >= last) return false;
            begin[i] = start + before * step;
            count[i] = last - before;
            const Int padded = room + w.padding[d];
            const Int most = padded <= 0 ? 0 : (padded + step - 1) / step;
            counted[i] = count_pad ? (most < w.kernel[d] ? most : w.kernel[d]) : count[i];
        }
        find_even(a, w.stride[d], w.kernel[d]);
    }
    return true;
}

// Windows of adaptive pooling: n elements in `out` parts.
void place_adaptive(const Int* in, const Int* out, Tables& tables, PoolShape& s) {
    Int* next = tables.memory;
    for (int d = 0; d < 3; ++d) {
        PoolAxis& a = s.axis[d];
        Int *begin = next, *count = next + out[d], *counted = next + 2 * out[d];
        next += 3 * out[d];
        a = {in[d], out[d], 1, begin, count, counted, 0, 0, 1};
        for (Int i = 0; i < out[d]; ++i) {
            begin[i] = i * in[d] / out[d];
            counted[i] = count[i] = ((i + 1) * in[d] + out[d] - 1) / out[d] - begin[i];
        }
    }
    s.divisor = 0;
}

// work(kernels, from, to) for the channels.
template <class T, class F>
void for_channels(Int channels, Int cost, const F& work) {
    share(channels, cost > 0 ? cost : 1, [&](Int from, Int to) { work(pool_of<T>(), from, to); });
}

Int elements(const PoolShape& s) { return s.axis[0].in * s.axis[1].in * s.axis[2].in; }

Int window_elements(const PoolShape& s) {
    double n = 1;
    for (const PoolAxis& a : s.axis)
        n *= static_cast<double>(a.out) * static_cast<double>(a.count[0]);
    return n < 1e9 ? static_cast<Int>(n) : static_cast<Int>(1e9);
}

// --- regular windows -----------------------------------------------------------------------------

// Reads (size, kernel, stride, padding, dilation); `size` is that of the result.
bool read_windows(PyObject** given, PyArrayObject* a, int* nd, bool transposed, Windows& w) {
    *nd = dimensions(given[1]);
    Int *own = transposed ? w.out : w.in, *other = transposed ? w.in : w.out;
    if (*nd == 0 || !spatial(a, *nd, own) || !triple(given[1], *nd, 1, other) ||
        !triple(given[2], *nd, 1, w.kernel) || !triple(given[3], *nd, 1, w.stride) ||
        !triple(given[4], *nd, 0, w.padding) || !triple(given[5], *nd, 1, w.dilation))
        return false;
    for (int d = 0; d < 3; ++d)
        if (other[d] < 1 || w.kernel[d] < 1 || w.stride[d] < 1 || w.dilation[d] < 1) return false;
    // Indices of elements fit into 32 bits.
    const Int n = w.in[0] * w.in[1];
    return n < LARGEST && n * w.in[2] < LARGEST;
}

Names max_names{"", "size", "kernel", "stride", "padding", "dilation"};

// (x, size, kernel, stride, padding, dilation) -> index
PyObject* max_pool_indices(const Call& call) {
    PyObject* given[6];
    Windows w;
    Tables tables;
    PoolShape s;
    int nd;
    if (!read_arguments(call, max_names, given)) return call.by_reference();
    const Contiguous x(given[0]);
    if (x.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (!read_windows(given, x.get(), &nd, false, w)) return call.by_reference();
    if (!tables.reserve(w.out)) return nullptr;
    if (!place_windows(w, false, tables, s)) return call.by_reference();
    PyArrayObject* out = with_size(x.get(), nd, w.out, NPY_INT64);
    if (out == nullptr) return nullptr;
    const Int channels = PyArray_SIZE(x.get()) / elements(s), cost = window_elements(s);
    if (PyArray_TYPE(x.get()) == NPY_FLOAT)
        for_channels<float>(channels, cost, [&](const pool_functions<float>& k, Int from, Int to) {
            k.max(s, from, to, data<float>(x.get()), data<Int>(out));
        });
    else
        for_channels<double>(channels, cost,
                             [&](const pool_functions<double>& k, Int from, Int to) {
                                 k.max(s, from, to, data<double>(x.get()), data<Int>(out));
                             });
    return reinterpret_cast<PyObject*>(out);
}

Names average_names{"", "size", "kernel", "stride", "padding", "dilation", "divisor", "count_pad"};

// (a, size, kernel, stride, padding, dilation, divisor, count_pad) -> array
PyObject* averages(const Call& call, bool transposed) {
    PyObject* given[8];
    Windows w;
    Tables tables;
    PoolShape s;
    int nd;
    if (!read_arguments(call, average_names, given)) return call.by_reference();
    const Contiguous a(given[0]);
    if (a.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (given[6] == nullptr || given[7] == nullptr || !PyBool_Check(given[7]) ||
        !read_windows(given, a.get(), &nd, transposed, w))
        return call.by_reference();
    s.divisor = 0;
    if (given[6] != Py_None && !as_number(given[6], &s.divisor)) return call.by_reference();
    if (!tables.reserve(w.out)) return nullptr;
    if (!place_windows(w, given[7] == Py_True, tables, s)) return call.by_reference();
    const int type = PyArray_TYPE(a.get());
    PyArrayObject* out = with_size(a.get(), nd, transposed ? w.in : w.out, type);
    if (out == nullptr) return nullptr;
    const Int channels = PyArray_SIZE(out) / product(transposed ? w.in : w.out);
    const Int cost = window_elements(s);
    const auto run = [&](const auto& k, Int from, Int to, const auto* in, auto* result) {
        transposed ? k.average_transpose(s, from, to, in, result)
                   : k.average(s, from, to, in, result);
    };
    if (type == NPY_FLOAT)
        for_channels<float>(channels, cost, [&](const pool_functions<float>& k, Int from, Int to) {
            run(k, from, to, data<float>(a.get()), data<float>(out));
        });
    else
        for_channels<double>(channels, cost,
                             [&](const pool_functions<double>& k, Int from, Int to) {
                                 run(k, from, to, data<double>(a.get()), data<double>(out));
                             });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* avg_pool(const Call& call) { return averages(call, false); }

PyObject* avg_pool_transpose(const Call& call) { return averages(call, true); }

// --- adaptive windows ----------------------------------------------------------------------------

Names adaptive_names{"", "size"};

enum class Adaptive { average, transpose, max };

// (a, size) -> array
PyObject* adaptive(const Call& call, Adaptive kind) {
    PyObject* given[2];
    Int own[3], other[3];
    Tables tables;
    PoolShape s;
    if (!read_arguments(call, adaptive_names, given)) return call.by_reference();
    const Contiguous a(given[0]);
    if (a.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    const int nd = dimensions(given[1]);
    if (nd == 0 || !spatial(a.get(), nd, own) || !triple(given[1], nd, 1, other) || other[0] < 1 ||
        other[1] < 1 || other[2] < 1)
        return call.by_reference();
    const Int *in = kind == Adaptive::transpose ? other : own,
              *out_size = kind == Adaptive::transpose ? own : other;
    const Int plane = in[0] * in[1];
    if (plane >= LARGEST || plane * in[2] >= LARGEST) return call.by_reference();
    if (!tables.reserve(out_size)) return nullptr;
    place_adaptive(in, out_size, tables, s);
    const int type = PyArray_TYPE(a.get());
    PyArrayObject* out = with_size(a.get(), nd, other, kind == Adaptive::max ? NPY_INT64 : type);
    if (out == nullptr) return nullptr;
    const Int channels = PyArray_SIZE(out) / product(other), cost = window_elements(s);
    const auto run = [&](const auto& k, Int from, Int to, const auto* x, auto* result) {
        if (kind == Adaptive::max)
            k.max(s, from, to, x, data<Int>(out));
        else if (kind == Adaptive::average)
            k.average(s, from, to, x, result);
        else
            k.average_transpose(s, from, to, x, result);
    };
    if (type == NPY_FLOAT)
        for_channels<float>(channels, cost, [&](const pool_functions<float>& k, Int from, Int to) {
            run(k, from, to, data<float>(a.get()), data<float>(out));
        });
    else
        for_channels<double>(channels, cost,
                             [&](const pool_functions<double>& k, Int from, Int to) {
                                 run(k, from, to, data<double>(a.get()), data<double>(out));
                             });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* adaptive_avg_pool(const Call& call) { return adaptive(call, Adaptive::average); }

PyObject* adaptive_avg_pool_transpose(const Call& call) {
    return adaptive(call, Adaptive::transpose);
}

PyObject* adaptive_max_pool_indices(const Call& call) { return adaptive(call, Adaptive::max); }

// --- by index ------------------------------------------------------------------------------------

// An index array of the shape of `like` in all but its last `nd` dimensions.
bool fits(PyObject* o, PyArrayObject* like, int nd, bool all) {
    PyArrayObject* index = o == nullptr ? nullptr : as_array(o);
    if (index == nullptr || PyArray_TYPE(index) != NPY_INT64 || !is_plain(index) ||
        PyArray_NDIM(index) != PyArray_NDIM(like) || PyArray_SIZE(index) == 0)
        return false;
    const int same = all ? PyArray_NDIM(like) : PyArray_NDIM(like) - nd;
    return PyArray_CompareLists(PyArray_DIMS(index), PyArray_DIMS(like), same);
}

// Runs work(kernels, from, to) -> bool over the channels; false if any part says so.
template <class T, class F>
bool all_channels(Int channels, Int cost, const F& work) {
    std::atomic<bool> fine{true};
    for_channels<T>(channels, cost, [&](const pool_functions<T>& k, Int from, Int to) {
        if (!work(k, from, to)) fine.store(false);
    });
    return fine.load();
}

Names gather_names{"", "", "nd", "unique"};

// (x, index, nd, unique) -> y
PyObject* pool_gather(const Call& call) {
    PyObject* given[4];
    Int nd, in[3], size[3];
    if (!read_arguments(call, gather_names, given)) return call.by_reference();
    const Contiguous x(given[0]);
    if (x.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (!as_integer(given[2], &nd) || nd < 1 || nd > 3 || nd > PyArray_NDIM(x.get()) ||
        given[3] == nullptr || !fits(given[1], x.get(), static_cast<int>(nd), false))
        return call.by_reference();
    PyArrayObject* index = as_array(given[1]);
    if (!spatial(x.get(), static_cast<int>(nd), in) || !spatial(index, static_cast<int>(nd), size))
        return call.by_reference();
    const int type = PyArray_TYPE(x.get());
    PyArrayObject* out = with_size(x.get(), static_cast<int>(nd), size, type);
    if (out == nullptr) return nullptr;
    const Int n = product(size), m = product(in), channels = PyArray_SIZE(index) / n;
    const bool fine =
        type == NPY_FLOAT
            ? all_channels<float>(channels, n,
                                  [&](const pool_functions<float>& k, Int from, Int to) {
                                      return k.gather(n, m, from, to, data<float>(x.get()),
                                                      data<Int>(index), data<float>(out));
                                  })
            : all_channels<double>(channels, n,
                                   [&](const pool_functions<double>& k, Int from, Int to) {
                                       return k.gather(n, m, from, to, data<double>(x.get()),
                                                       data<Int>(index), data<double>(out));
                                   });
    if (fine) return reinterpret_cast<PyObject*>(out);
    Py_DECREF(out);
    return call.by_reference();
}

Names scatter_names{"", "", "size", "unique"};

// (y, index, size, unique) -> x
PyObject* pool_scatter(const Call& call) {
    PyObject* given[4];
    Int in[3], size[3];
    if (!read_arguments(call, scatter_names, given)) return call.by_reference();
    const Contiguous y(given[0]);
    if (y.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    const int nd = dimensions(given[2]), type = PyArray_TYPE(y.get());
    if (nd == 0 || !triple(given[2], nd, 1, size) || size[0] < 1 || size[1] < 1 || size[2] < 1 ||
        given[3] == nullptr || !PyBool_Check(given[3]) || !spatial(y.get(), nd, in) ||
        !fits(given[1], y.get(), nd, true))
        return call.by_reference();
    PyArrayObject* index = as_array(given[1]);
    PyArrayObject* out = with_size(y.get(), nd, size, type);
    if (out == nullptr) return nullptr;
    const Int n = product(in), m = PyArray_SIZE(out) / (PyArray_SIZE(y.get()) / n);
    const Int channels = PyArray_SIZE(index) / n;
    const bool add = given[3] == Py_False;
    const bool fine =
        type == NPY_FLOAT
            ? all_channels<float>(channels, n + m,
                                  [&](const pool_functions<float>& k, Int from, Int to) {
                                      return k.scatter(n, m, from, to, add, data<float>(y.get()),
                                                       data<Int>(index), data<float>(out));
                                  })
            : all_channels<double>(channels, n + m,
                                   [&](const pool_functions<double>& k, Int from, Int to) {
                                       return k.scatter(n, m, from, to, add, data<double>(y.get()),
                                                        data<Int>(index), data<double>(out));
                                   });
    if (fine) return reinterpret_cast<PyObject*>(out);
    Py_DECREF(out);
    return call.by_reference();
}

}  // namespace

PyMethodDef pool_methods[] = {
    CHAINRULE_METHOD(max_pool_indices, "Where the maximum of each window lies."),
    CHAINRULE_METHOD(avg_pool, "The average of each window."),
    CHAINRULE_METHOD(avg_pool_transpose, "Each output's share goes back to its window."),
    CHAINRULE_METHOD(adaptive_avg_pool, "The averages of adaptive windows."),
    CHAINRULE_METHOD(adaptive_avg_pool_transpose, "The transpose of adaptive_avg_pool."),
    CHAINRULE_METHOD(adaptive_max_pool_indices, "Where the maximum of each adaptive window lies."),
    CHAINRULE_METHOD(pool_gather, "The elements of each channel at indices."),
    CHAINRULE_METHOD(pool_scatter, "Elements put to indices of each channel."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
