// The second binding of matmul: vectors, and stacks of matrices of any number of dimensions and any
// steps, repeated to one shape.
#include <atomic>
#include <limits>

#include "blas.hpp"
#include "general.hpp"
#include "scratch.hpp"
#include "sources.hpp"

namespace chainrule {
namespace {

// Matrices of one size: an element is `row` and `col` elements from the next one down and along.
struct Stack {
    const char* data = nullptr;
    std::int64_t rows = 0, cols = 0, row = 0, col = 0;
    npy_intp step[NPY_MAXDIMS];  // in bytes, along the dimensions of the stack

    // The last two dimensions, or those of a vector as a row or a column.
    bool read(PyArrayObject* a, bool vector_is_row) {
        const int ndim = PyArray_NDIM(a);
        if (ndim < 1 || PyArray_SIZE(a) == 0 || !is_readable(a, PyArray_TYPE(a))) return false;
        data = PyArray_BYTES(a);
        const bool vector = ndim == 1;
        rows = vector ? (vector_is_row ? 1 : PyArray_DIM(a, 0)) : PyArray_DIM(a, ndim - 2);
        cols = vector ? (vector_is_row ? PyArray_DIM(a, 0) : 1) : PyArray_DIM(a, ndim - 1);
        row = vector ? stride(a, 0) : stride(a, ndim - 2);
        col = vector ? stride(a, 0) : stride(a, ndim - 1);
        // A step along one element is of no use to anybody.
        if (rows == 1) row = col * cols;
        if (cols == 1) col = rows == 1 ? 1 : row == 1 ? rows : 1;
        return true;
    }

    // As BLAS reads it: the rows, or (turned) the columns, in one piece each.
    bool is_for_blas(bool* turned, std::int64_t* ld) const {
        *turned = !(col == 1 && row >= cols);
        *ld = *turned ? col : row;
        return !*turned || (row == 1 && col >= rows);
    }

    template <class T>
    const T* at(npy_intp offset) const {
        return reinterpret_cast<const T*>(data + offset);
    }
};

struct Products {
    Stack a, b;
    int ndim = 0;  // of the stack
    npy_intp shape[NPY_MAXDIMS + 2];
    std::int64_t count = 1;

    std::int64_t multiplications() const { return a.rows * b.cols * a.cols; }
    bool is_small() const { return a.cols <= SMALL_DEPTH && multiplications() <= SMALL_PRODUCT; }

    // Where the i-th matrices are.
    void find(std::int64_t i, npy_intp* in_a, npy_intp* in_b) const {
        *in_a = *in_b = 0;
        for (int d = ndim - 1; d >= 0; --d) {
            const npy_intp place = i % shape[d];
            i /= shape[d];
            *in_a += place * a.step[d];
            *in_b += place * b.step[d];
        }
    }
};

// The dimensions of both stacks brought together; false if they do not fit.
bool join(PyArrayObject* x, PyArrayObject* y, Products* p) {
    const int nx = PyArray_NDIM(x) > 2 ? PyArray_NDIM(x) - 2 : 0;
    const int ny = PyArray_NDIM(y) > 2 ? PyArray_NDIM(y) - 2 : 0;
    p->ndim = nx > ny ? nx : ny;
    for (int d = 0; d < p->ndim; ++d) {
        const int ix = d - (p->ndim - nx), iy = d - (p->ndim - ny);
        const npy_intp dx = ix < 0 ? 1 : PyArray_DIM(x, ix), dy = iy < 0 ? 1 : PyArray_DIM(y, iy);
        if (dx != dy && dx != 1 && dy != 1) return false;
        p->shape[d] = dx == 1 ? dy : dx;
        p->a.step[d] = dx == 1 ? 0 : PyArray_STRIDE(x, ix);
        p->b.step[d] = dy == 1 ? 0 : PyArray_STRIDE(y, iy);
        p->count *= p->shape[d];
    }
    return true;
}

// A matrix in one piece, where BLAS does not read it as it is.
template <class T>
void pack(const Stack& s, const T* from, T* to) {
    for (std::int64_t i = 0; i < s.rows; ++i)
        for (std::int64_t j = 0; j < s.cols; ++j) to[i * s.cols + j] = from[i * s.row + j * s.col];
}

// One large product; false without memory.
template <class T>
bool multiply(const Products& p, const T* a, const T* b, T* c) {
    bool turned_a, turned_b;
    std::int64_t lda, ldb;
    const bool plain_a = p.a.is_for_blas(&turned_a, &lda);
    const bool plain_b = p.b.is_for_blas(&turned_b, &ldb);
    const std::int64_t room_a = plain_a ? 0 : p.a.rows * p.a.cols;
    const std::int64_t room_b = plain_b ? 0 : p.b.rows * p.b.cols;
    const Scratch memory(1, static_cast<std::size_t>(room_a + room_b) * sizeof(T));
    T* room = static_cast<T*>(memory.get());
    if (room == nullptr && room_a + room_b > 0) return false;
    if (!plain_a) {
        pack(p.a, a, room);
        a = room;
        lda = p.a.cols;
        turned_a = false;
    }
    if (!plain_b) {
        pack(p.b, b, room + room_a);
        b = room + room_a;
        ldb = p.b.cols;
        turned_b = false;
    }
    gemm(turned_a, turned_b, static_cast<int>(p.a.rows), static_cast<int>(p.b.cols),
         static_cast<int>(p.a.cols), T(1), a, static_cast<int>(lda), b, static_cast<int>(ldb), T(0),
         c, static_cast<int>(p.b.cols));
    return true;
}

template <class T>
bool multiply_all(const Products& p, T* c) {
    const std::int64_t size = p.a.rows * p.b.cols;
    if (p.is_small()) {
        const auto f = linear_of<T>().product;
        share(p.count, p.multiplications() / 4 + 1, [&](std::int64_t i, std::int64_t end) {
            for (npy_intp at_a, at_b; i < end; ++i) {
                p.find(i, &at_a, &at_b);
                f(p.a.rows, p.b.cols, p.a.cols, p.a.at<T>(at_a), p.a.row, p.a.col, p.b.at<T>(at_b),
                  p.b.row, p.b.col, nullptr, c + i * size);
            }
        });
        return true;
    }
    WithoutGil released;
    const OneThread alone;
    std::atomic<bool> done{true};
    parallel_for(p.count, 1, [&](std::int64_t i, std::int64_t end) {
        for (npy_intp at_a, at_b; i < end; ++i) {
            p.find(i, &at_a, &at_b);
            if (!multiply(p, p.a.at<T>(at_a), p.b.at<T>(at_b), c + i * size)) done = false;
        }
    });
    return done;
}

bool is_possible(const Products& p) {
    constexpr std::int64_t LIMIT = std::numeric_limits<int>::max();
    const Stack &a = p.a, &b = p.b;
    if (a.cols != b.rows || a.rows > LIMIT || a.cols > LIMIT || b.cols > LIMIT ||
        (std::int64_t(1) << 62) / a.rows / b.cols < a.cols)
        return false;
    if (p.is_small()) return true;
    // A large vector by a matrix is NumPy's, and so is what BLAS cannot count.
    if (a.rows == 1 || b.cols == 1 || a.row > LIMIT || a.col > LIMIT || b.row > LIMIT ||
        b.col > LIMIT)
        return false;
    if (find_blas()) return true;
    PyErr_Clear();
    return false;
}

}  // namespace

// (a, b)
bool general_matmul(const Call& call, PyObject** result) {
    if (!call.has(2) || !PyArray_CheckExact(call[0]) || !PyArray_CheckExact(call[1])) return false;
    PyArrayObject *x = as_array(call[0]), *y = as_array(call[1]);
    const int type = PyArray_TYPE(x);
    Products p;
    if (!is_real(x) || PyArray_TYPE(y) != type || !is_real(y) || !p.a.read(x, true) ||
        !p.b.read(y, false) || !join(x, y, &p) || !is_possible(p))
        return false;
    int ndim = p.ndim;
    if (PyArray_NDIM(x) > 1) p.shape[ndim++] = p.a.rows;
    if (PyArray_NDIM(y) > 1) p.shape[ndim++] = p.b.cols;
    PyArrayObject* out = new_array(ndim, p.shape, type);
    *result = reinterpret_cast<PyObject*>(out);
    if (out == nullptr) return true;
    void* to = PyArray_DATA(out);
    const bool done = run_with(p, [=](const Products& held) {
        return type == NPY_FLOAT ? multiply_all(held, static_cast<float*>(to))
                                 : multiply_all(held, static_cast<double*>(to));
    });
    if (!done) {
        Py_DECREF(*result);
        *result = PyErr_NoMemory();
    }
    return true;
}

}  // namespace chainrule
