// Products of matrices: the twins of linear, linear_backward, matmul and sum_to in
// backend/numpy_kernels/{linalg,reduce}.py.
#include "arguments.hpp"
#include "blas.hpp"

namespace chainrule {
namespace {

template <class T>
const linear_functions<T>& functions();
template <>
const linear_functions<float>& functions<float>() { return linear_kernels().f; }
template <>
const linear_functions<double>& functions<double>() { return linear_kernels().d; }

// A matrix of which the rows, or (turned) the columns, lie in one piece each, `ld` elements apart.
struct Matrix {
    const void* data;
    std::int64_t rows, cols, ld;
    bool turned;

    Matrix transposed() const { return {data, cols, rows, ld, !turned}; }
    template <class T>
    const T* at() const { return static_cast<const T*>(data); }
};

// An array as a matrix, dimensions before the last as rows. Without elements it is none.
bool matrix_of(PyArrayObject* a, Matrix* out) {
    const int ndim = PyArray_NDIM(a);
    if (ndim < 2 || PyArray_SIZE(a) == 0) return false;
    const std::int64_t n = PyArray_DIM(a, ndim - 1);
    if (is_plain(a)) {
        *out = {PyArray_DATA(a), PyArray_SIZE(a) / n, n, n, false};
        return true;
    }
    if (ndim != 2 || !PyArray_ISALIGNED(a)) return false;
    const std::int64_t size = PyArray_ITEMSIZE(a), rows = PyArray_DIM(a, 0);
    const std::int64_t down = PyArray_STRIDE(a, 0), along = PyArray_STRIDE(a, 1);
    if (along == size && down % size == 0 && down / size >= n) {
        *out = {PyArray_DATA(a), rows, n, down / size, false};
        return true;
    }
    if (down == size && along % size == 0 && along / size >= rows) {
        *out = {PyArray_DATA(a), rows, n, along / size, true};
        return true;
    }
    return false;
}

// A part for a thread has at least this many multiplications, some 50 microseconds; to write an
// element of the result takes as long as so many of them.
constexpr std::int64_t PRODUCT = 1 << 21, WRITE = 16;

bool is_small(std::int64_t m, std::int64_t n, std::int64_t k) { return m * n * k <= SMALL_PRODUCT; }

// C (m, n) = A B + start, C plain.
template <class T>
void multiply(const Matrix& a, const Matrix& b, const T* start, T* c) {
    const std::int64_t m = a.rows, n = b.cols, k = a.cols;
    const std::int64_t row = a.turned ? 1 : a.ld, col = a.turned ? a.ld : 1;
    if (is_small(m, n, k) && !(a.turned && b.turned)) {
        const auto& f = functions<T>();
        if (b.turned)
            f.product_t(m, n, k, a.at<T>(), row, b.at<T>(), b.ld, start, c);
        else
            f.product(m, n, k, a.at<T>(), row, col, b.at<T>(), b.ld, start, c);
        return;
    }
    WithoutGil released;
    if (a.turned && !b.turned && n <= THIN) {
        const auto f = functions<T>().product_thin;
        const std::int64_t grain = PRODUCT / (n * k + WRITE) + 1;
        parallel_for(m, grain, [&](std::int64_t i, std::int64_t end) {
            f(end - i, n, k, a.at<T>() + i, a.ld, b.at<T>(), b.ld, start, c + i * n);
        });
        return;
    }
    const OneThread alone;
    // Parts of whole tiles, so that an element is computed the same way in any of them.
    constexpr std::int64_t TILE = 64;
    const bool by_rows = m > n;
    const std::int64_t size = by_rows ? m : n, tiles = (size + TILE - 1) / TILE;
    const std::int64_t tile = TILE * (by_rows ? n : m) * (k + WRITE), grain = PRODUCT / tile + 1;
    parallel_for(tiles, grain, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t i = first * TILE, end = last * TILE < size ? last * TILE : size;
        const std::int64_t r = by_rows ? i : 0, s = by_rows ? 0 : i;
        const std::int64_t height = by_rows ? end - i : m, width = by_rows ? n : end - i;
        T* to = c + r * n + s;
        if (start != nullptr)
            for (std::int64_t y = 0; y < height; ++y)
                std::memcpy(to + y * n, start + s, static_cast<std::size_t>(width) * sizeof(T));
        gemm(a.turned, b.turned, static_cast<int>(height), static_cast<int>(width),
             static_cast<int>(k), T(1), a.at<T>() + r * row, static_cast<int>(a.ld),
             b.at<T>() + s * (b.turned ? b.ld : 1), static_cast<int>(b.ld),
             start == nullptr ? T(0) : T(1), to, static_cast<int>(n));
    });
}

// Whether the sizes are what `multiply` can do, and BLAS is there for it if it is needed.
bool can_multiply(const Matrix& a, const Matrix& b) {
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    if (a.cols != b.rows || a.rows > LIMIT || b.cols > LIMIT || a.cols > LIMIT || a.ld > LIMIT ||
        b.ld > LIMIT || (std::int64_t(1) << 62) / a.rows / b.cols < a.cols)
        return false;
    if (is_small(a.rows, b.cols, a.cols) && !(a.turned && b.turned)) return true;
    if (find_blas()) return true;
    PyErr_Clear();
    return false;
}

PyObject* new_product(const Matrix& a, const Matrix& b, PyArrayObject* start, int ndim,
                      npy_intp* shape, int type) {
    PyArrayObject* out = reinterpret_cast<PyArrayObject*>(PyArray_SimpleNew(ndim, shape, type));
    if (out == nullptr) return nullptr;
    if (type == NPY_FLOAT)
        multiply<float>(a, b, start == nullptr ? nullptr : data<float>(start), data<float>(out));
    else
        multiply<double>(a, b, start == nullptr ? nullptr : data<double>(start), data<double>(out));
    return reinterpret_cast<PyObject*>(out);
}

bool is_real_array(PyObject* o) {
    PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
    return a != nullptr && is_real(a);
}

// (x, weight, bias=None)
PyObject* linear(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("linear", args, nargs, kwnames); };
    if (nargs < 2 || nargs > 3 || kwnames != nullptr || !is_real_array(args[0]) ||
        !is_real_array(args[1]))
        return otherwise();
    PyArrayObject *x = as_array(args[0]), *w = as_array(args[1]), *bias = nullptr;
    const int type = PyArray_TYPE(x);
    Matrix a, b;
    if (PyArray_TYPE(w) != type || PyArray_NDIM(w) != 2 || !matrix_of(x, &a) || !matrix_of(w, &b))
        return otherwise();
    if (nargs == 3 && args[2] != Py_None) {
        bias = plain_of(args[2], type);
        if (bias == nullptr || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != b.rows)
            return otherwise();
    }
    const Matrix turned = b.transposed();
    if (!can_multiply(a, turned)) return otherwise();
    npy_intp shape[NPY_MAXDIMS];
    const int ndim = PyArray_NDIM(x);
    for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(x, i);
    shape[ndim - 1] = b.rows;
    return new_product(a, turned, bias, ndim, shape, type);
}

// (a, b): two matrices, or a batch of matrices by one
PyObject* matmul(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("matmul", args, nargs, kwnames); };
    if (nargs != 2 || kwnames != nullptr || !is_real_array(args[0]) || !is_real_array(args[1]))
        return otherwise();
    PyArrayObject *x = as_array(args[0]), *y = as_array(args[1]);
    const int type = PyArray_TYPE(x), ndim = PyArray_NDIM(x);
    Matrix a, b;
    if (PyArray_TYPE(y) != type || PyArray_NDIM(y) != 2 || !matrix_of(x, &a) ||
        !matrix_of(y, &b) || !can_multiply(a, b))
        return otherwise();
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(x, i);
    shape[ndim - 1] = b.cols;
    return new_product(a, b, nullptr, ndim, shape, type);
}

template <class T>
PyObject* new_sum_of_rows(const Matrix& a, int type) {
    npy_intp n = a.cols;
    PyArrayObject* out = reinterpret_cast<PyArrayObject*>(PyArray_SimpleNew(1, &n, type));
    if (out == nullptr) return nullptr;
    const auto f = functions<T>().sum_rows;
    T* to = data<T>(out);
    share(n, a.rows, [&](std::int64_t i, std::int64_t end) {
        f(a.rows, end - i, a.at<T>() + i, a.ld, to + i);
    });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* sum_of_rows(const Matrix& a, int type) {
    return type == NPY_FLOAT ? new_sum_of_rows<float>(a, type) : new_sum_of_rows<double>(a, type);
}

// (g, x, weight, with_bias) -> the gradients of x (None without weight), of the weight (None
// without x) and of the bias
PyObject* linear_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("linear_backward", args, nargs, kwnames); };
    if (nargs != 4 || kwnames != nullptr || !is_real_array(args[0]) || !PyBool_Check(args[3]))
        return otherwise();
    PyArrayObject* gradient = as_array(args[0]);
    const int type = PyArray_TYPE(gradient);
    const bool has_x = args[1] != Py_None, has_w = args[2] != Py_None;
    Matrix g, x{}, w{};
    if (PyArray_NDIM(gradient) != 2 || !matrix_of(gradient, &g) || g.turned) return otherwise();
    if (has_x && (!is_real_array(args[1]) || PyArray_TYPE(as_array(args[1])) != type ||
                  PyArray_NDIM(as_array(args[1])) != 2 || !matrix_of(as_array(args[1]), &x) ||
                  !can_multiply(g.transposed(), x)))
        return otherwise();
    if (has_w && (!is_real_array(args[2]) || PyArray_TYPE(as_array(args[2])) != type ||
                  PyArray_NDIM(as_array(args[2])) != 2 || !matrix_of(as_array(args[2]), &w) ||
                  !can_multiply(g, w)))
        return otherwise();
    PyObject* parts = PyTuple_New(3);
    if (parts == nullptr) return nullptr;
    PyObject* part[3] = {Py_None, Py_None, Py_None};
    if (has_w) {
        npy_intp shape[2] = {g.rows, w.cols};
        part[0] = new_product(g, w, nullptr, 2, shape, type);
    }
    if (has_x && part[0] != nullptr) {
        npy_intp shape[2] = {g.cols, x.cols};
        part[1] = new_product(g.transposed(), x, nullptr, 2, shape, type);
    }
    if (args[3] == Py_True && part[0] != nullptr && part[1] != nullptr)
        part[2] = sum_of_rows(g, type);
    bool complete = true;
    for (int i = 0; i < 3; ++i) {
        complete = complete && part[i] != nullptr;
        if (part[i] == Py_None) Py_INCREF(Py_None);
        PyTuple_SET_ITEM(parts, i, part[i]);
    }
    if (complete) return parts;
    Py_DECREF(parts);
    return nullptr;
}

// (a, shape): where all dimensions before the last are summed
PyObject* sum_to(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    static Names names = {{"a", "shape"}};
    PyObject* given[2];
    PyArrayObject* a = nullptr;
    if (read_arguments(args, nargs, kwnames, names, 2, given)) a = plain_real(given[0]);
    Matrix rows;
    std::int64_t n;
    if (a == nullptr || given[1] == nullptr || !PyTuple_Check(given[1]) ||
        PyTuple_GET_SIZE(given[1]) != 1 || !as_integer(PyTuple_GET_ITEM(given[1], 0), &n) ||
        !matrix_of(a, &rows) || rows.cols != n)
        return by_reference("sum_to", args, nargs, kwnames);
    return sum_of_rows(rows, PyArray_TYPE(a));
}

}  // namespace

PyMethodDef linear_methods[] = {
    CHAINRULE_METHOD(linear, "x @ weight.T + bias"),
    CHAINRULE_METHOD(linear_backward, "The gradients of the input, the weight and the bias."),
    CHAINRULE_METHOD(matmul, "a @ b"),
    CHAINRULE_METHOD(sum_to, "The transpose of broadcasting."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
