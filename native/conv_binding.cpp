// Convolution, its gradients and windows as columns: the twins of backend/numpy_kernels/conv.py.
#include "window_arguments.hpp"

namespace chainrule {
namespace {

using Int = std::int64_t;

// Fewer multiplications than this are done before another Python thread could start.
constexpr double QUICK = 20000;

// What cannot matter is made as simple as can be.
void simplify(ConvShape& s) {
    for (int a = 0; a < 3; ++a) {
        if (s.kernel[a] == 1) s.dilation[a] = 1;
        if (s.out[a] == 1) s.stride[a] = 1;
    }
}

struct Convolution {
    Convolution(PyObject* a, PyObject* b) : first_(a), second_(b) {}
    PyArrayObject* first() const { return first_.get(); }
    PyArrayObject* second() const { return second_.get(); }

    int nd, type;
    ConvShape shape;
    Int size[3];

  private:
    Contiguous first_, second_;
};

Names names{"", "", "size", "stride", "padding", "dilation", "groups"};

// Reads (a, b, size, stride, padding, dilation, groups); false if this is nothing for the kernels.
bool read(PyObject* const* given, Convolution& c) {
    PyArrayObject *a = c.first(), *b = c.second();
    if (a == nullptr || b == nullptr) return false;
    c.type = PyArray_TYPE(a);
    c.nd = PyArray_NDIM(a) - 2;
    ConvShape& s = c.shape;
    return PyArray_TYPE(b) == c.type && PyArray_NDIM(b) == c.nd + 2 && c.nd >= 1 && c.nd <= 3 &&
           triple(given[2], c.nd, 1, c.size) && triple(given[3], c.nd, 1, s.stride) &&
           triple(given[4], c.nd, 0, s.padding) && triple(given[5], c.nd, 1, s.dilation) &&
           as_integer(given[6], &s.groups) && all_positive(c.size) && all_positive(s.stride) &&
           all_positive(s.dilation) && s.groups >= 1;
}

PyArrayObject* result(const Convolution& c, Int first, Int second) {
    npy_intp dims[5] = {first, second};
    for (int i = 0; i < c.nd; ++i) dims[2 + i] = c.size[3 - c.nd + i];
    return new_array(c.nd + 2, dims, c.type);
}

bool quick(const ConvShape& s) {
    double n = static_cast<double>(s.batch * s.groups) *
               static_cast<double>(s.in_channels * s.out_channels);
    for (int a = 0; a < 3; ++a) n *= static_cast<double>(s.out[a] * s.kernel[a]);
    return n < QUICK;
}

// Adds to each channel of y its number.
template <class T>
void add_bias(const ConvShape& s, const T* numbers, T* to) {
    const Int channels = s.groups * s.out_channels, size = s.out[0] * s.out[1] * s.out[2];
    const auto add = elementwise_of<T>().add_with;
    share(s.batch * channels, size, [=](Int i, Int end) {
        for (; i < end; ++i) add(size, to + i * size, numbers[i % channels], to + i * size);
    });
}

template <class T>
using ConvKernel = ConvResult (*)(const ConvShape&, const T*, const T*, T*);

// kernel(shape, a, b, out), without the GIL if it takes long; then the bias. Whether it was done.
template <class T>
bool compute(ConvKernel<T> kernel, const ConvShape& s, const void* a, const void* b,
             const void* bias, void* out) {
    const auto work = [&] {
        return kernel(s, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out));
    };
    ConvResult r;
    if (quick(s)) {
        r = work();
    } else {
        WithoutGil released;
        r = work();
    }
    if (r != ConvResult::done) return false;
    if (bias != nullptr) add_bias(s, static_cast<const T*>(bias), static_cast<T*>(out));
    return true;
}

// The result, filled by the kernel for the dtype at hand; NumPy's if that is nothing for it, or
// there is no memory.
PyObject* computed(const Call& call, Convolution& c, PyArrayObject* made, PyArrayObject* bias,
                   ConvKernel<float> in_float, ConvKernel<double> in_double) {
    Kept out;
    out.a = made;
    if (made == nullptr) return nullptr;
    const void *a = PyArray_DATA(c.first()), *b = PyArray_DATA(c.second());
    const void* numbers = bias == nullptr ? nullptr : PyArray_DATA(bias);
    void* to = PyArray_DATA(made);
    const bool is_float = c.type == NPY_FLOAT;
    const bool done = run_with(c.shape, [=](const ConvShape& s) {
        return is_float ? compute<float>(in_float, s, a, b, numbers, to)
                        : compute<double>(in_double, s, a, b, numbers, to);
    });
    return done ? out.release() : call.by_reference();
}

// (x, w, size, stride, padding, dilation, groups, bias=None) -> y
PyObject* convolution(const Call& call) {
    static Names with_bias{"", "", "size", "stride", "padding", "dilation", "groups", "bias"};
    PyObject* given[8];
    if (call.count != 2 || !read_arguments(call, with_bias, given)) return call.by_reference();
    Convolution c(given[0], given[1]);
    if (!read(given, c)) return PyErr_Occurred() ? nullptr : call.by_reference();
    ConvShape& s = c.shape;
    PyArrayObject* bias = nullptr;
    if (given[7] != nullptr && given[7] != Py_None) {
        bias = plain_of(given[7], c.type);
        if (bias == nullptr || PyArray_NDIM(bias) != 1 ||
            PyArray_DIM(bias, 0) != PyArray_DIM(c.second(), 0))
            return call.by_reference();
    }
    const Int channels = PyArray_DIM(c.first(), 1), out_channels = PyArray_DIM(c.second(), 0);
    s.batch = PyArray_DIM(c.first(), 0);
    s.in_channels = PyArray_DIM(c.second(), 1);
    s.out_channels = out_channels / s.groups;
    if (out_channels % s.groups != 0 || channels % s.groups != 0 ||
        channels / s.groups != s.in_channels || !spatial(c.first(), c.nd, s.in) ||
        !spatial(c.second(), c.nd, s.kernel))
        return call.by_reference();
    for (int a = 0; a < 3; ++a) s.out[a] = c.size[a];
    simplify(s);
    PyArrayObject* out = result(c, s.batch, out_channels);
    return computed(call, c, out, bias, conv_by_y<float>, conv_by_y<double>);
}

// (y, w, size, stride, padding, dilation, groups) -> x
PyObject* convolution_input(const Call& call) {
    PyObject* given[7];
    if (call.count != 2 || !read_arguments(call, names, given)) return call.by_reference();
    Convolution c(given[0], given[1]);
    if (!read(given, c)) return PyErr_Occurred() ? nullptr : call.by_reference();
    ConvShape& s = c.shape;
    const Int out_channels = PyArray_DIM(c.first(), 1);
    s.batch = PyArray_DIM(c.first(), 0);
    s.in_channels = PyArray_DIM(c.second(), 1);
    s.out_channels = out_channels / s.groups;
    if (out_channels % s.groups != 0 || PyArray_DIM(c.second(), 0) != out_channels ||
        s.in_channels > LARGEST || s.groups > LARGEST || !spatial(c.first(), c.nd, s.out) ||
        !spatial(c.second(), c.nd, s.kernel))
        return call.by_reference();
    for (int a = 0; a < 3; ++a) s.in[a] = c.size[a];
    simplify(s);
    PyArrayObject* out = result(c, s.batch, s.in_channels * s.groups);
    return computed(call, c, out, nullptr, conv_by_x<float>, conv_by_x<double>);
}

// (x, y, size, stride, padding, dilation, groups) -> w
PyObject* convolution_weight(const Call& call) {
    PyObject* given[7];
    if (call.count != 2 || !read_arguments(call, names, given)) return call.by_reference();
    Convolution c(given[0], given[1]);
    if (!read(given, c)) return PyErr_Occurred() ? nullptr : call.by_reference();
    ConvShape& s = c.shape;
    const Int channels = PyArray_DIM(c.first(), 1), out_channels = PyArray_DIM(c.second(), 1);
    s.batch = PyArray_DIM(c.first(), 0);
    s.in_channels = channels / s.groups;
    s.out_channels = out_channels / s.groups;
    if (out_channels % s.groups != 0 || channels % s.groups != 0 ||
        PyArray_DIM(c.second(), 0) != s.batch || !spatial(c.first(), c.nd, s.in) ||
        !spatial(c.second(), c.nd, s.out))
        return call.by_reference();
    for (int a = 0; a < 3; ++a) s.kernel[a] = c.size[a];
    simplify(s);
    PyArrayObject* out = result(c, out_channels, s.in_channels);
    return computed(call, c, out, nullptr, conv_by_w<float>, conv_by_w<double>);
}

// --- windows as columns --------------------------------------------------------------------------

// Reads what im2col and col2im share: tuples of `nd` integers. False if they are nothing for us.
bool read_columns(PyObject* const* given, int nd, ConvShape& s) {
    return triple(given[0], nd, 1, s.kernel) && triple(given[1], nd, 1, s.stride) &&
           triple(given[2], nd, 0, s.padding) && triple(given[3], nd, 1, s.dilation) &&
           all_positive(s.kernel) && all_positive(s.stride) && all_positive(s.dilation) &&
           all_positive(s.in) && all_positive(s.out);
}

// The product, or -1 if it is too large.
Int checked(Int a, Int b) {
    Int n;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &n) ? -1 : n;
}

Int volume(const Int* n) { return checked(checked(n[0], n[1]), n[2]); }

template <class T>
using Move = void (*)(const ConvShape&, const T*, T*);

// The result, filled from an array by the function for the dtype at hand.
PyObject* moved(ConvShape& shape, PyArrayObject* array, PyArrayObject* out, Move<float> in_float,
                Move<double> in_double) {
    const void* from = PyArray_DATA(array);
    void* to = PyArray_DATA(out);
    const bool is_float = PyArray_TYPE(array) == NPY_FLOAT;
    run_with(shape, [=](const ConvShape& s) {
        WithoutGil released;
        if (is_float)
            in_float(s, static_cast<const float*>(from), static_cast<float*>(to));
        else
            in_double(s, static_cast<const double*>(from), static_cast<double*>(to));
    });
    return reinterpret_cast<PyObject*>(out);
}

Names im2col_names{"", "size", "kernel", "stride", "padding", "dilation"};

// (x, size, kernel, stride, padding, dilation) -> columns
PyObject* im2col(const Call& call) {
    PyObject* given[6];
    if (!read_arguments(call, im2col_names, given)) return call.by_reference();
    const Contiguous array(given[0]);
    PyArrayObject* x = array.get();
    if (x == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    const int nd = dimensions(given[1]), ndim = PyArray_NDIM(x);
    ConvShape s;
    if (nd == 0 || ndim < nd + 1 || !triple(given[1], nd, 1, s.out) || !spatial(x, nd, s.in) ||
        !read_columns(given + 2, nd, s))
        return call.by_reference();
    const Int places = volume(s.kernel), outputs = volume(s.out);
    const Int rows = checked(PyArray_DIM(x, ndim - nd - 1), places);
    if (rows < 0 || outputs < 0 || checked(places, outputs) < 0) return call.by_reference();
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < ndim - nd - 1; ++i) dims[i] = PyArray_DIM(x, i);
    dims[ndim - nd - 1] = rows;
    dims[ndim - nd] = outputs;
    PyArrayObject* out = new_array(ndim - nd + 1, dims, PyArray_TYPE(x));
    if (out == nullptr) return nullptr;
    s.batch = 1;
    s.in_channels = PyArray_SIZE(x) / (s.in[0] * s.in[1] * s.in[2]);
    return moved(s, x, out, windows_to_columns<float>, windows_to_columns<double>);
}

Names col2im_names{"", "size", "outputs", "kernel", "stride", "padding", "dilation"};

// (columns, size, outputs, kernel, stride, padding, dilation) -> x
PyObject* col2im(const Call& call) {
    PyObject* given[7];
    if (!read_arguments(call, col2im_names, given)) return call.by_reference();
    const Contiguous array(given[0]);
    PyArrayObject* columns = array.get();
    if (columns == nullptr) return PyErr_Occurred() ? nullptr : call.by_reference();
    const int nd = dimensions(given[1]), ndim = PyArray_NDIM(columns);
    ConvShape s;
    if (nd == 0 || ndim < 2 || ndim - 1 + nd > NPY_MAXDIMS || !triple(given[1], nd, 1, s.in) ||
        !triple(given[2], nd, 1, s.out) || !read_columns(given + 3, nd, s))
        return call.by_reference();
    const Int places = volume(s.kernel), rows = PyArray_DIM(columns, ndim - 2);
    if (places < 1 || rows % places != 0 || PyArray_DIM(columns, ndim - 1) != volume(s.out) ||
        volume(s.in) < 0)
        return call.by_reference();
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < ndim - 2; ++i) dims[i] = PyArray_DIM(columns, i);
    dims[ndim - 2] = rows / places;
    for (int i = 0; i < nd; ++i) dims[ndim - 1 + i] = s.in[3 - nd + i];
    PyArrayObject* out = new_array(ndim - 1 + nd, dims, PyArray_TYPE(columns));
    if (out == nullptr) return nullptr;
    s.batch = 1;
    s.in_channels = PyArray_SIZE(columns) / (places * volume(s.out));
    return moved(s, columns, out, columns_to_windows<float>, columns_to_windows<double>);
}

}  // namespace

PyMethodDef conv_methods[] = {
    CHAINRULE_METHOD(convolution, "The gradient of the sum by y."),
    CHAINRULE_METHOD(convolution_input, "The gradient of the sum by x."),
    CHAINRULE_METHOD(convolution_weight, "The gradient of the sum by w."),
    CHAINRULE_METHOD(im2col, "Windows as columns."),
    CHAINRULE_METHOD(col2im, "Columns added up where their windows overlap."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
