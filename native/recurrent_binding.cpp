// The recurrent layers over a whole sequence: the twins of backend/numpy_kernels/recurrent.py and
// recurrent_peephole.py (there with vectors as peepholes).
#include "recurrent_reader.hpp"

namespace chainrule {
namespace {

// Multiplications per thread that pay for waking it.
constexpr std::int64_t WORK = 200000;

bool nonlinearity_of(const Named& named, Nonlinearity* out) {
    PyObject* value = named.get("nonlinearity");
    if (value == nullptr || !PyUnicode_Check(value)) return false;
#define CHAINRULE_EACH(name)                                   \
    if (PyUnicode_CompareWithASCIIString(value, #name) == 0) { \
        *out = Nonlinearity::name;                             \
        return true;                                           \
    }
    CHAINRULE_NONLINEARITIES(CHAINRULE_EACH)
#undef CHAINRULE_EACH
    return false;
}

// Three dimensions, none of them empty.
bool sizes_of(PyObject* o, std::int64_t* sizes) {
    PyArrayObject* a = as_array(o);
    if (a == nullptr || PyArray_NDIM(a) != 3) return false;
    for (int i = 0; i < 3; ++i) sizes[i] = PyArray_DIM(a, i);
    return sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0;
}

// The size of the last dimension of a matrix, or 0.
std::int64_t last_of(PyObject* o) {
    PyArrayObject* a = as_array(o);
    return a != nullptr && PyArray_NDIM(a) == 2 ? PyArray_DIM(a, 1) : 0;
}

bool is_single(PyObject* o) {
    PyArrayObject* a = as_array(o);
    return a != nullptr && PyArray_TYPE(a) == NPY_FLOAT;
}

template <class Kernel, class Arguments>
void for_batch(Kernel kernel, const Arguments& a, std::int64_t work_of_step) {
    WithoutGil released;
    const std::int64_t work = a.span.steps * work_of_step, grain = WORK / (work + 1) + 1;
    parallel_for(a.span.batch, grain,
                 [&](std::int64_t begin, std::int64_t end) { kernel(a, begin, end); });
}

PyObject* new_reference(PyObject* o) {
    Py_INCREF(o);
    return o;
}

// What a typed function returns where the NumPy kernel is to be called.
PyObject* const unfit = nullptr;

#define CHAINRULE_OTHERWISE(reader)                      \
    do {                                                 \
        if ((reader).no_memory) return PyErr_NoMemory(); \
        if (!(reader).fits) return unfit;                \
    } while (false)

// --- the simple network --------------------------------------------------------------------------

// (x, h0, w, *mask, nonlinearity, reverse) -> out
template <class T>
PyObject* rnn_sequence_of(const Call& call) {
    const Named named(call);
    RnnForward<T> a{};
    std::int64_t d[3];
    if (call.count < 3 || !sizes_of(call[0], d) || named.count() != 2 ||
        !nonlinearity_of(named, &a.nonlinearity) || !named.flag("reverse", &a.span.reverse))
        return unfit;
    Reader<T> reader;
    Kept x, h0, mask, out;
    const std::int64_t n = d[2];
    a.x = reader.steps(call[0], x, d[0], d[1], n);
    a.h0 = reader.contiguous(call[1], h0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(call.args, call.count, 3, mask, d[0], d[1]),
              a.span.reverse};
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[2], n, n, true);
    a.out = reader.make(out, d[0], d[1], n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        RnnForward<T> now = a;
        Memory<T> w;
        if ((now.w = weight.into(w)) == nullptr) return false;
        for_batch(recurrent_of<T>().rnn, now, n * n);
        return true;
    });
    return done ? out.release() : PyErr_NoMemory();
}

// (g, out, w, *mask, nonlinearity, reverse) -> gx, gh0
template <class T>
PyObject* rnn_sequence_backward_of(const Call& call) {
    const Named named(call);
    RnnBackward<T> a{};
    std::int64_t d[3];
    if (call.count < 3 || !sizes_of(call[0], d) || named.count() != 2 ||
        !nonlinearity_of(named, &a.nonlinearity) || !named.flag("reverse", &a.span.reverse))
        return unfit;
    Reader<T> reader;
    Kept g, out, mask, gx, carry;
    const std::int64_t n = d[2];
    a.g = reader.steps(call[0], g, d[0], d[1], n);
    a.out = reader.contiguous(call[1], out, d[0], d[1], n);
    a.span = {d[0], d[1], n, reader.mask(call.args, call.count, 3, mask, d[0], d[1]),
              a.span.reverse};
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[2], n, n, false);
    a.gx = reader.make(gx, d[0], d[1], n);
    a.carry = reader.make(carry, d[1], n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        RnnBackward<T> now = a;
        Memory<T> w, total;
        if ((now.w = weight.into(w)) == nullptr || !total.get(a.span.batch * n)) return false;
        now.total = total.data;
        for_batch(recurrent_of<T>().rnn_backward, now, n * n);
        return true;
    });
    return done ? tuple_of({gx.release(), carry.release()}) : PyErr_NoMemory();
}

// --- LSTM ----------------------------------------------------------------------------------------

// The three vectors of peepholes, which are put one after the other when they are used.
template <class T>
struct Peepholes {
    const T* vectors[3] = {};
    std::int64_t steps[3] = {}, n = 0;  // between elements

    bool read(Reader<T>& reader, PyObject* const* given, std::int64_t size) {
        n = size;
        for (int k = 0; k < 3; ++k) {
            PyArrayObject* v = reader.array(given[k], n);
            if (v == nullptr) return false;
            vectors[k] = data<T>(v);
            steps[k] = stride(v, 0);
        }
        return true;
    }
    // Null if there are none, or no memory.
    const T* into(Memory<T>& memory) const {
        if (n == 0 || !memory.get(3 * n)) return nullptr;
        for (int k = 0; k < 3; ++k)
            for (std::int64_t j = 0; j < n; ++j) memory.data[k * n + j] = vectors[k][j * steps[k]];
        return memory.data;
    }
};

// The matrices and memory of a run of an LSTM; false if there is not enough.
template <class T, class Arguments>
bool with_memory(Arguments* a, const Packing<T>& weight, const Packing<T>& projection,
                 const Peepholes<T>& peepholes, Memory<T> (&memory)[4]) {
    if ((a->w = weight.into(memory[0])) == nullptr) return false;
    if (projection.data != nullptr) {
        a->projection = projection.into(memory[1]);
        if (a->projection == nullptr || !memory[2].get(a->span.batch * a->span.hidden))
            return false;
        a->memory = memory[2].data;
    }
    if (peepholes.n == 0) return true;
    a->peepholes = peepholes.into(memory[3]);
    return a->peepholes != nullptr;
}

// (x, h0, c0, w, *others) -> h, c, gates; others are the projection, or the peepholes, and the mask
template <class T>
PyObject* lstm_forward(const Call& call, bool projected, bool peephole, bool reverse) {
    std::int64_t d[3];
    const Py_ssize_t mask_at = 4 + (projected ? 1 : 0) + (peephole ? 3 : 0);
    if (call.count < mask_at || !sizes_of(call[0], d) || d[2] % 4 != 0) return unfit;
    LstmForward<T> a{};
    Reader<T> reader;
    Kept x, h0, c0, mask, h, c, gates;
    Peepholes<T> peepholes;
    const std::int64_t n = d[2] / 4, size = projected ? last_of(call[1]) : n;
    if (size == 0) return unfit;
    a.size = size;
    a.x = reader.steps(call[0], x, d[0], d[1], 4 * n);
    a.h0 = reader.contiguous(call[1], h0, d[1], size);
    a.c0 = reader.contiguous(call[2], c0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(call.args, call.count, mask_at, mask, d[0], d[1]),
              reverse};
    if (peephole) peepholes.read(reader, call.args + 4, n);
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[3], 4 * n, size, true);
    const Packing<T> projection = projected ? reader.packing(call[4], size, n, true) : Packing<T>{};
    CHAINRULE_OTHERWISE(reader);
    a.h = reader.make(h, d[0], d[1], size);
    a.c = reader.make(c, d[0], d[1], n);
    a.gates = reader.make(gates, d[0], d[1], 4 * n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        LstmForward<T> now = a;
        Memory<T> memory[4];
        if (!with_memory(&now, weight, projection, peepholes, memory)) return false;
        for_batch(recurrent_of<T>().lstm, now, 4 * n * size + 50 * n);
        return true;
    });
    return done ? tuple_of({h.release(), c.release(), gates.release()}) : PyErr_NoMemory();
}

// (gh, gc, c_out, gates, c0, w, *others) -> gx, gh0, gc0, and those of h or not
template <class T>
PyObject* lstm_backward(const Call& call, PyObject* projected, PyObject* const* peepholes,
                        PyObject* const* masks, Py_ssize_t count, bool reverse) {
    std::int64_t d[3];
    if (!sizes_of(call[3], d) || d[2] % 4 != 0) return unfit;
    LstmBackward<T> a{};
    Reader<T> reader;
    Kept gh, gc, c, gates, c0, mask, gx, carry_h, carry_c, arrived;
    Peepholes<T> vectors;
    const std::int64_t n = d[2] / 4, size = projected != nullptr ? last_of(call[5]) : n;
    if (size == 0) return unfit;
    a.size = size;
    a.gh = reader.steps(call[0], gh, d[0], d[1], size);
    a.gc = reader.steps(call[1], gc, d[0], d[1], n);
    a.c = reader.contiguous(call[2], c, d[0], d[1], n);
    a.gates = reader.contiguous(call[3], gates, d[0], d[1], 4 * n);
    a.c0 = reader.contiguous(call[4], c0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(masks, count, 0, mask, d[0], d[1]), reverse};
    if (peepholes != nullptr) vectors.read(reader, peepholes, n);
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[5], 4 * n, size, false);
    Packing<T> projection;
    if (projected != nullptr) {
        projection = reader.packing(projected, size, n, false);
        a.arrived = reader.make(arrived, d[0], d[1], size);
    }
    CHAINRULE_OTHERWISE(reader);
    a.gx = reader.make(gx, d[0], d[1], 4 * n);
    a.carry_h = reader.make(carry_h, d[1], size);
    a.carry_c = reader.make(carry_c, d[1], n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        LstmBackward<T> now = a;
        Memory<T> memory[4], total;
        if (!with_memory(&now, weight, projection, vectors, memory) ||
            !total.get(a.span.batch * size))
            return false;
        now.total = total.data;
        for_batch(recurrent_of<T>().lstm_backward, now, 4 * n * size + 50 * n);
        return true;
    });
    if (!done) return PyErr_NoMemory();
    if (peepholes != nullptr) return tuple_of({gx.release(), carry_h.release(), carry_c.release()});
    PyObject* of_h = projected != nullptr ? arrived.release() : new_reference(call[0]);
    return tuple_of({gx.release(), carry_h.release(), carry_c.release(), of_h});
}

template <class T>
PyObject* lstm_sequence_of(const Call& call) {
    const Named named(call);
    bool projected, reverse;
    if (named.count() != 2 || !named.flag("projected", &projected) ||
        !named.flag("reverse", &reverse))
        return unfit;
    return lstm_forward<T>(call, projected, false, reverse);
}

template <class T>
PyObject* lstm_sequence_backward_of(const Call& call) {
    const Named named(call);
    bool projected, reverse;
    if (named.count() != 2 || !named.flag("projected", &projected) ||
        !named.flag("reverse", &reverse))
        return unfit;
    const Py_ssize_t mask_at = projected ? 7 : 6;
    if (call.count < mask_at) return unfit;
    return lstm_backward<T>(call, projected ? call[6] : nullptr, nullptr, call.args + mask_at,
                            call.count - mask_at, reverse);
}

template <class T>
PyObject* peephole_sequence_of(const Call& call) {
    const Named named(call);
    bool full, reverse;
    if (named.count() != 2 || !named.flag("full", &full) || full ||
        !named.flag("reverse", &reverse))
        return unfit;
    return lstm_forward<T>(call, false, true, reverse);
}

// (gh, gc, c_out, gates, c0, w, peepholes, *mask, full, reverse) -> gx, gh0, gc0
template <class T>
PyObject* peephole_sequence_backward_of(const Call& call) {
    const Named named(call);
    bool full, reverse;
    if (named.count() != 2 || !named.flag("full", &full) || full ||
        !named.flag("reverse", &reverse) || call.count < 7)
        return unfit;
    PyObject* three = call[6];
    if (!(PyTuple_Check(three) || PyList_Check(three)) || PySequence_Fast_GET_SIZE(three) != 3)
        return unfit;
    return lstm_backward<T>(call, nullptr, PySequence_Fast_ITEMS(three), call.args + 7,
                            call.count - 7, reverse);
}

// --- GRU -----------------------------------------------------------------------------------------

// (x, h0, w, b, *mask, reverse) -> out, kept
template <class T>
PyObject* gru_sequence_of(const Call& call) {
    const Named named(call);
    std::int64_t d[3];
    bool reverse;
    if (call.count < 4 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(call[0], d) || d[2] % 3 != 0)
        return unfit;
    GruForward<T> a{};
    Reader<T> reader;
    Kept x, h0, b, mask, out, kept;
    const std::int64_t n = d[2] / 3;
    a.x = reader.steps(call[0], x, d[0], d[1], 3 * n);
    a.h0 = reader.contiguous(call[1], h0, d[1], n);
    a.b = reader.contiguous(call[3], b, 3 * n);
    a.span = {d[0], d[1], n, reader.mask(call.args, call.count, 4, mask, d[0], d[1]), reverse};
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[2], 3 * n, n, true);
    a.out = reader.make(out, d[0], d[1], n);
    a.kept = reader.make(kept, d[0], d[1], 4 * n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        GruForward<T> now = a;
        Memory<T> w, memory;
        if ((now.w = weight.into(w)) == nullptr || !memory.get(a.span.batch * 3 * n)) return false;
        now.memory = memory.data;
        for_batch(recurrent_of<T>().gru, now, 3 * n * n + 40 * n);
        return true;
    });
    return done ? tuple_of({out.release(), kept.release()}) : PyErr_NoMemory();
}

// (g, out, kept, h0, w, *mask, reverse) -> gx, gp, gh0
template <class T>
PyObject* gru_sequence_backward_of(const Call& call) {
    const Named named(call);
    std::int64_t d[3];
    bool reverse;
    if (call.count < 5 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(call[0], d))
        return unfit;
    GruBackward<T> a{};
    Reader<T> reader;
    Kept g, out, kept, h0, mask, gx, gp, carry;
    const std::int64_t n = d[2];
    a.g = reader.steps(call[0], g, d[0], d[1], n);
    a.out = reader.contiguous(call[1], out, d[0], d[1], n);
    a.kept = reader.contiguous(call[2], kept, d[0], d[1], 4 * n);
    a.h0 = reader.contiguous(call[3], h0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(call.args, call.count, 5, mask, d[0], d[1]), reverse};
    CHAINRULE_OTHERWISE(reader);
    const Packing<T> weight = reader.packing(call[4], 3 * n, n, false);
    a.gx = reader.make(gx, d[0], d[1], 3 * n);
    a.gp = reader.make(gp, d[0], d[1], 3 * n);
    a.carry = reader.make(carry, d[1], n);
    CHAINRULE_OTHERWISE(reader);
    const bool done = run([=] {
        GruBackward<T> now = a;
        Memory<T> w, total, direct;
        if ((now.w = weight.into(w)) == nullptr || !total.get(a.span.batch * n) ||
            !direct.get(a.span.batch * n))
            return false;
        now.total = total.data;
        now.direct = direct.data;
        for_batch(recurrent_of<T>().gru_backward, now, 3 * n * n + 40 * n);
        return true;
    });
    return done ? tuple_of({gx.release(), gp.release(), carry.release()}) : PyErr_NoMemory();
}

// --- the weights ---------------------------------------------------------------------------------

// (g, states, first, reverse) -> the gradient of w
template <class T>
PyObject* state_weight_gradient_of(const Call& call) {
    const Named named(call);
    std::int64_t d[3];
    bool reverse;
    if (call.count != 3 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(call[0], d))
        return unfit;
    WeightGradient<T> a{};
    Reader<T> reader;
    Kept g, states, first, out;
    a.gates = d[2];
    a.size = last_of(call[2]);
    if (a.size == 0) return unfit;
    a.g = reader.contiguous(call[0], g, d[0], d[1], d[2]);
    const T* all = reader.contiguous(call[1], states, d[0], d[1], a.size);
    const T* start = reader.contiguous(call[2], first, d[1], a.size);
    a.out = reader.make(out, a.gates, a.size);
    CHAINRULE_OTHERWISE(reader);
    const std::int64_t batch = d[1], others = (d[0] - 1) * batch;
    a.rows[reverse ? 1 : 0] = batch;
    a.states[reverse ? 1 : 0] = start;
    a.rows[reverse ? 0 : 1] = others;
    a.states[reverse ? 0 : 1] = reverse ? all + batch * a.size : all;
    const std::int64_t row = d[0] * batch * a.size;
    run([=] {
        const auto& kernels = recurrent_of<T>();
        const std::int64_t panel = kernels.panel_width(), count = (a.gates + panel - 1) / panel;
        WithoutGil released;
        parallel_for(
            count, WORK / (row * panel + 1) + 1,
            [&](std::int64_t begin, std::int64_t end) { kernels.weight_gradient(a, begin, end); });
    });
    return out.release();
}

#define CHAINRULE_SEQUENCES(EACH)                                                       \
    EACH(rnn_sequence, "A simple recurrent network over a sequence.")                   \
    EACH(rnn_sequence_backward, "The gradients of its input and first state.")          \
    EACH(lstm_sequence, "An LSTM over a sequence.")                                     \
    EACH(lstm_sequence_backward, "The gradients of its input and first states.")        \
    EACH(gru_sequence, "A GRU over a sequence.")                                        \
    EACH(gru_sequence_backward, "The gradients of its input, product and first state.") \
    EACH(state_weight_gradient, "The gradient of the weights of the state.")            \
    EACH(peephole_sequence, "An LSTM whose gates see the cell, over a sequence.")       \
    EACH(peephole_sequence_backward, "The gradients of its input and first states.")

// The type of the first argument decides; what does not fit goes to the NumPy kernel.
#define CHAINRULE_SEQUENCE(name, text)                                                      \
    PyObject* name(const Call& call) {                                                      \
        PyObject* result = nullptr;                                                         \
        if (call.count > 0)                                                                 \
            result = is_single(call[0]) ? name##_of<float>(call) : name##_of<double>(call); \
        return result != nullptr || PyErr_Occurred() ? result : call.by_reference();        \
    }
CHAINRULE_SEQUENCES(CHAINRULE_SEQUENCE)

}  // namespace

#define CHAINRULE_LISTED(name, text) CHAINRULE_METHOD(name, text),

PyMethodDef recurrent_methods[] = {
    CHAINRULE_SEQUENCES(CHAINRULE_LISTED){nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
