// Sums, embeddings and dropout: the twins of sum and mean in backend/numpy_kernels/reduce.py, index
// and index_place in index.py, bag_rows and its gradient in bags.py, and random_mask in random.py.
#include "arguments.hpp"

namespace chainrule {
namespace {

// --- sums ----------------------------------------------------------------------------------------

// Which dimensions are summed: the last ones, the first ones, or others.
enum class Where { last, first, elsewhere };

struct Plan {
    Where where;
    std::int64_t outer, inner;  // a matrix whose rows (last) or columns (first) are summed
    int ndim;                   // of the result
    npy_intp shape[NPY_MAXDIMS];
};

bool plan_of(PyArrayObject* a, PyObject* dims, PyObject* keepdim, Plan* plan) {
    const int ndim = PyArray_NDIM(a);
    if (!PyTuple_Check(dims) || !PyBool_Check(keepdim)) return false;
    bool summed[NPY_MAXDIMS] = {};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); ++i) {
        std::int64_t d;
        if (!as_integer(PyTuple_GET_ITEM(dims, i), &d) || d < -ndim || d >= ndim) return false;
        d = d < 0 ? d + ndim : d;
        if (summed[d]) return false;
        summed[d] = true;
    }
    int changes = 0;
    plan->ndim = 0;
    for (int d = 0; d < ndim; ++d) {
        if (d > 0 && summed[d] != summed[d - 1]) ++changes;
        if (!summed[d])
            plan->shape[plan->ndim++] = PyArray_DIM(a, d);
        else if (keepdim == Py_True)
            plan->shape[plan->ndim++] = 1;
    }
    if (changes > 1 || ndim == 0) return false;
    plan->where = summed[ndim - 1] ? Where::last : summed[0] ? Where::first : Where::elsewhere;
    plan->outer = plan->inner = 1;
    for (int d = 0; d < ndim; ++d)
        (summed[d] == (plan->where == Where::last) ? plan->inner : plan->outer) *=
            PyArray_DIM(a, d);
    return plan->where != Where::elsewhere;
}

// The sum of everything, from the sums of blocks of a fixed size.
template <class T>
T sum_of_all(std::int64_t n, const T* x) {
    constexpr std::int64_t BLOCK = 1 << 16;
    const auto f = gather_of<T>().row_sums;
    T few[64];
    const std::int64_t blocks = (n + BLOCK - 1) / BLOCK;
    T total = 0;
    if (blocks <= 1 || blocks > 64) {
        f(1, n, x, &total);
        return total;
    }
    share(blocks, BLOCK, [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) f(1, i + 1 < blocks ? BLOCK : n - i * BLOCK, x + i * BLOCK, few + i);
    });
    f(1, blocks, few, &total);
    return total;
}

template <class T>
void compute_sum(const T* x, bool last, std::int64_t outer, std::int64_t inner, bool mean, T* to) {
    if (last && outer == 1) {
        *to = sum_of_all(inner, x);
    } else if (last) {
        const auto f = gather_of<T>().row_sums;
        share(outer, inner,
              [=](std::int64_t i, std::int64_t end) { f(end - i, inner, x + i * inner, to + i); });
    } else {
        const auto f = linear_of<T>().sum_rows;
        share(inner, outer,
              [=](std::int64_t i, std::int64_t end) { f(outer, end - i, x + i, inner, to + i); });
    }
    if (!mean) return;
    const T count = static_cast<T>(last ? inner : outer);
    for (std::int64_t i = 0; i < (last ? outer : inner); ++i) to[i] /= count;
}

template <class T>
PyObject* new_sum(PyArrayObject* a, const Plan& plan, bool mean) {
    PyArrayObject* out = new_array(plan.ndim, plan.shape, PyArray_TYPE(a));
    if (out == nullptr) return nullptr;
    const T* x = data<T>(a);
    T* to = data<T>(out);
    const bool last = plan.where == Where::last;
    const std::int64_t outer = plan.outer, inner = plan.inner;
    run([=] { compute_sum(x, last, outer, inner, mean, to); });
    return reinterpret_cast<PyObject*>(out);
}

// (a, dim, keepdim)
PyObject* any_sum(const Call& call, bool mean) {
    static Names names{"a", "dim", "keepdim"};
    PyObject* given[3];
    PyArrayObject* a = nullptr;
    if (read_arguments(call, names, given)) a = plain_real(given[0]);
    Plan plan;
    if (a == nullptr || given[1] == nullptr || given[2] == nullptr || PyArray_SIZE(a) == 0 ||
        !plan_of(a, given[1], given[2], &plan))
        return call.by_reference();
    return PyArray_TYPE(a) == NPY_FLOAT ? new_sum<float>(a, plan, mean)
                                        : new_sum<double>(a, plan, mean);
}

PyObject* sum(const Call& call) { return any_sum(call, false); }

PyObject* mean(const Call& call) { return any_sum(call, true); }

// --- embeddings ----------------------------------------------------------------------------------

bool is_full_slice(PyObject* o) {
    if (!PySlice_Check(o)) return false;
    const PySliceObject* s = reinterpret_cast<PySliceObject*>(o);
    return s->start == Py_None && s->stop == Py_None && s->step == Py_None;
}

// Whether the entries name integers in the first of `ndim` dimensions and take the others whole.
bool are_rows(PyObject* entries, Py_ssize_t ndim) {
    if (entries == nullptr || !PyTuple_Check(entries) || PyTuple_GET_SIZE(entries) != ndim ||
        ndim < 1 || PyTuple_GET_ITEM(entries, 0) != Py_Ellipsis)
        return false;
    for (Py_ssize_t i = 1; i < ndim; ++i)
        if (!is_full_slice(PyTuple_GET_ITEM(entries, i))) return false;
    return true;
}

// Row numbers. Those that there are not are found when they are used.
PyArrayObject* rows_of(PyObject* o) {
    PyArrayObject* at = o == nullptr ? nullptr : as_array(o);
    return at != nullptr && PyArray_TYPE(at) == NPY_INT64 && is_plain(at) ? at : nullptr;
}

// Whether there are all these rows; a negative one, which counts from the end, is not taken.
bool are_within(std::int64_t count, const std::int64_t* numbers, std::int64_t rows) {
    std::uint64_t most = 0;  // negative ones are huge
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t u = static_cast<std::uint64_t>(numbers[i]);
        most = u > most ? u : most;
    }
    return count == 0 || most < static_cast<std::uint64_t>(rows);
}

// The rows of g, `width` wide each, added at rows of `out`. False if one is not there. Each thread
// adds some columns of all rows, in their order.
template <class T>
bool add_rows(const RowsAt& from, std::int64_t width, std::int64_t rows,
              const std::int64_t* numbers, const T* g, T* out) {
    if (!are_within(from.count(), numbers, rows)) return false;
    share(rows, width, [=](std::int64_t i, std::int64_t end) {
        std::memset(out + i * width, 0, static_cast<std::size_t>((end - i) * width) * sizeof(T));
    });
    const auto f = gather_of<T>().add_rows;
    share(width, from.count(), [=, &from](std::int64_t i, std::int64_t end) {
        f(from, width, i, end, numbers, g, out);
    });
    return true;
}

// Where the rows of an array lie, one for each of `count` numbers: the array is in one piece, or it
// is (outer, inner, width) with rows that are, as a gradient is that was repeated.
bool rows_at(PyArrayObject* g, int type, std::int64_t count, RowsAt* out) {
    if (PyArray_TYPE(g) != type || PyArray_SIZE(g) == 0 || count == 0) return false;
    if (is_plain(g)) {
        *out = {1, count, 0, PyArray_SIZE(g) / count};
        return true;
    }
    if (PyArray_NDIM(g) != 3 || !is_readable(g, type) || stride(g, 2) != 1 ||
        PyArray_DIM(g, 0) * PyArray_DIM(g, 1) != count)
        return false;
    *out = {PyArray_DIM(g, 0), PyArray_DIM(g, 1), stride(g, 0), stride(g, 1)};
    return true;
}

template <class T>
bool run_add_rows(PyArrayObject* g, const RowsAt& from, PyArrayObject* at, PyArrayObject* out) {
    const std::int64_t width = PyArray_SIZE(g) / from.count();
    const std::int64_t rows = PyArray_DIM(out, 0), *numbers = data<std::int64_t>(at);
    const T* gs = data<T>(g);
    T* to = data<T>(out);
    return run([=] { return add_rows(from, width, rows, numbers, gs, to); });
}

// (g, *indices, entries, tail, shape, distinct): the rows of g added at the rows that are named
PyObject* index_place(const Call& call) {
    static Names names{"g", "index", "entries", "tail", "shape", "distinct"};
    PyObject* given[6];
    PyArrayObject* g = nullptr;
    if (call.count == 2 && read_arguments(call, names, given) &&
        Py_IS_TYPE(given[0], &PyArray_Type))
        g = as_array(given[0]);
    std::int64_t tail;
    if (g == nullptr || !is_real(g) || !as_integer(given[3], &tail) || given[4] == nullptr ||
        !PyTuple_Check(given[4]) || given[5] != Py_False || PyArray_SIZE(g) == 0)
        return call.by_reference();
    const Py_ssize_t ndim = PyTuple_GET_SIZE(given[4]);
    if (ndim > NPY_MAXDIMS || !are_rows(given[2], ndim) || tail != ndim - 1)
        return call.by_reference();
    npy_intp shape[NPY_MAXDIMS];
    for (Py_ssize_t i = 0; i < ndim; ++i) {
        std::int64_t n;
        if (!as_integer(PyTuple_GET_ITEM(given[4], i), &n) || n < 1) return call.by_reference();
        shape[i] = n;
    }
    PyArrayObject* at = rows_of(given[1]);
    if (at == nullptr) return call.by_reference();
    const int before = PyArray_NDIM(g) - static_cast<int>(ndim - 1);
    if (before != PyArray_NDIM(at) ||
        !PyArray_CompareLists(PyArray_DIMS(g), PyArray_DIMS(at), before) ||
        !PyArray_CompareLists(PyArray_DIMS(g) + before, shape + 1, static_cast<int>(ndim - 1)))
        return call.by_reference();
    RowsAt from;
    if (!rows_at(g, PyArray_TYPE(g), PyArray_SIZE(at), &from)) return call.by_reference();
    Kept out;
    out.a = new_array(static_cast<int>(ndim), shape, PyArray_TYPE(g));
    if (out.a == nullptr) return nullptr;
    if (!(PyArray_TYPE(g) == NPY_FLOAT ? run_add_rows<float>(g, from, at, out.a)
                                       : run_add_rows<double>(g, from, at, out.a)))
        return call.by_reference();
    return out.release();
}

// (a, *indices, entries, tail, distinct): the rows that are named
PyObject* index(const Call& call) {
    static Names names{"a", "index", "entries", "tail", "distinct"};
    PyObject* given[5];
    PyArrayObject* a = nullptr;
    if (call.count == 2 && read_arguments(call, names, given)) a = plain_real(given[0]);
    std::int64_t tail;
    if (a == nullptr || PyArray_SIZE(a) == 0 || !are_rows(given[2], PyArray_NDIM(a)) ||
        !as_integer(given[3], &tail) || tail != PyArray_NDIM(a) - 1 || given[4] == nullptr)
        return call.by_reference();
    PyArrayObject* at = rows_of(given[1]);
    if (at == nullptr || PyArray_NDIM(at) + PyArray_NDIM(a) - 1 > NPY_MAXDIMS)
        return call.by_reference();
    npy_intp shape[2 * NPY_MAXDIMS];
    int ndim = 0;
    for (int i = 0; i < PyArray_NDIM(at); ++i) shape[ndim++] = PyArray_DIM(at, i);
    for (int i = 1; i < PyArray_NDIM(a); ++i) shape[ndim++] = PyArray_DIM(a, i);
    Kept out;
    out.a = new_array(ndim, shape, PyArray_TYPE(a));
    if (out.a == nullptr) return nullptr;
    const std::int64_t *numbers = data<std::int64_t>(at), count = PyArray_SIZE(at);
    const std::int64_t rows = PyArray_DIM(a, 0);
    const std::int64_t row = PyArray_SIZE(a) / rows * PyArray_ITEMSIZE(a);
    const char* from = PyArray_BYTES(a);
    char* to = PyArray_BYTES(out.a);
    const bool done = run([=] {
        if (!are_within(count, numbers, rows)) return false;
        share(count, row / 4 + 8, [=](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i)
                std::memcpy(to + i * row, from + numbers[i] * row, static_cast<std::size_t>(row));
        });
        return true;
    });
    return done ? out.release() : call.by_reference();
}

// The arguments from `rows` on that say what is in which bag, and by which factors.
struct BagCall {
    Bags bags;
    std::int64_t number;  // of bags
    PyArrayObject* weights;
    Pooling pooling;
};

bool pooling_of(PyObject* mode, Pooling* out) {
    if (!PyUnicode_Check(mode)) return false;
    static const char* const names[] = {"sum", "mean", "max"};
    for (int i = 0; i < 3; ++i)
        if (PyUnicode_CompareWithASCIIString(mode, names[i]) == 0) {
            *out = static_cast<Pooling>(i);
            return true;
        }
    return false;
}

bool bags_of(PyObject* rows, PyObject* offsets, PyObject* weights, PyObject* mode,
             PyObject* padding, PyObject* last, int type, BagCall* out) {
    PyArrayObject *at = rows_of(rows), *starts = nullptr;
    if (at == nullptr || !PyBool_Check(last) || !pooling_of(mode, &out->pooling)) return false;
    Bags& bags = out->bags;
    if (!as_integer(padding, &bags.left_out)) return false;
    bags.rows = data<std::int64_t>(at);
    bags.count = PyArray_SIZE(at);
    bags.given = bags.each = 0;
    bags.offsets = nullptr;
    if (offsets == Py_None) {
        if (PyArray_NDIM(at) != 2 || last == Py_True) return false;
        out->number = PyArray_DIM(at, 0);
        bags.each = PyArray_DIM(at, 1);
    } else {
        starts = rows_of(offsets);
        if (starts == nullptr || PyArray_NDIM(at) != 1 || PyArray_NDIM(starts) != 1) return false;
        bags.given = PyArray_DIM(starts, 0);
        bags.offsets = data<std::int64_t>(starts);
        out->number = bags.given - (last == Py_True);
    }
    out->weights = nullptr;
    if (weights == Py_None) return out->number > 0;
    PyArrayObject* factors = out->weights = as_array(weights);
    return out->number > 0 && factors != nullptr && PyArray_TYPE(factors) == type &&
           is_plain(factors) && PyArray_SAMESHAPE(factors, at);
}

// Whether there are all rows that are named, and each bag begins where the one before it ends.
bool is_right(const Bags& bags, std::int64_t table) {
    if (!are_within(bags.count, bags.rows, table)) return false;
    if (bags.offsets == nullptr) return true;
    bool ordered = bags.start(0) == 0;
    for (std::int64_t b = 0; b < bags.given; ++b) ordered &= bags.start(b) <= bags.start(b + 1);
    return ordered;
}

template <class T>
bool run_bag_rows(PyArrayObject* table, const BagCall& call, PyArrayObject* out) {
    const T* from = data<T>(table);
    const T* weights = call.weights == nullptr ? nullptr : data<T>(call.weights);
    const std::int64_t height = PyArray_DIM(table, 0), width = PyArray_DIM(table, 1);
    const std::int64_t number = call.number;
    const Bags bags = call.bags;
    const Pooling pooling = call.pooling;
    T* to = data<T>(out);
    return run([=] {
        if (!is_right(bags, height)) return false;
        const auto f = gather_of<T>().bag_rows;
        share(number, 2 * width * (bags.count / number + 1),
              [=, &bags](std::int64_t b, std::int64_t end) {
                  f(bags, pooling, width, b, end, from, weights, to);
              });
        return true;
    });
}

// (table, rows, offsets, weights, mode, padding, last)
PyObject* bag_rows(const Call& call) {
    BagCall given;
    PyArrayObject* table = call.has(7) ? plain_real(call[0]) : nullptr;
    if (table == nullptr || PyArray_NDIM(table) != 2 || PyArray_SIZE(table) == 0 ||
        !bags_of(call[1], call[2], call[3], call[4], call[5], call[6], PyArray_TYPE(table), &given))
        return call.by_reference();
    const npy_intp shape[2] = {given.number, PyArray_DIM(table, 1)};
    Kept out;
    out.a = new_array(2, shape, PyArray_TYPE(table));
    if (out.a == nullptr) return nullptr;
    const bool done = PyArray_TYPE(table) == NPY_FLOAT ? run_bag_rows<float>(table, given, out.a)
                                                       : run_bag_rows<double>(table, given, out.a);
    return done ? out.release() : call.by_reference();
}

template <class T>
bool run_bag_rows_backward(PyArrayObject* g, const BagCall& call, PyArrayObject* out) {
    const T* from = data<T>(g);
    const T* weights = call.weights == nullptr ? nullptr : data<T>(call.weights);
    const std::int64_t height = PyArray_DIM(out, 0), width = PyArray_DIM(g, 1);
    const std::int64_t number = call.number;
    const Bags bags = call.bags;
    const bool mean = call.pooling == Pooling::mean;
    T* to = data<T>(out);
    return run([=] {
        if (!is_right(bags, height)) return false;
        share(height, width, [=](std::int64_t i, std::int64_t end) {
            std::memset(to + i * width, 0, static_cast<std::size_t>((end - i) * width) * sizeof(T));
        });
        const auto f = gather_of<T>().bag_rows_backward;
        share(width, bags.count, [=, &bags](std::int64_t i, std::int64_t end) {
            f(bags, number, mean, width, i, end, weights, from, to);
        });
        return true;
    });
}

// (g, rows, offsets, weights, count, mode, padding, last)
PyObject* bag_rows_backward(const Call& call) {
    BagCall given;
    std::int64_t count;
    PyArrayObject* g = call.has(8) ? plain_real(call[0]) : nullptr;
    if (g == nullptr || PyArray_NDIM(g) != 2 || PyArray_SIZE(g) == 0 ||
        !as_integer(call[4], &count) || count < 1 ||
        !bags_of(call[1], call[2], call[3], call[5], call[6], call[7], PyArray_TYPE(g), &given) ||
        given.pooling == Pooling::max || given.number != PyArray_DIM(g, 0))
        return call.by_reference();
    const npy_intp shape[2] = {count, PyArray_DIM(g, 1)};
    Kept out;
    out.a = new_array(2, shape, PyArray_TYPE(g));
    if (out.a == nullptr) return nullptr;
    const bool done = PyArray_TYPE(g) == NPY_FLOAT ? run_bag_rows_backward<float>(g, given, out.a)
                                                   : run_bag_rows_backward<double>(g, given, out.a);
    return done ? out.release() : call.by_reference();
}

// --- dropout -------------------------------------------------------------------------------------

// (g, shape, dtype, p, value)
PyObject* random_mask(const Call& call) {
    double p, value;
    if (!call.has(5) || !PyTuple_Check(call[1]) || !PyArray_DescrCheck(call[2]) ||
        !as_number(call[3], &p) || !as_number(call[4], &value) || !(p > 0 && p <= 1) ||
        !std::isfinite(value))
        return call.by_reference();
    const int type = reinterpret_cast<PyArray_Descr*>(call[2])->type_num;
    const Py_ssize_t ndim = PyTuple_GET_SIZE(call[1]);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || ndim > NPY_MAXDIMS) return call.by_reference();
    npy_intp shape[NPY_MAXDIMS];
    std::int64_t size = 1;
    for (Py_ssize_t i = 0; i < ndim; ++i) {
        std::int64_t n;
        if (!as_integer(PyTuple_GET_ITEM(call[1], i), &n) || n < 1 || n > (1LL << 32) / size)
            return call.by_reference();
        shape[i] = n;
        size *= n;
    }
    const double limit = std::nearbyint(p * 4294967296.0) - 1;
    if (limit < 0) return call.by_reference();
    Kept out;
    out.a = new_array(static_cast<int>(ndim), shape, type);
    if (out.a == nullptr) return nullptr;
    const std::uint32_t last = static_cast<std::uint32_t>(limit);
    void* to = PyArray_DATA(out.a);
    const bool drawn = run_drawn(call[0], [=](std::uint64_t key) {
        share(size, 2, [=](std::int64_t i, std::int64_t end) {
            const std::uint32_t first = static_cast<std::uint32_t>(i);
            if (type == NPY_FLOAT)
                gather_of<float>().mask(end - i, first, key, last, static_cast<float>(value),
                                        static_cast<float*>(to) + i);
            else
                gather_of<double>().mask(end - i, first, key, last, value,
                                         static_cast<double*>(to) + i);
        });
    });
    return drawn ? out.release() : nullptr;
}

// (a, shape): a view with steps of 0 where it is repeated, which cannot be written to
PyObject* broadcast_to(const Call& call) {
    static Names names{"a", "shape"};
    PyObject* given[2];
    npy_intp shape[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    if (!read_arguments(call, names, given) || given[0] == nullptr || given[1] == nullptr ||
        !PyArray_CheckExact(given[0]) || !PyTuple_CheckExact(given[1]) ||
        PyTuple_GET_SIZE(given[1]) > NPY_MAXDIMS)
        return call.by_reference();
    PyArrayObject* a = as_array(given[0]);
    const int ndim = static_cast<int>(PyTuple_GET_SIZE(given[1])), extra = ndim - PyArray_NDIM(a);
    if (extra < 0) return call.by_reference();
    for (int i = 0; i < ndim; ++i) {
        std::int64_t size;
        if (!as_integer(PyTuple_GET_ITEM(given[1], i), &size) || size < 0)
            return call.by_reference();
        const std::int64_t own = i < extra ? 1 : PyArray_DIM(a, i - extra);
        if (own != size && own != 1) return call.by_reference();
        shape[i] = size;
        steps[i] = i < extra || own == 1 ? 0 : PyArray_STRIDE(a, i - extra);
    }
    PyArray_Descr* descr = PyArray_DESCR(a);
    Py_INCREF(descr);
    PyObject* out =
        PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, steps, PyArray_DATA(a), 0, nullptr);
    if (out == nullptr) return nullptr;
    Py_INCREF(given[0]);
    if (PyArray_SetBaseObject(as_array(out), given[0]) < 0) {
        Py_DECREF(out);
        return nullptr;
    }
    PyArray_UpdateFlags(as_array(out),
                        NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
    return out;
}

// (a, shared): a itself if nobody else can see its memory
PyObject* owned(const Call& call) {
    PyArrayObject* a = call.has(2) && PyArray_CheckExact(call[0]) ? as_array(call[0]) : nullptr;
    if (a == nullptr || call[1] != Py_False || PyArray_BASE(a) != nullptr ||
        !PyArray_ISWRITEABLE(a))
        return call.by_reference();
    Py_INCREF(call[0]);
    return call[0];
}

}  // namespace

PyMethodDef gather_methods[] = {
    CHAINRULE_METHOD(broadcast_to, "a repeated to a shape, without a copy."),
    CHAINRULE_METHOD(owned, "a, or a copy of it if its memory is shared."),
    CHAINRULE_METHOD(sum, "The sum along dimensions."),
    CHAINRULE_METHOD(mean, "The mean along dimensions."),
    CHAINRULE_METHOD(index, "The elements at a subscript."),
    CHAINRULE_METHOD(index_place, "Zeros with g added at a subscript."),
    CHAINRULE_METHOD(bag_rows, "The sums, means or maxima of the rows that bags of integers name."),
    CHAINRULE_METHOD(bag_rows_backward, "The gradient of a table from that of its bags' sums."),
    CHAINRULE_METHOD(random_mask, "A value with probability p, else 0."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
