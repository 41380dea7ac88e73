// attention and attention_backward: the twins of backend/numpy_kernels/attention.py.
#include <atomic>

#include "arguments.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

// An array (N, length, heads, features) whose features lie in one piece.
struct Rows {
    const void* data = nullptr;
    std::int64_t samples = 0, length = 0, heads = 0, features = 0;
    std::int64_t sample_step = 0, row = 0, head_step = 0;

    bool read(PyObject* o, int type) {
        PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
        if (a == nullptr || !Py_IS_TYPE(o, &PyArray_Type) || PyArray_NDIM(a) != 4 ||
            !is_readable(a, type) || PyArray_SIZE(a) == 0 || stride(a, 3) != 1)
            return false;
        data = PyArray_DATA(a);
        samples = PyArray_DIM(a, 0), length = PyArray_DIM(a, 1);
        heads = PyArray_DIM(a, 2), features = PyArray_DIM(a, 3);
        sample_step = stride(a, 0), row = stride(a, 1), head_step = stride(a, 2);
        return true;
    }
    bool matches(const Rows& other) const {
        return samples == other.samples && heads == other.heads;
    }
    template <class T>
    const T* at(std::int64_t unit) const {
        return static_cast<const T*>(data) + unit / heads * sample_step + unit % heads * head_step;
    }
};

// With a larger scale sums are of infinities, and NaN or not depends on their order.
constexpr double LARGE_SCALE = 1e6;

// What both passes read: queries, keys, values, a mask or none, and two settings.
struct Heads {
    Rows q, k, v;
    const void* mask = nullptr;
    std::int64_t mask_sample = 0, mask_head = 0, mask_row = 0;
    double scale = 1;
    bool causal = false;
    int type = NPY_FLOAT;

    std::int64_t count() const { return q.samples * q.heads; }
    // Multiplications of a head in one product of queries and keys, and one with values.
    double cost() const {
        return static_cast<double>(q.length) * static_cast<double>(k.length) *
               static_cast<double>(q.features + v.features) / (causal ? 2 : 1);
    }

    // A mask broadcasts to (N, heads, L, S), but for the last dimension.
    bool read_mask(PyObject* o) {
        if (o == Py_None) return true;
        PyArrayObject* a = o == nullptr ? nullptr : as_array(o);
        if (a == nullptr || !Py_IS_TYPE(o, &PyArray_Type) || !is_readable(a, type)) return false;
        const int ndim = PyArray_NDIM(a);
        const std::int64_t wanted[4] = {q.samples, q.heads, q.length, k.length};
        std::int64_t steps[4] = {};
        if (ndim < 1 || ndim > 4) return false;
        for (int i = 0; i < ndim; ++i) {
            const int place = 4 - ndim + i;
            const std::int64_t size = PyArray_DIM(a, i);
            if (size != wanted[place] && (size != 1 || place == 3)) return false;
            steps[place] = size == 1 ? 0 : stride(a, i);
        }
        if (k.length > 1 && steps[3] != 1) return false;
        mask = PyArray_DATA(a);
        mask_sample = steps[0], mask_head = steps[1], mask_row = steps[2];
        return true;
    }

    bool read(PyObject* const* arrays, PyObject* mask_given, PyObject* scale_given,
              PyObject* causal_given) {
        PyArrayObject* first = arrays[0] == nullptr ? nullptr : as_array(arrays[0]);
        if (first == nullptr || !is_real(first) || causal_given == nullptr ||
            !PyBool_Check(causal_given) || !as_number(scale_given, &scale) ||
            !(scale > -LARGE_SCALE && scale < LARGE_SCALE))
            return false;
        type = PyArray_TYPE(first);
        causal = causal_given == Py_True;
        return q.read(arrays[0], type) && k.read(arrays[1], type) && v.read(arrays[2], type) &&
               q.matches(k) && q.matches(v) && q.features == k.features && k.length == v.length &&
               read_mask(mask_given);
    }

    template <class T>
    AttentionHead<T> head(std::int64_t unit) const {
        const T* own = static_cast<const T*>(mask);
        if (own != nullptr) own += unit / q.heads * mask_sample + unit % q.heads * mask_head;
        return {q.length,
                k.length,
                q.features,
                v.features,
                q.at<T>(unit),
                k.at<T>(unit),
                v.at<T>(unit),
                own,
                q.row,
                k.row,
                v.row,
                mask_row,
                static_cast<T>(scale),
                causal};
    }
};

// A part for a thread has at least this many multiplications, some 5 microseconds. Fewer than
// FEW_UNITS heads are cut into rows of queries, too.
constexpr double PART_OF_HEADS = 1 << 18;
constexpr std::int64_t FEW_UNITS = 8, ROWS = 120;

// work(unit, end, memory) for parts of all units, each with memory of its own; false if there is
// none.
template <class T, class F>
bool share_units(std::int64_t count, double cost, std::int64_t room, const F& work) {
    std::atomic<bool> done{true};
    const auto part = [&](std::int64_t unit, std::int64_t end) {
        const Scratch memory(1, static_cast<std::size_t>(room) * sizeof(T));
        if (memory.get() == nullptr)
            done = false;
        else
            work(unit, end, static_cast<T*>(memory.get()));
    };
    const double all = static_cast<double>(count) * cost;
    if (all < PART_OF_HEADS) {
        part(0, count);
    } else {
        WithoutGil released;
        parallel_for(count, static_cast<std::int64_t>(PART_OF_HEADS / cost) + 1, part);
    }
    return done;
}

template <class T>
bool compute(const Heads& h, T* out, T* lse) {
    const auto& kernels = attention_of<T>();
    const std::int64_t length = h.q.length, features = h.v.features, row = h.q.heads * features;
    const std::int64_t rows = h.count() < FEW_UNITS ? ROWS : length;
    const std::int64_t blocks = (length + rows - 1) / rows;
    const double cost = h.cost() / static_cast<double>(blocks);
    const auto work = [&](std::int64_t part, std::int64_t end, T* memory) {
        for (; part < end; ++part) {
            const std::int64_t unit = part / blocks, begin = part % blocks * rows;
            const std::int64_t last = begin + rows < length ? begin + rows : length;
            const std::int64_t sample = unit / h.q.heads, head = unit % h.q.heads;
            kernels.attention(h.head<T>(unit), begin, last,
                              out + sample * length * row + head * features, row,
                              lse + unit * length, memory);
        }
    };
    return share_units<T>(h.count() * blocks, cost, kernels.attention_room(h.head<T>(0)), work);
}

template <class T>
PyObject* new_attention(const Call& call, const Heads& h) {
    const npy_intp shape[4] = {h.q.samples, h.q.length, h.q.heads, h.v.features};
    const npy_intp sums[3] = {h.q.samples, h.q.heads, h.q.length};
    Kept out, lse;
    if ((out.a = new_array(4, shape, h.type)) == nullptr ||
        (lse.a = new_array(3, sums, h.type)) == nullptr)
        return nullptr;
    T *to = data<T>(out.a), *of_sums = data<T>(lse.a);
    if (!run([=] { return compute<T>(h, to, of_sums); })) return call.by_reference();
    return tuple_of({out.release(), lse.release()});
}

// (q, k, v, mask, scale, causal)
PyObject* attention(const Call& call) {
    static Names names{"q", "k", "v", "mask", "scale", "causal"};
    PyObject* given[6];
    Heads h;
    if (!read_arguments(call, names, given) || !h.read(given, given[3], given[4], given[5]))
        return call.by_reference();
    return h.type == NPY_FLOAT ? new_attention<float>(call, h) : new_attention<double>(call, h);
}

template <class T>
bool compute_backward(const Heads& h, const Rows& g, const T* lse, T* gq, T* gk, T* gv) {
    const auto& kernels = attention_of<T>();
    const std::int64_t heads = h.q.heads, D = h.q.features, E = h.v.features;
    const auto work = [&](std::int64_t unit, std::int64_t end, T* memory) {
        for (; unit < end; ++unit) {
            const std::int64_t sample = unit / heads, head = unit % heads;
            const std::int64_t queries = (sample * h.q.length * heads + head) * D;
            const std::int64_t keys = (sample * h.k.length * heads + head);
            const AttentionSlopes<T> slopes{
                g.at<T>(unit), lse + unit * h.q.length, g.row,     gq + queries,
                gk + keys * D, gv + keys * E,           heads * D, heads * E};
            kernels.attention_backward(h.head<T>(unit), slopes, memory);
        }
    };
    const std::int64_t room = kernels.attention_backward_room(h.head<T>(0));
    return share_units<T>(h.count(), 2.5 * h.cost(), room, work);
}

template <class T>
PyObject* new_gradients(const Call& call, const Heads& h, const Rows& g, PyArrayObject* lse) {
    const Rows* like[3] = {&h.q, &h.k, &h.v};
    Kept made[3];
    for (int i = 0; i < 3; ++i) {
        const Rows& r = *like[i];
        const npy_intp shape[4] = {r.samples, r.length, r.heads, r.features};
        if ((made[i].a = new_array(4, shape, h.type)) == nullptr) return nullptr;
    }
    T *gq = data<T>(made[0].a), *gk = data<T>(made[1].a), *gv = data<T>(made[2].a);
    const T* sums = data<T>(lse);
    if (!run([=] { return compute_backward<T>(h, g, sums, gq, gk, gv); }))
        return call.by_reference();
    return tuple_of({made[0].release(), made[1].release(), made[2].release()});
}

// (g, q, k, v, mask, lse, scale, causal)
PyObject* attention_backward(const Call& call) {
    static Names names{"g", "q", "k", "v", "mask", "lse", "scale", "causal"};
    PyObject* given[8];
    Heads h;
    Rows g;
    if (!read_arguments(call, names, given) || !h.read(given + 1, given[4], given[6], given[7]) ||
        !g.read(given[0], h.type) || !g.matches(h.q) || g.length != h.q.length ||
        g.features != h.v.features)
        return call.by_reference();
    PyArrayObject* lse = plain_of(given[5], h.type);
    const npy_intp sums[3] = {h.q.samples, h.q.heads, h.q.length};
    if (lse == nullptr || PyArray_NDIM(lse) != 3 ||
        !PyArray_CompareLists(PyArray_DIMS(lse), sums, 3))
        return call.by_reference();
    return h.type == NPY_FLOAT ? new_gradients<float>(call, h, g, lse)
                               : new_gradients<double>(call, h, g, lse);
}

}  // namespace

PyMethodDef attention_methods[] = {
    CHAINRULE_METHOD(attention, "softmax(scale q k' + mask) v, and the logarithms of the sums."),
    CHAINRULE_METHOD(attention_backward, "The gradients of queries, keys and values."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
