#include "linear_stack.hpp"

#include <cstring>
#include <limits>

#include "arguments.hpp"
#include "blas.hpp"

namespace chainrule {
namespace {

// Matrices that lie in one piece each, `step` elements apart; 0 if it is one for all.
struct Stack {
    const void* data = nullptr;
    std::int64_t rows = 0, cols = 0, step = 0;

    template <class T>
    const T* at(std::int64_t i) const {
        return static_cast<const T*>(data) + i * step;
    }
};

// An array (count, rows, cols) or, for all, (rows, cols).
bool stack_of(PyObject* o, int type, std::int64_t count, Stack* out) {
    PyArrayObject* a = plain_of(o, type);
    if (a == nullptr || PyArray_SIZE(a) == 0) return false;
    const int ndim = PyArray_NDIM(a);
    if (ndim < 2 || ndim > 3 || (ndim == 3 && PyArray_DIM(a, 0) != count)) return false;
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    const std::int64_t rows = PyArray_DIM(a, ndim - 2), cols = PyArray_DIM(a, ndim - 1);
    if (rows > LIMIT || cols > LIMIT) return false;
    *out = {PyArray_DATA(a), rows, cols, ndim == 3 ? rows * cols : 0};
    return true;
}

// The same, or the transpose of such an array: as it is stored, and whether that is turned.
bool stack_in_any_order(PyObject* o, int type, std::int64_t count, Stack* out, bool* turned) {
    *turned = false;
    if (stack_of(o, type, count, out)) return true;
    PyArrayObject* a = as_array(o);
    if (a == nullptr || PyArray_TYPE(a) != type || !PyArray_ISALIGNED(a) || !is_real(a) ||
        PyArray_SIZE(a) == 0)
        return false;
    const int ndim = PyArray_NDIM(a);
    if (ndim < 2 || ndim > 3 || (ndim == 3 && PyArray_DIM(a, 0) != count)) return false;
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    const std::int64_t rows = PyArray_DIM(a, ndim - 1), cols = PyArray_DIM(a, ndim - 2);
    const std::int64_t size = PyArray_ITEMSIZE(a);
    if (rows > LIMIT || cols > LIMIT || PyArray_STRIDE(a, ndim - 2) != size ||
        PyArray_STRIDE(a, ndim - 1) != cols * size ||
        (ndim == 3 && PyArray_STRIDE(a, 0) != rows * cols * size))
        return false;
    *out = {PyArray_DATA(a), rows, cols, ndim == 3 ? rows * cols : 0};
    *turned = true;
    return true;
}

// --- products ------------------------------------------------------------------------------------

// C (m, n) = A B of each layer, where one of both may be turned: A is stored (k, m), or B (n, k).
struct Product {
    Stack a, b;
    bool turn_a, turn_b;
    std::int64_t m, n, k;

    Product(const Stack& a, bool turn_a, const Stack& b, bool turn_b)
        : a(a),
          b(b),
          turn_a(turn_a),
          turn_b(turn_b),
          m(turn_a ? a.cols : a.rows),
          n(turn_b ? b.rows : b.cols),
          k(turn_a ? a.rows : a.cols) {}

    double cost() const {
        return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    }
    bool is_small() const { return k <= SMALL_DEPTH && cost() <= SMALL_PRODUCT; }

    // Whether the sizes fit each other, and BLAS is there if it is needed.
    bool possible() const {
        if ((turn_b ? b.cols : b.rows) != k) return false;
        if (is_small() || find_blas()) return true;
        PyErr_Clear();
        return false;
    }
};

template <class T>
void multiply_small(const Product& p, std::int64_t layer, const T* start, T* c) {
    const T *a = p.a.at<T>(layer), *b = p.b.at<T>(layer);
    linear_of<T>().product(p.m, p.n, p.k, a, p.turn_a ? 1 : p.k, p.turn_a ? p.m : 1, b,
                           p.turn_b ? 1 : p.n, p.turn_b ? p.k : 1, start, c);
}

// The rows of C from `begin` on.
template <class T>
void multiply_rows(const Product& p, std::int64_t layer, std::int64_t begin, std::int64_t rows,
                   const T* start, T* c) {
    for (std::int64_t y = 0; start != nullptr && y < rows; ++y)
        std::memcpy(c + y * p.n, start, static_cast<std::size_t>(p.n) * sizeof(T));
    gemm(p.turn_a, p.turn_b, static_cast<int>(rows), static_cast<int>(p.n), static_cast<int>(p.k),
         T(1), p.a.at<T>(layer) + begin * (p.turn_a ? 1 : p.k),
         static_cast<int>(p.turn_a ? p.m : p.k), p.b.at<T>(layer),
         static_cast<int>(p.turn_b ? p.k : p.n), start == nullptr ? T(0) : T(1), c,
         static_cast<int>(p.n));
}

// A part for a thread has at least this many multiplications; an element of the result is as many
// as `WRITE`. Threads share layers and, of large ones, blocks of rows.
constexpr double PART_OF_PRODUCT = 1 << 19, WRITE = 16;
constexpr std::int64_t ROWS = 256;

template <class T>
void multiply_all(std::int64_t count, const Product& p, const T* starts, T* c) {
    const auto start = [&](std::int64_t i) {
        return starts == nullptr ? nullptr : starts + i * p.n;
    };
    if (p.is_small()) {
        const std::int64_t simple = static_cast<std::int64_t>(p.cost()) / 4 + 1;
        share(count, simple, [&](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) multiply_small(p, i, start(i), c + i * p.m * p.n);
        });
        return;
    }
    WithoutGil released;
    const OneThread alone;
    const std::int64_t blocks = (p.m + ROWS - 1) / ROWS, height = p.m < ROWS ? p.m : ROWS;
    const double cost =
        static_cast<double>(height) * static_cast<double>(p.n) * (static_cast<double>(p.k) + WRITE);
    const std::int64_t grain = static_cast<std::int64_t>(PART_OF_PRODUCT / cost) + 1;
    parallel_for(count * blocks, grain, [&](std::int64_t unit, std::int64_t end) {
        for (; unit < end; ++unit) {
            const std::int64_t i = unit / blocks, row = unit % blocks * ROWS;
            const std::int64_t rows = p.m - row < ROWS ? p.m - row : ROWS;
            multiply_rows(p, i, row, rows, start(i), c + (i * p.m + row) * p.n);
        }
    });
}

template <class T>
PyObject* new_products(std::int64_t count, const Product& p, PyArrayObject* starts, int type) {
    const npy_intp shape[3] = {count, p.m, p.n};
    PyArrayObject* out = new_array(3, shape, type);
    if (out == nullptr) return nullptr;
    const T* from = starts == nullptr ? nullptr : data<T>(starts);
    T* to = data<T>(out);
    run([=] { multiply_all(count, p, from, to); });
    return reinterpret_cast<PyObject*>(out);
}

// The sum of the rows of each layer.
template <class T>
PyObject* new_sums(std::int64_t count, const Stack& g, int type) {
    const npy_intp shape[2] = {count, g.cols};
    PyArrayObject* out = new_array(2, shape, type);
    if (out == nullptr) return nullptr;
    T* to = data<T>(out);
    run([=] {
        const auto f = linear_of<T>().sum_rows;
        share(count, g.rows * g.cols, [=](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) f(g.rows, g.cols, g.at<T>(i), g.cols, to + i * g.cols);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* none() {
    Py_INCREF(Py_None);
    return Py_None;
}

// The gradients of x, of the weights and of the biases; None for those not asked for.
template <class T>
PyObject* new_gradients(std::int64_t count, const Stack& g, const Stack& x, const Stack& w,
                        bool with_bias, int type) {
    PyObject* parts[3] = {};
    parts[0] =
        w.data == nullptr ? none() : new_products<T>(count, {g, false, w, false}, nullptr, type);
    if (parts[0] != nullptr)
        parts[1] =
            x.data == nullptr ? none() : new_products<T>(count, {g, true, x, false}, nullptr, type);
    if (parts[1] != nullptr) parts[2] = with_bias ? new_sums<T>(count, g, type) : none();
    PyObject* all = parts[2] == nullptr ? nullptr : PyTuple_Pack(3, parts[0], parts[1], parts[2]);
    for (PyObject* part : parts) Py_XDECREF(part);
    return all;
}

}  // namespace

PyObject* linear_of_stack(const Call& call) {
    PyArrayObject *weights = as_array(call[1]), *biases = nullptr;
    const int type = PyArray_TYPE(weights);
    const std::int64_t count = PyArray_DIM(weights, 0);
    Stack x, w;
    if (!stack_of(call[0], type, count, &x) || !stack_of(call[1], type, count, &w)) return nullptr;
    if (call.count == 3 && call[2] != Py_None) {
        biases = plain_of(call[2], type);
        if (biases == nullptr || PyArray_NDIM(biases) != 2 || PyArray_DIM(biases, 0) != count ||
            PyArray_DIM(biases, 1) != w.rows)
            return nullptr;
    }
    const Product p(x, false, w, true);
    if (!p.possible()) return nullptr;
    return type == NPY_FLOAT ? new_products<float>(count, p, biases, type)
                             : new_products<double>(count, p, biases, type);
}

PyObject* matmul_of_stack(const Call& call) {
    PyArrayObject *first = as_array(call[0]), *second = as_array(call[1]);
    const int type = PyArray_TYPE(first);
    const std::int64_t count = PyArray_DIM(PyArray_NDIM(first) == 3 ? first : second, 0);
    Stack a, b;
    bool turn_a, turn_b;
    if (!stack_in_any_order(call[0], type, count, &a, &turn_a) ||
        !stack_in_any_order(call[1], type, count, &b, &turn_b))
        return nullptr;
    const Product p(a, turn_a, b, turn_b);
    if (!p.possible()) return nullptr;
    return type == NPY_FLOAT ? new_products<float>(count, p, nullptr, type)
                             : new_products<double>(count, p, nullptr, type);
}

PyObject* linear_backward_of_stack(const Call& call) {
    PyArrayObject* gradient = as_array(call[0]);
    const int type = PyArray_TYPE(gradient);
    const std::int64_t count = PyArray_DIM(gradient, 0);
    Stack g, x, w;
    if (!stack_of(call[0], type, count, &g) ||
        (call[1] != Py_None && !stack_of(call[1], type, count, &x)) ||
        (call[2] != Py_None && !stack_of(call[2], type, count, &w)) ||
        (x.data != nullptr && !Product(g, true, x, false).possible()) ||
        (w.data != nullptr && !Product(g, false, w, false).possible()))
        return nullptr;
    const bool with_bias = call[3] == Py_True;
    return type == NPY_FLOAT ? new_gradients<float>(count, g, x, w, with_bias, type)
                             : new_gradients<double>(count, g, x, w, with_bias, type);
}

}  // namespace chainrule
