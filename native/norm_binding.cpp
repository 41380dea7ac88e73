// normalize, normalize_parts, normalize_backward and scale_channels: the twins of
// backend/numpy_kernels/norm.py.
#include "arguments.hpp"

namespace chainrule {
namespace {

constexpr int MAX_DIMS = 16;

// How an array is normalized over some of its dimensions.
struct Layout {
    int ndim = 0;
    npy_intp shape[MAX_DIMS];
    bool reduced[MAX_DIMS] = {};
    npy_intp statistics[MAX_DIMS];  // the shape of the means
    bool by_rows = false;
    NormRows rows{};
    NormChannels channels{};

    std::int64_t size() const {
        return by_rows ? rows.rows * rows.parts * rows.space
                       : channels.outer * channels.channels * channels.space;
    }

    // The dimensions that are neither empty nor of size 1 are (kept, reduced), (reduced, kept) or
    // (reduced, kept, reduced); other orders are left to the NumPy kernel.
    bool read(PyArrayObject* x, PyObject* dims) {
        ndim = PyArray_NDIM(x);
        if (ndim > MAX_DIMS || !PyTuple_Check(dims)) return false;
        for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(x, i);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dims); ++k) {
            std::int64_t at;
            if (!as_integer(PyTuple_GET_ITEM(dims, k), &at) || at < -ndim || at >= 0) return false;
            bool& flag = reduced[at + ndim];
            if (flag) return false;
            flag = true;
        }
        std::int64_t sizes[3];
        bool is_reduced[3];
        int runs = 0;
        for (int i = 0; i < ndim; ++i) {
            statistics[i] = reduced[i] ? 1 : shape[i];
            if (shape[i] == 0) return false;
            if (shape[i] == 1) continue;
            if (runs > 0 && is_reduced[runs - 1] == reduced[i]) {
                sizes[runs - 1] *= shape[i];
                continue;
            }
            if (runs == 3) return false;
            is_reduced[runs] = reduced[i];
            sizes[runs++] = shape[i];
        }
        if (runs == 1 && is_reduced[0])
            rows = {1, 1, sizes[0], 1};
        else if (runs == 2 && is_reduced[1])
            rows = {sizes[0], 1, sizes[1], 1};
        else if (runs == 2)
            channels = {sizes[0], sizes[1], 1};
        else if (runs == 3 && is_reduced[0])
            channels = {sizes[0], sizes[1], sizes[2]};
        else
            return false;
        by_rows = rows.rows != 0;
        return true;
    }

    // Whether weight or bias, which broadcasts to the array, is one of those that the kernels know;
    // it says how rows are cut into parts.
    bool read_weight(PyArrayObject* w) {
        const int missing = ndim - PyArray_NDIM(w);
        if (missing < 0) return false;
        std::int64_t period = 1, parts = 1;
        bool kept_ended = false, spread = false;
        for (int i = 0; i < ndim; ++i) {
            const npy_intp size = i < missing ? 1 : PyArray_DIM(w, i - missing);
            if (size != 1 && size != shape[i]) return false;
            if (shape[i] == 1) continue;
            if (!by_rows) {
                if ((size == 1) != reduced[i]) return false;
            } else if (!reduced[i]) {
                // Along the kept dimensions it is repeated, and then runs.
                if (size == 1 && kept_ended) return false;
                kept_ended |= size != 1;
                period *= size;
            } else {
                // Along the reduced ones it runs, and then is repeated.
                if (size != 1 && spread) return false;
                spread |= size == 1;
                parts *= size;
            }
        }
        if (by_rows) {
            rows.space = rows.parts * rows.space / parts;
            rows.parts = parts;
            rows.period = period;
        }
        return true;
    }
};

template <class T>
T* data_or_null(PyArrayObject* a) {
    return a == nullptr ? nullptr : data<T>(a);
}

// Calls work(begin, end) for parts of a number of units that have so many elements together.
template <class Work>
void share_units(std::int64_t units, std::int64_t elements, const Work& work) {
    if (elements < GRAIN / 4) return work(0, units);
    WithoutGil released;
    const std::int64_t each = elements / units;
    parallel_for(units, GRAIN / 4 / (each + 1) + 1, work);
}

// Channels with little space are shared in blocks that lie together.
template <class Work>
void share_channels(const NormChannels& s, const Work& work) {
    const std::int64_t block = s.space < 64 ? 64 / s.space : 1;
    const std::int64_t elements = s.outer * s.channels * s.space;
    share_units((s.channels + block - 1) / block, elements,
                [&](std::int64_t begin, std::int64_t end) {
                    work(begin * block, end * block < s.channels ? end * block : s.channels);
                });
}

// --- forward -------------------------------------------------------------------------------------

struct Parts {
    Kept out, mean, rstd, var;
};

template <class T>
void compute_forward(const Layout& layout, const NormForward<T>& a) {
    if (layout.by_rows)
        share_units(layout.rows.rows, layout.size(), [&](std::int64_t begin, std::int64_t end) {
            norm_of<T>().rows(layout.rows, a, begin, end);
        });
    else
        share_channels(layout.channels, [&](std::int64_t begin, std::int64_t end) {
            norm_of<T>().channels(layout.channels, a, begin, end);
        });
}

template <class T>
void forward(Layout& layout, PyArrayObject* x, PyArrayObject* w, PyArrayObject* b, double eps,
             Parts& parts) {
    const NormForward<T> a{data<T>(x),
                           data_or_null<T>(w),
                           data_or_null<T>(b),
                           static_cast<T>(eps),
                           parts.mean.a != nullptr,
                           data<T>(parts.out.a),
                           data_or_null<T>(parts.mean.a),
                           data<T>(parts.rstd.a),
                           data<T>(parts.var.a)};
    run_with(layout, [a](const Layout& held) { compute_forward(held, a); });
}

// Computes the parts from (x, *affine, dim, eps, center); false: not done, with or without an
// error.
bool normalize_into(const Call& call, Parts& parts) {
    if (call.count < 1 || call.count > 3) return false;
    const Named named(call);
    PyObject *dims = named.get("dim"), *eps = named.get("eps");
    bool center;
    if (named.count() != 3 || dims == nullptr || eps == nullptr || !PyFloat_CheckExact(eps) ||
        !named.flag("center", &center))
        return false;
    PyArrayObject *x = as_array(call[0]), *affine[2] = {nullptr, nullptr};
    if (x == nullptr || !is_real(x)) return false;
    Layout layout;
    if (!layout.read(x, dims)) return false;
    for (Py_ssize_t k = 1; k < call.count; ++k) {
        PyArrayObject* a = affine[k - 1] = as_array(call[k]);
        if (a == nullptr || PyArray_TYPE(a) != PyArray_TYPE(x) || !is_plain(a)) return false;
    }
    if (call.count > 1 && !layout.read_weight(affine[0])) return false;
    if (call.count > 2 && !same_shape(affine[0], affine[1])) return false;
    Kept plain;
    plain.a = in_one_piece(x);
    const int type = PyArray_TYPE(x);
    if (plain.a != nullptr) parts.out.a = new_array(layout.ndim, layout.shape, type);
    if (parts.out.a != nullptr) parts.rstd.a = new_array(layout.ndim, layout.statistics, type);
    if (parts.rstd.a != nullptr) parts.var.a = new_array(layout.ndim, layout.statistics, type);
    if (parts.var.a == nullptr) return false;
    if (center) {
        parts.mean.a = new_array(layout.ndim, layout.statistics, type);
        if (parts.mean.a == nullptr) return false;
    }
    const double small = PyFloat_AS_DOUBLE(eps);
    type == NPY_FLOAT ? forward<float>(layout, plain.a, affine[0], affine[1], small, parts)
                      : forward<double>(layout, plain.a, affine[0], affine[1], small, parts);
    return true;
}

PyObject* normalize(const Call& call) {
    Parts parts;
    if (normalize_into(call, parts)) return parts.out.release();
    return PyErr_Occurred() ? nullptr : call.by_reference();
}

PyObject* normalize_parts(const Call& call) {
    Parts parts;
    if (!normalize_into(call, parts)) return PyErr_Occurred() ? nullptr : call.by_reference();
    if (parts.mean.a == nullptr) {
        Py_INCREF(Py_None);
        return tuple_of({parts.out.release(), Py_None, parts.rstd.release(), parts.var.release()});
    }
    return tuple_of(
        {parts.out.release(), parts.mean.release(), parts.rstd.release(), parts.var.release()});
}

// A limit of results: a number; if it is None or was not given, none.
bool read_limit(PyObject* given, double none, double* limit) {
    *limit = none;
    return given == nullptr || given == Py_None || (as_number(given, limit) && *limit == *limit);
}

// (x, scale, shift, low=None, high=None): x (N, C, ...) and vectors of C numbers
PyObject* scale_channels(const Call& call) {
    static Names names{"x", "scale", "shift", "low", "high"};
    constexpr double far = std::numeric_limits<double>::infinity();
    PyObject* given[5];
    double low, high;
    if (!read_arguments(call, names, given) || given[0] == nullptr || given[1] == nullptr ||
        given[2] == nullptr || !read_limit(given[3], -far, &low) ||
        !read_limit(given[4], far, &high))
        return call.by_reference();
    PyArrayObject* x = as_array(given[0]);
    if (x == nullptr || !is_real(x) || PyArray_NDIM(x) < 2 || PyArray_NDIM(x) > MAX_DIMS ||
        PyArray_SIZE(x) == 0)
        return call.by_reference();
    const int type = PyArray_TYPE(x);
    const std::int64_t outer = PyArray_DIM(x, 0), channels = PyArray_DIM(x, 1);
    PyArrayObject *scale = plain_of(given[1], type), *shift = plain_of(given[2], type);
    if (scale == nullptr || shift == nullptr || PyArray_NDIM(scale) != 1 ||
        PyArray_NDIM(shift) != 1 || PyArray_DIM(scale, 0) != channels ||
        PyArray_DIM(shift, 0) != channels)
        return call.by_reference();
    Kept plain, out;
    plain.a = in_one_piece(x);
    if (plain.a == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    out.a = new_array(PyArray_NDIM(x), PyArray_DIMS(x), type);
    if (out.a == nullptr) return nullptr;
    const std::int64_t space = PyArray_SIZE(x) / outer / channels;
    const void *from = PyArray_DATA(plain.a), *by = PyArray_DATA(scale),
               *and_by = PyArray_DATA(shift);
    void* to = PyArray_DATA(out.a);
    run([=] {
        share_units(
            outer * channels, outer * channels * space, [=](std::int64_t begin, std::int64_t end) {
                if (type == NPY_FLOAT)
                    norm_of<float>().scale_planes(
                        begin, end, channels, space, static_cast<const float*>(from),
                        static_cast<const float*>(by), static_cast<const float*>(and_by),
                        static_cast<float>(low), static_cast<float>(high), static_cast<float*>(to));
                else
                    norm_of<double>().scale_planes(
                        begin, end, channels, space, static_cast<const double*>(from),
                        static_cast<const double*>(by), static_cast<const double*>(and_by), low,
                        high, static_cast<double*>(to));
            });
    });
    return out.release();
}

// --- backward ------------------------------------------------------------------------------------

// Rows whose sums are added up together: as many for every number of threads.
std::int64_t rows_in_block(const NormRows& s) {
    std::int64_t block = (s.rows + 15) / 16;
    block = block < 8 ? 8 : block > 256 ? 256 : block;
    const std::int64_t least = 8 * s.period;
    return block < least ? least : block;
}

template <class T>
void clear(T* data, std::int64_t count) {
    for (std::int64_t i = 0; data != nullptr && i < count; ++i) data[i] = 0;
}

template <class T>
bool rows_backward(const Layout& layout, const NormBackward<T>& a, T* gw, T* gb) {
    const NormRows& s = layout.rows;
    const auto& k = norm_of<T>();
    if (gw == nullptr && gb == nullptr) {
        share_units(s.rows, layout.size(), [&](std::int64_t begin, std::int64_t end) {
            k.rows_backward(s, a, gw, gb, begin, end);
        });
        return true;
    }
    // With space, one sum for each part of each row; without, one for each block of rows.
    const std::int64_t width = s.period * s.parts;
    const std::int64_t block = s.space == 1 ? rows_in_block(s) : s.period;
    const std::int64_t blocks = (s.rows + block - 1) / block;
    Memory<T> w, b;
    if ((gw != nullptr && !w.get(blocks * width)) || (gb != nullptr && !b.get(blocks * width)))
        return false;
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        if (s.space > 1) {
            k.rows_backward(s, a, w.data, b.data, begin * block, end * block);
            return;
        }
        for (std::int64_t i = begin; i < end; ++i) {
            T* own_w = w.data == nullptr ? nullptr : w.data + i * width;
            T* own_b = b.data == nullptr ? nullptr : b.data + i * width;
            clear(own_w, width);
            clear(own_b, width);
            const std::int64_t last = (i + 1) * block;
            k.rows_backward(s, a, own_w, own_b, i * block, last < s.rows ? last : s.rows);
        }
    };
    share_units(blocks, layout.size(), add);
    if (gw != nullptr) k.add_up(blocks, width, w.data, gw);
    if (gb != nullptr) k.add_up(blocks, width, b.data, gb);
    return true;
}

template <class T>
bool compute_backward(const Layout& layout, const NormBackward<T>& a, T* gw, T* gb) {
    if (layout.by_rows) return rows_backward(layout, a, gw, gb);
    share_channels(layout.channels, [&](std::int64_t begin, std::int64_t end) {
        norm_of<T>().channels_backward(layout.channels, a, gw, gb, begin, end);
    });
    return true;
}

// False if there is no memory.
template <class T>
bool backward(Layout& layout, PyArrayObject* const* given, PyArrayObject* const* wanted) {
    const NormBackward<T> a{data<T>(given[0]),         data<T>(given[1]),
                            data_or_null<T>(given[2]), data<T>(given[3]),
                            data_or_null<T>(given[4]), data_or_null<T>(wanted[0])};
    T *gw = data_or_null<T>(wanted[1]), *gb = data_or_null<T>(wanted[2]);
    return run_with(layout, [=](const Layout& held) { return compute_backward(held, a, gw, gb); });
}

// Whether shapes[k] is the shape of an array.
bool is_shape_of(PyObject* shapes, Py_ssize_t k, PyArrayObject* a) {
    PyObject* shape = PyTuple_GET_ITEM(shapes, k);
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) != PyArray_NDIM(a)) return false;
    for (int i = 0; i < PyArray_NDIM(a); ++i) {
        std::int64_t n;
        if (!as_integer(PyTuple_GET_ITEM(shape, i), &n) || n != PyArray_DIM(a, i)) return false;
    }
    return true;
}

// An array of the type, and of as many elements as the statistics have.
bool is_statistic(PyArrayObject* a, int type, const Layout& layout) {
    return a != nullptr && PyArray_TYPE(a) == type && is_plain(a) &&
           PyArray_NDIM(a) == layout.ndim &&
           PyArray_CompareLists(PyArray_DIMS(a), layout.statistics, layout.ndim);
}

// (g, x, mean, rstd, weight, dim, shapes, needs) -> gradients, as far as there are shapes
PyObject* normalize_backward(const Call& call) {
    if (!call.has(8) || !PyTuple_Check(call[6]) || !PyTuple_Check(call[7]))
        return call.by_reference();
    PyArrayObject *g = as_array(call[0]), *x = as_array(call[1]), *mean = as_array(call[2]);
    PyArrayObject *rstd = as_array(call[3]), *weight = as_array(call[4]);
    PyObject *shapes = call[6], *needs = call[7];
    const Py_ssize_t count = PyTuple_GET_SIZE(needs);
    if (g == nullptr || x == nullptr || !is_real(x) || !is_real(g) ||
        PyArray_TYPE(g) != PyArray_TYPE(x) || !same_shape(g, x) ||
        (mean == nullptr && call[2] != Py_None) || (weight == nullptr && call[4] != Py_None) ||
        count < 1 || count > 3 || PyTuple_GET_SIZE(shapes) != count ||
        (count > 1) != (weight != nullptr))
        return call.by_reference();
    const int type = PyArray_TYPE(x);
    Layout layout;
    if (!layout.read(x, call[5]) || !is_statistic(rstd, type, layout) ||
        (mean != nullptr && !is_statistic(mean, type, layout)))
        return call.by_reference();
    if (weight != nullptr &&
        (PyArray_TYPE(weight) != type || !is_plain(weight) || !layout.read_weight(weight)))
        return call.by_reference();
    for (Py_ssize_t k = 1; k < count; ++k)
        if (!is_shape_of(shapes, k, weight)) return call.by_reference();
    Kept plain_g, plain_x, made[3];
    plain_g.a = in_one_piece(g);
    if (plain_g.a == nullptr) return nullptr;
    plain_x.a = in_one_piece(x);
    if (plain_x.a == nullptr) return nullptr;
    for (Py_ssize_t k = 0; k < count; ++k) {
        const int needed = PyObject_IsTrue(PyTuple_GET_ITEM(needs, k));
        if (needed < 0) return nullptr;
        if (needed == 0) continue;
        made[k].a = new_like(k == 0 ? x : weight);
        if (made[k].a == nullptr) return nullptr;
    }
    PyArrayObject* given[] = {plain_g.a, plain_x.a, mean, rstd, weight};
    PyArrayObject* wanted[] = {made[0].a, made[1].a, made[2].a};
    const bool done = type == NPY_FLOAT ? backward<float>(layout, given, wanted)
                                        : backward<double>(layout, given, wanted);
    if (!done) return PyErr_NoMemory();
    PyObject* gradients = PyTuple_New(count);
    if (gradients == nullptr) return nullptr;
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject* gradient = made[k].release();
        if (gradient == nullptr) {
            Py_INCREF(Py_None);
            gradient = Py_None;
        }
        PyTuple_SET_ITEM(gradients, k, gradient);
    }
    return gradients;
}

}  // namespace

PyMethodDef norm_methods[] = {
    CHAINRULE_METHOD(normalize, "Deviations from the mean over their standard deviation."),
    CHAINRULE_METHOD(normalize_parts, "The same, with the mean, the scale and the variance."),
    CHAINRULE_METHOD(scale_channels, "Each channel times a number plus a number."),
    CHAINRULE_METHOD(normalize_backward, "The gradients of the input, the weight and the bias."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
