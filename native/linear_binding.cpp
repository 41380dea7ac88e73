// Products of matrices: the twins of linear, with and without an activation, their gradients,
// matmul and sum_to in backend/numpy_kernels/{linalg,reduce}.py.
#include "arguments.hpp"
#include "blas.hpp"
#include "linear_stack.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

// A matrix of which the rows, or (turned) the columns, lie in one piece each, `ld` elements apart.
struct Matrix {
    const void* data;
    std::int64_t rows, cols, ld;
    bool turned;

    Matrix transposed() const { return {data, cols, rows, ld, !turned}; }
    template <class T>
    const T* at() const {
        return static_cast<const T*>(data);
    }
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

// A part for a thread has at least this many multiplications, some 5 to 10 microseconds; to write
// an element of the result takes as long as so many of them.
constexpr std::int64_t PRODUCT = 1 << 19, WRITE = 16;

bool is_small(std::int64_t m, std::int64_t n, std::int64_t k) {
    return k <= SMALL_DEPTH && m * n * k <= SMALL_PRODUCT;
}

// With the largest vectors our own product is faster than BLAS's, with AVX2 as fast, and its
// results do not depend on the threads. It packs panels of two vectors: for few columns or rows it
// is not.
bool has_panels(std::int64_t m, std::int64_t n) {
    return m >= 16 && ((isa() == Isa::avx512 && n >= 24) || (isa() == Isa::avx2 && n >= 12));
}

constexpr std::int64_t NARROW = 64;  // bytes of a row of one vector

// What is done to a product while it is in the cache.
template <class T>
using After = void (*)(std::int64_t n, const T* x, T* out);

// Few rows by a matrix whose columns lie in one piece each, or the other way round: a matter of how
// fast the matrix is read, so that a second thread is worth it early.
constexpr std::int64_t READ = 1 << 16;

template <class T>
void multiply_few(const Matrix& a, const Matrix& b, const T* start, T* c, After<T> after) {
    const std::int64_t m = a.rows, n = b.cols, k = a.cols;
    const auto f = linear_of<T>().dots;
    const auto work = [&](std::int64_t i, std::int64_t end) {
        if (m <= FEW)
            for (std::int64_t r = 0; r < m; ++r) {
                T* to = c + r * n + i;
                f(end - i, k, b.at<T>() + i * b.ld, b.ld, a.at<T>() + r * a.ld,
                  start == nullptr ? nullptr : start + i, 1, to, 1);
                if (after != nullptr) after(end - i, to, to);
            }
        else {
            for (std::int64_t j = 0; j < n; ++j)
                f(end - i, k, a.at<T>() + i * a.ld, a.ld, b.at<T>() + j * b.ld,
                  start == nullptr ? nullptr : start + j, 0, c + i * n + j, n);
            if (after != nullptr) after((end - i) * n, c + i * n, c + i * n);
        }
    };
    const std::int64_t many = m <= FEW ? n : m;
    if (m * n * k <= READ) return work(0, many);
    WithoutGil released;
    parallel_for(many, READ / k + 1, work);
}

// C (m, n) = A B + start, C plain; then after(C), if there is such a function.
template <class T>
void multiply(const Matrix& a, const Matrix& b, const T* start, T* c, After<T> after = nullptr) {
    const std::int64_t m = a.rows, n = b.cols, k = a.cols;
    const std::int64_t row = a.turned ? 1 : a.ld, col = a.turned ? a.ld : 1;
    if (!a.turned && b.turned && (m <= FEW || n <= FEW))
        return multiply_few<T>(a, b, start, c, after);
    if (is_small(m, n, k)) {
        linear_of<T>().product(m, n, k, a.at<T>(), row, col, b.at<T>(), b.turned ? 1 : b.ld,
                               b.turned ? b.ld : 1, start, c);
        if (after != nullptr) after(m * n, c, c);
        return;
    }
    WithoutGil released;
    if (a.turned && !b.turned && n <= THIN) {
        const auto f = linear_of<T>().product_thin;
        const std::int64_t grain = PRODUCT / (n * k + WRITE) + 1;
        parallel_for(m, grain, [&](std::int64_t i, std::int64_t end) {
            f(end - i, n, k, a.at<T>() + i, a.ld, b.at<T>(), b.ld, start, c + i * n);
            if (after != nullptr) after((end - i) * n, c + i * n, c + i * n);
        });
        return;
    }
    if (n * static_cast<std::int64_t>(sizeof(T)) <= NARROW && m >= 16 && isa() == Isa::avx512) {
        const std::int64_t grain = PRODUCT / (4 * n * k) + 1;
        parallel_for(m, grain, [&](std::int64_t i, std::int64_t end) {
            linear_of<T>().product(end - i, n, k, a.at<T>() + i * row, row, col, b.at<T>(),
                                   b.turned ? 1 : b.ld, b.turned ? b.ld : 1, start, c + i * n);
            if (after != nullptr) after((end - i) * n, c + i * n, c + i * n);
        });
        return;
    }
    // Parts of whole tiles, so that an element is computed the same way in any of them. With panels
    // those of columns are preferred, as each part of the rows packs all columns again.
    const bool own = has_panels(m, n), by_rows = own ? n < 128 && m >= 2 * n : m > n;
    const std::int64_t TILE = own && !by_rows ? 32 : 64;
    const std::int64_t size = by_rows ? m : n, tiles = (size + TILE - 1) / TILE;
    const std::int64_t tile = TILE * (by_rows ? n : m) * (k + WRITE), grain = PRODUCT / tile + 1;
    const std::int64_t b_row = b.turned ? 1 : b.ld, b_col = b.turned ? b.ld : 1;
    const OneThread alone;
    parallel_for(tiles, grain, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t i = first * TILE, end = last * TILE < size ? last * TILE : size;
        const std::int64_t r = by_rows ? i : 0, s = by_rows ? 0 : i;
        const std::int64_t height = by_rows ? end - i : m, width = by_rows ? n : end - i;
        const T *left = a.at<T>() + r * row, *right = b.at<T>() + s * b_col;
        const T* from = start == nullptr ? nullptr : start + s;
        T* to = c + r * n + s;
        const Scratch packed(1, own ? PACKED * sizeof(T) : 0);
        if (own && packed.get() != nullptr) {
            linear_of<T>().product_panels(height, width, k, left, row, col, right, b_row, b_col,
                                          from, to, n, static_cast<T*>(packed.get()));
        } else {
            for (std::int64_t y = 0; from != nullptr && y < height; ++y)
                std::memcpy(to + y * n, from, static_cast<std::size_t>(width) * sizeof(T));
            gemm(a.turned, b.turned, static_cast<int>(height), static_cast<int>(width),
                 static_cast<int>(k), T(1), left, static_cast<int>(a.ld), right,
                 static_cast<int>(b.ld), start == nullptr ? T(0) : T(1), to, static_cast<int>(n));
        }
        if (after != nullptr)
            for (std::int64_t y = 0; y < height; ++y) after(width, to + y * n, to + y * n);
    });
}

// Whether the sizes are what `multiply` can do, and BLAS is there for it if it is needed.
bool can_multiply(const Matrix& a, const Matrix& b) {
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    if (a.cols != b.rows || a.rows > LIMIT || b.cols > LIMIT || a.cols > LIMIT || a.ld > LIMIT ||
        b.ld > LIMIT || (std::int64_t(1) << 62) / a.rows / b.cols < a.cols)
        return false;
    if (is_small(a.rows, b.cols, a.cols)) return true;
    if (find_blas()) return true;
    PyErr_Clear();
    return false;
}

// Rows that lie in one piece each, (outer, inner) of them anywhere: what a recurrent layer or
// attention leaves where the batch comes first.
struct Scattered {
    const void* data = nullptr;
    std::int64_t outer = 0, inner = 0, outer_step = 0, inner_step = 0;

    // The matrix that they are, without memory of its own yet.
    bool read(PyArrayObject* a, int type, Matrix* out) {
        if (PyArray_NDIM(a) != 3 || PyArray_SIZE(a) == 0 || !is_readable(a, type) ||
            stride(a, 2) != 1)
            return false;
        data = PyArray_DATA(a);
        outer = PyArray_DIM(a, 0), inner = PyArray_DIM(a, 1);
        outer_step = stride(a, 0), inner_step = stride(a, 1);
        const std::int64_t n = PyArray_DIM(a, 2);
        *out = {data, outer * inner, n, n, false};
        return true;
    }
    template <class T>
    void gather(std::int64_t n, T* to) const {
        const T* from = static_cast<const T*>(data);
        share(outer, inner * n, [=, *this](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i)
                for (std::int64_t j = 0; j < inner; ++j)
                    std::memcpy(to + (i * inner + j) * n, from + i * outer_step + j * inner_step,
                                static_cast<std::size_t>(n) * sizeof(T));
        });
    }
};

// A product that is to be computed into memory of its own.
struct Task {
    Matrix a{}, b{};
    const void* start = nullptr;
    void* out = nullptr;
    Unary after{};
    Scattered rows{};  // of a, if they have to be gathered first

    template <class T>
    void compute_with(const Matrix& left) const {
        multiply<T>(left, b, static_cast<const T*>(start), static_cast<T*>(out),
                    after ? after.in(elementwise_of<T>()) : nullptr);
    }
    template <class T>
    bool compute() const {
        if (rows.data == nullptr) {
            compute_with<T>(a);
            return true;
        }
        const Scratch memory(0, static_cast<std::size_t>(a.rows * a.cols) * sizeof(T));
        if (memory.get() == nullptr) return false;
        rows.gather(a.cols, static_cast<T*>(memory.get()));
        Matrix left = a;
        left.data = memory.get();
        compute_with<T>(left);
        return true;
    }
};

PyObject* new_product(const Matrix& a, const Matrix& b, PyArrayObject* start, int ndim,
                      npy_intp* shape, int type, Unary after = {}, const Scattered& rows = {}) {
    Kept out;
    if ((out.a = new_array(ndim, shape, type)) == nullptr) return nullptr;
    const void* from = start == nullptr ? nullptr : PyArray_DATA(start);
    const Task task{a, b, from, PyArray_DATA(out.a), after, rows};
    const bool done =
        run([=] { return type == NPY_FLOAT ? task.compute<float>() : task.compute<double>(); });
    return done ? out.release() : PyErr_NoMemory();
}

bool is_real_array(PyObject* o) {
    PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
    return a != nullptr && is_real(a);
}

// (x, weight, bias=None)
PyObject* layer(const Call& call, Unary after) {
    if (call.count < 2 || call.count > 3 || call.names != nullptr || !is_real_array(call[0]) ||
        !is_real_array(call[1]))
        return call.by_reference();
    PyArrayObject *x = as_array(call[0]), *w = as_array(call[1]), *bias = nullptr;
    if (!after && PyArray_NDIM(w) == 3) {
        PyObject* out = linear_of_stack(call);
        return out != nullptr || PyErr_Occurred() ? out : call.by_reference();
    }
    const int type = PyArray_TYPE(x);
    Matrix a, b;
    Scattered rows;
    if (PyArray_TYPE(w) != type || PyArray_NDIM(w) != 2 || !matrix_of(w, &b) ||
        (!matrix_of(x, &a) && !rows.read(x, type, &a)))
        return call.by_reference();
    if (call.count == 3 && call[2] != Py_None) {
        bias = plain_of(call[2], type);
        if (bias == nullptr || PyArray_NDIM(bias) != 1 || PyArray_DIM(bias, 0) != b.rows)
            return call.by_reference();
    }
    const Matrix turned = b.transposed();
    if (!can_multiply(a, turned)) return call.by_reference();
    npy_intp shape[NPY_MAXDIMS];
    const int ndim = PyArray_NDIM(x);
    for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(x, i);
    shape[ndim - 1] = b.rows;
    return new_product(a, turned, bias, ndim, shape, type, after, rows);
}

// (a, b): two matrices, or batches of matrices
PyObject* matmul(const Call& call) {
    if (!call.has(2) || !is_real_array(call[0]) || !is_real_array(call[1]))
        return call.by_reference();
    PyArrayObject *x = as_array(call[0]), *y = as_array(call[1]);
    const int type = PyArray_TYPE(x), ndim = PyArray_NDIM(x);
    if (PyArray_TYPE(y) == type && (PyArray_NDIM(y) == 3 || (ndim == 3 && !is_plain(x)))) {
        PyObject* out = matmul_of_stack(call);
        return out != nullptr || PyErr_Occurred() ? out : call.by_reference();
    }
    Matrix a, b;
    if (PyArray_TYPE(y) != type || PyArray_NDIM(y) != 2 || !matrix_of(x, &a) || !matrix_of(y, &b) ||
        !can_multiply(a, b))
        return call.by_reference();
    npy_intp shape[NPY_MAXDIMS];
    for (int i = 0; i < ndim; ++i) shape[i] = PyArray_DIM(x, i);
    shape[ndim - 1] = b.cols;
    return new_product(a, b, nullptr, ndim, shape, type);
}

template <class T>
void sum_rows(const Matrix& a, void* out) {
    const auto f = linear_of<T>().sum_rows;
    T* to = static_cast<T*>(out);
    share(a.cols, a.rows, [=](std::int64_t i, std::int64_t end) {
        f(a.rows, end - i, a.at<T>() + i, a.ld, to + i);
    });
}

PyObject* sum_of_rows(const Matrix& a, int type) {
    npy_intp n = a.cols;
    PyArrayObject* out = new_array(1, &n, type);
    if (out == nullptr) return nullptr;
    void* to = PyArray_DATA(out);
    run([=] { type == NPY_FLOAT ? sum_rows<float>(a, to) : sum_rows<double>(a, to); });
    return reinterpret_cast<PyObject*>(out);
}

// A matrix with as many rows and columns, or none for None; false if it is neither.
bool reads_matrix(PyObject* o, int type, Matrix* out) {
    if (o == Py_None) return true;
    return is_real_array(o) && PyArray_TYPE(as_array(o)) == type &&
           PyArray_NDIM(as_array(o)) == 2 && matrix_of(as_array(o), out);
}

// The gradients of x (null without weight), of the weight (null without x) and of the bias, as
// arrays that are not filled yet.
struct Gradients {
    Kept x, weight, bias;

    bool make(const Matrix& g, const Matrix& of_x, const Matrix& w, bool with_bias, int type) {
        const npy_intp shape_x[2] = {g.rows, w.cols}, shape_w[2] = {g.cols, of_x.cols};
        const npy_intp size = g.cols;
        if (w.data != nullptr && (x.a = new_array(2, shape_x, type)) == nullptr) return false;
        if (of_x.data != nullptr && (weight.a = new_array(2, shape_w, type)) == nullptr)
            return false;
        return !with_bias || (bias.a = new_array(1, &size, type)) != nullptr;
    }
    PyObject* release() {
        return tuple_of({or_none(x.release()), or_none(weight.release()), or_none(bias.release())});
    }

  private:
    static PyObject* or_none(PyObject* o) {
        if (o == nullptr) Py_INCREF(Py_None);
        return o == nullptr ? Py_None : o;
    }
};

void* data_of(const Kept& k) { return k.a == nullptr ? nullptr : PyArray_DATA(k.a); }

// Fills the gradients that are asked for from that of the product.
template <class T>
void compute_gradients(const Matrix& g, const Matrix& x, const Matrix& w, void* of_x,
                       void* of_weight, void* of_bias) {
    if (of_x != nullptr) multiply<T>(g, w, nullptr, static_cast<T*>(of_x));
    if (of_weight != nullptr) multiply<T>(g.transposed(), x, nullptr, static_cast<T*>(of_weight));
    if (of_bias != nullptr) sum_rows<T>(g, of_bias);
}

// (g, x, weight, with_bias)
PyObject* linear_backward(const Call& call) {
    Matrix g, x{}, w{};
    if (call.has(4) && is_real_array(call[0]) && PyBool_Check(call[3]) &&
        PyArray_NDIM(as_array(call[0])) == 3) {
        PyObject* out = linear_backward_of_stack(call);
        if (out != nullptr || PyErr_Occurred()) return out;
    }
    if (!call.has(4) || !is_real_array(call[0]) || !PyBool_Check(call[3]) ||
        PyArray_NDIM(as_array(call[0])) != 2 || !matrix_of(as_array(call[0]), &g) || g.turned)
        return call.by_reference();
    const int type = PyArray_TYPE(as_array(call[0]));
    if (!reads_matrix(call[1], type, &x) || !reads_matrix(call[2], type, &w) ||
        (x.data != nullptr && !can_multiply(g.transposed(), x)) ||
        (w.data != nullptr && !can_multiply(g, w)))
        return call.by_reference();
    Gradients made;
    if (!made.make(g, x, w, call[3] == Py_True, type)) return nullptr;
    void *of_x = data_of(made.x), *of_weight = data_of(made.weight), *of_bias = data_of(made.bias);
    run([=] {
        type == NPY_FLOAT ? compute_gradients<float>(g, x, w, of_x, of_weight, of_bias)
                          : compute_gradients<double>(g, x, w, of_x, of_weight, of_bias);
    });
    return made.release();
}

template <class T>
void slopes(Binary which, std::int64_t size, const void* g, const void* out, void* result) {
    const auto f = which.in(elementwise_of<T>());
    const T *gs = static_cast<const T*>(g), *ys = static_cast<const T*>(out);
    T* to = static_cast<T*>(result);
    share(size, 1, [=](std::int64_t i, std::int64_t end) { f(end - i, gs + i, ys + i, to + i); });
}

// (g, out, x, weight, with_bias): through the activation first
PyObject* layer_backward(const Call& call, Binary which) {
    PyArrayObject *g = nullptr, *out = nullptr;
    if (call.has(5)) g = plain_real(call[0]);
    if (g != nullptr) out = plain_of(call[1], PyArray_TYPE(g));
    Matrix sums, x{}, w{};
    if (out == nullptr || PyArray_NDIM(g) != 2 || !same_shape(g, out) || !PyBool_Check(call[4]) ||
        !matrix_of(g, &sums))
        return call.by_reference();
    const int type = PyArray_TYPE(g);
    if (!reads_matrix(call[2], type, &x) || !reads_matrix(call[3], type, &w) ||
        (x.data != nullptr && !can_multiply(sums.transposed(), x)) ||
        (w.data != nullptr && !can_multiply(sums, w)))
        return call.by_reference();
    Gradients made;
    if (!made.make(sums, x, w, call[4] == Py_True, type)) return nullptr;
    void *of_x = data_of(made.x), *of_weight = data_of(made.weight), *of_bias = data_of(made.bias);
    const void *gs = PyArray_DATA(g), *ys = PyArray_DATA(out);
    const std::int64_t size = PyArray_SIZE(g), bytes = PyArray_NBYTES(g);
    const bool done = run([=] {
        const Scratch memory(0, static_cast<std::size_t>(bytes));
        if (memory.get() == nullptr) return false;
        Matrix inside = sums;
        inside.data = memory.get();
        if (type == NPY_FLOAT) {
            slopes<float>(which, size, gs, ys, memory.get());
            compute_gradients<float>(inside, x, w, of_x, of_weight, of_bias);
        } else {
            slopes<double>(which, size, gs, ys, memory.get());
            compute_gradients<double>(inside, x, w, of_x, of_weight, of_bias);
        }
        return true;
    });
    return done ? made.release() : PyErr_NoMemory();
}

PyObject* linear(const Call& call) { return layer(call, {}); }

#define CHAINRULE_ACTIVATIONS(EACH) EACH(relu) EACH(tanh) EACH(sigmoid)
#define CHAINRULE_LAYER(name)                                                        \
    PyObject* linear_##name(const Call& call) {                                      \
        return layer(call, CHAINRULE_CHOSEN(elementwise, name));                     \
    }                                                                                \
    PyObject* linear_##name##_backward(const Call& call) {                           \
        return layer_backward(call, CHAINRULE_CHOSEN(elementwise, name##_backward)); \
    }
CHAINRULE_ACTIVATIONS(CHAINRULE_LAYER)

// Of a (outer, n, inner): the sums over outer and inner.
template <class T>
void sums_along(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner, T* out) {
    const auto f = linear_of<T>().sum_blocks;
    share(n, outer * inner, [=](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) out[i] = static_cast<T>(f(outer, n * inner, inner, x + i * inner));
    });
}

// Whether a shape is that of `a` but for neighboring dimensions that are 1: a as (first, count,
// inner), of which the middle is summed.
bool all_but_middle(PyArrayObject* a, int ndim, const npy_intp* shape, std::int64_t* first,
                    std::int64_t* count, std::int64_t* inner) {
    if (ndim != PyArray_NDIM(a)) return false;
    *first = *count = *inner = 1;
    int state = 0;  // before, in and behind the dimensions that are summed
    for (int i = 0; i < ndim; ++i) {
        const npy_intp size = PyArray_DIM(a, i);
        const bool summed = shape[i] != size;
        if (summed && (shape[i] != 1 || state == 2)) return false;
        if (summed) state = 1;
        if (!summed && state == 1) state = 2;
        (state == 0 ? *first : state == 1 ? *count : *inner) *= size;
    }
    return state == 2;
}

template <class T>
void sums_of_middle(const T* x, std::int64_t first, std::int64_t count, std::int64_t inner,
                    T* out) {
    const auto f = linear_of<T>().sum_rows;
    share(first, count * inner, [=](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) f(count, inner, x + i * count * inner, inner, out + i * inner);
    });
}

// (a, shape): where all dimensions but one are summed, or neighboring ones in the middle
PyObject* sum_to(const Call& call) {
    static Names names{"a", "shape"};
    PyObject* given[2];
    PyArrayObject* a = nullptr;
    if (read_arguments(call, names, given)) a = plain_real(given[0]);
    npy_intp shape[NPY_MAXDIMS];
    bool fits = a != nullptr && given[1] != nullptr && PyTuple_Check(given[1]) &&
                PyTuple_GET_SIZE(given[1]) <= NPY_MAXDIMS && PyArray_SIZE(a) > 0;
    const int ndim = fits ? static_cast<int>(PyTuple_GET_SIZE(given[1])) : 0;
    for (int i = 0; fits && i < ndim; ++i) {
        std::int64_t size;
        fits = as_integer(PyTuple_GET_ITEM(given[1], i), &size);
        shape[i] = fits ? size : 0;
    }
    std::int64_t n = 0, inner = 0, count = 0, first = 0;
    const int type = fits ? PyArray_TYPE(a) : 0;
    Matrix rows;
    const bool along = fits && along_one(a, ndim, shape, &n, &inner);
    if (along && ndim == 1 && matrix_of(a, &rows)) return sum_of_rows(rows, type);
    if (!along && !(fits && all_but_middle(a, ndim, shape, &first, &count, &inner)))
        return call.by_reference();
    PyArrayObject* out = new_array(ndim, shape, type);
    if (out == nullptr) return nullptr;
    const auto compute = [=](const auto* x, auto* to, std::int64_t size) {
        along ? sums_along(x, size / (n * inner), n, inner, to)
              : sums_of_middle(x, first, count, inner, to);
    };
    const void* from = PyArray_DATA(a);
    void* to = PyArray_DATA(out);
    const std::int64_t size = PyArray_SIZE(a);
    run([=] {
        type == NPY_FLOAT
            ? compute(static_cast<const float*>(from), static_cast<float*>(to), size)
            : compute(static_cast<const double*>(from), static_cast<double*>(to), size);
    });
    return reinterpret_cast<PyObject*>(out);
}

}  // namespace

#define CHAINRULE_LISTED(name)                                      \
    CHAINRULE_METHOD(linear_##name, #name "(x @ weight.T + bias)"), \
        CHAINRULE_METHOD(linear_##name##_backward, "linear_backward, through " #name "."),

PyMethodDef linear_methods[] = {
    CHAINRULE_METHOD(linear, "x @ weight.T + bias"),
    CHAINRULE_METHOD(linear_backward, "The gradients of the input, the weight and the bias."),
    CHAINRULE_ACTIVATIONS(CHAINRULE_LISTED) CHAINRULE_METHOD(matmul, "a @ b"),
    CHAINRULE_METHOD(sum_to, "The transpose of broadcasting."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
