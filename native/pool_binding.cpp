// Pooling: the twins of backend/numpy_kernels/pool.py.
#include "window_arguments.hpp"

#include <algorithm>
#include <atomic>

namespace chainrule {
namespace {

using Int = std::int64_t;

Int product(const Int* n) { return n[0] * n[1] * n[2]; }

// --- windows -------------------------------------------------------------------------------------

// Windows in three dimensions with their tables: begin, count and counted for every output of every
// dimension.
struct Placed {
    PoolShape shape;
    Int* tables = few;

    Placed() = default;
    Placed(Placed&& other) : shape(other.shape), tables(other.tables) {
        other.tables = other.few;
        if (tables != other.few) return;
        std::copy(other.few, other.few + FEW, few);
        tables = few;
        for (PoolAxis& a : shape.axis) {
            a.begin = few + (a.begin - other.few);
            a.count = few + (a.count - other.few);
            a.counted = few + (a.counted - other.few);
        }
    }
    Placed& operator=(const Placed&) = delete;
    ~Placed() {
        if (tables != few) PyMem_RawFree(tables);
    }
    // False with an error set if there is no memory.
    bool reserve(const Int* out) {
        const Int n = 3 * (out[0] + out[1] + out[2]);
        if (n > FEW)
            tables = static_cast<Int*>(PyMem_RawMalloc(static_cast<std::size_t>(n) * sizeof(Int)));
        if (tables == nullptr) PyErr_NoMemory();
        return tables != nullptr;
    }

  private:
    static constexpr Int FEW = 768;
    Int few[FEW];
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
bool place_windows(const Windows& w, bool count_pad, Placed& placed) {
    Int* next = placed.tables;
    for (int d = 0; d < 3; ++d) {
        PoolAxis& a = placed.shape.axis[d];
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
void place_adaptive(const Int* in, const Int* out, Placed& placed) {
    Int* next = placed.tables;
    for (int d = 0; d < 3; ++d) {
        PoolAxis& a = placed.shape.axis[d];
        Int *begin = next, *count = next + out[d], *counted = next + 2 * out[d];
        next += 3 * out[d];
        a = {in[d], out[d], 1, begin, count, counted, 0, 0, 1};
        for (Int i = 0; i < out[d]; ++i) {
            begin[i] = i * in[d] / out[d];
            counted[i] = count[i] = ((i + 1) * in[d] + out[d] - 1) / out[d] - begin[i];
        }
    }
    placed.shape.divisor = 0;
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

enum class What { max, narrow_max, average, transpose };  // narrow: indices of 32 bits

template <class T>
void compute(What what, const PoolShape& s, Int channels, const void* array, void* out) {
    const T* x = static_cast<const T*>(array);
    for_channels<T>(channels, window_elements(s),
                    [&](const pool_functions<T>& k, Int from, Int to) {
                        if (what == What::max)
                            k.max(s, from, to, x, static_cast<Int*>(out));
                        else if (what == What::narrow_max)
                            k.max32(s, from, to, x, static_cast<std::int32_t*>(out));
                        else if (what == What::average)
                            k.average(s, from, to, x, static_cast<T*>(out));
                        else
                            k.average_transpose(s, from, to, x, static_cast<T*>(out));
                    });
}

// The result, filled from the windows of an array.
PyObject* pooled(What what, Placed& placed, Int channels, PyArrayObject* a, PyArrayObject* out) {
    const void* from = PyArray_DATA(a);
    void* to = PyArray_DATA(out);
    const bool is_float = PyArray_TYPE(a) == NPY_FLOAT;
    run_with(placed, [=](const Placed& held) {
        is_float ? compute<float>(what, held.shape, channels, from, to)
                 : compute<double>(what, held.shape, channels, from, to);
    });
    return reinterpret_cast<PyObject*>(out);
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

// What finds the maxima, by an optional setting `narrow`; false if that is no bool.
bool which_maxima(PyObject* narrow, What* what) {
    if (narrow != nullptr && !PyBool_Check(narrow)) return false;
    *what = narrow == Py_True ? What::narrow_max : What::max;
    return true;
}

int type_of_indices(What what) { return what == What::narrow_max ? NPY_INT32 : NPY_INT64; }

Names max_names{"", "size", "kernel", "stride", "padding", "dilation", "narrow"};

// (x, size, kernel, stride, padding, dilation, narrow) -> index
PyObject* max_pool_indices(const Call& call) {
    PyObject* given[7];
    Windows w;
    Placed placed;
    What what;
    int nd;
    if (!read_arguments(call, max_names, given) || !which_maxima(given[6], &what))
        return call.by_reference();
    const Contiguous x(given[0]);
    if (x.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (!read_windows(given, x.get(), &nd, false, w)) return call.by_reference();
    if (!placed.reserve(w.out)) return nullptr;
    if (!place_windows(w, false, placed)) return call.by_reference();
    PyArrayObject* out = with_size(x.get(), nd, w.out, type_of_indices(what));
    if (out == nullptr) return nullptr;
    const Int channels = PyArray_SIZE(x.get()) / elements(placed.shape);
    return pooled(what, placed, channels, x.get(), out);
}

Names average_names{"", "size", "kernel", "stride", "padding", "dilation", "divisor", "count_pad"};

// (a, size, kernel, stride, padding, dilation, divisor, count_pad) -> array
PyObject* averages(const Call& call, What what) {
    PyObject* given[8];
    Windows w;
    Placed placed;
    int nd;
    const bool transposed = what == What::transpose;
    if (!read_arguments(call, average_names, given)) return call.by_reference();
    const Contiguous a(given[0]);
    if (a.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (given[6] == nullptr || given[7] == nullptr || !PyBool_Check(given[7]) ||
        !read_windows(given, a.get(), &nd, transposed, w))
        return call.by_reference();
    placed.shape.divisor = 0;
    if (given[6] != Py_None && !as_number(given[6], &placed.shape.divisor))
        return call.by_reference();
    if (!placed.reserve(w.out)) return nullptr;
    if (!place_windows(w, given[7] == Py_True, placed)) return call.by_reference();
    const Int* size = transposed ? w.in : w.out;
    PyArrayObject* out = with_size(a.get(), nd, size, PyArray_TYPE(a.get()));
    if (out == nullptr) return nullptr;
    return pooled(what, placed, PyArray_SIZE(out) / product(size), a.get(), out);
}

PyObject* avg_pool(const Call& call) { return averages(call, What::average); }

PyObject* avg_pool_transpose(const Call& call) { return averages(call, What::transpose); }

// --- adaptive windows ----------------------------------------------------------------------------

// (a, size) -> array
PyObject* adaptive(const Call& call, PyObject* const* given, What what) {
    Int own[3], other[3];
    Placed placed;
    const bool maxima = what == What::max || what == What::narrow_max;
    const Contiguous a(given[0]);
    if (a.get() == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    const int nd = dimensions(given[1]);
    if (nd == 0 || !spatial(a.get(), nd, own) || !triple(given[1], nd, 1, other) || other[0] < 1 ||
        other[1] < 1 || other[2] < 1)
        return call.by_reference();
    const Int *in = what == What::transpose ? other : own,
              *out_size = what == What::transpose ? own : other;
    const Int plane = in[0] * in[1];
    if (plane >= LARGEST || plane * in[2] >= LARGEST) return call.by_reference();
    if (!placed.reserve(out_size)) return nullptr;
    place_adaptive(in, out_size, placed);
    const int type = maxima ? type_of_indices(what) : PyArray_TYPE(a.get());
    PyArrayObject* out = with_size(a.get(), nd, other, type);
    if (out == nullptr) return nullptr;
    return pooled(what, placed, PyArray_SIZE(out) / product(other), a.get(), out);
}

Names adaptive_names{"", "size"};

PyObject* adaptive_averages(const Call& call, What what) {
    PyObject* given[2];
    if (!read_arguments(call, adaptive_names, given)) return call.by_reference();
    return adaptive(call, given, what);
}

PyObject* adaptive_avg_pool(const Call& call) { return adaptive_averages(call, What::average); }

PyObject* adaptive_avg_pool_transpose(const Call& call) {
    return adaptive_averages(call, What::transpose);
}

Names adaptive_max_names{"", "size", "narrow"};

PyObject* adaptive_max_pool_indices(const Call& call) {
    PyObject* given[3];
    What what;
    if (!read_arguments(call, adaptive_max_names, given) || !which_maxima(given[2], &what))
        return call.by_reference();
    return adaptive(call, given, what);
}

// --- by index ------------------------------------------------------------------------------------

// An index array of the shape of `like` in all but its last `nd` dimensions.
bool fits(PyObject* o, PyArrayObject* like, int nd, bool all) {
    PyArrayObject* index = o == nullptr ? nullptr : as_array(o);
    if (index == nullptr || !is_plain(index) ||
        (PyArray_TYPE(index) != NPY_INT64 && PyArray_TYPE(index) != NPY_INT32) ||
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

// Elements that are taken from, or put to, places that an index names; false if one is outside.
struct ByIndex {
    const void* from;
    PyArrayObject* index;
    void* to;
    Int indices, elements, channels;  // indices of a channel, and elements that they name one of

    bool is_narrow() const { return PyArray_TYPE(index) == NPY_INT32; }

    template <class T>
    bool gather() const {
        return all_channels<T>(
            channels, indices, [this](const pool_functions<T>& k, Int first, Int last) {
                const T* x = static_cast<const T*>(from);
                T* y = static_cast<T*>(to);
                return is_narrow()
                           ? k.gather32(indices, elements, first, last, x,
                                        data<std::int32_t>(index), y)
                           : k.gather(indices, elements, first, last, x, data<Int>(index), y);
            });
    }
    template <class T>
    bool scatter(bool add) const {
        return all_channels<T>(
            channels, indices + elements, [=](const pool_functions<T>& k, Int first, Int last) {
                const T* y = static_cast<const T*>(from);
                T* x = static_cast<T*>(to);
                return is_narrow()
                           ? k.scatter32(indices, elements, first, last, add, y,
                                         data<std::int32_t>(index), x)
                           : k.scatter(indices, elements, first, last, add, y, data<Int>(index), x);
            });
    }
};

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
    Kept out;
    out.a = with_size(x.get(), static_cast<int>(nd), size, type);
    if (out.a == nullptr) return nullptr;
    const Int n = product(size);
    const ByIndex by{PyArray_DATA(x.get()),  index, PyArray_DATA(out.a), n, product(in),
                     PyArray_SIZE(index) / n};
    if (run([=] { return type == NPY_FLOAT ? by.gather<float>() : by.gather<double>(); }))
        return out.release();
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
    Kept out;
    out.a = with_size(y.get(), nd, size, type);
    if (out.a == nullptr) return nullptr;
    const Int n = product(in), channels = PyArray_SIZE(index) / n;
    const bool add = given[3] == Py_False;
    const ByIndex by{PyArray_DATA(y.get()),          index,   PyArray_DATA(out.a), n,
                     PyArray_SIZE(out.a) / channels, channels};
    if (run([=] { return type == NPY_FLOAT ? by.scatter<float>(add) : by.scatter<double>(add); }))
        return out.release();
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
