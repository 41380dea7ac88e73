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
    if (PyUnicode_CompareWithASCIIString(value, "tanh") == 0)
        *out = Nonlinearity::tanh;
    else if (PyUnicode_CompareWithASCIIString(value, "relu") == 0)
        *out = Nonlinearity::relu;
    else if (PyUnicode_CompareWithASCIIString(value, "sigmoid") == 0)
        *out = Nonlinearity::sigmoid;
    else
        return false;
    return true;
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
void run(Kernel kernel, const Arguments& a, std::int64_t work_of_step) {
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
PyObject* rnn_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    RnnForward<T> a{};
    std::int64_t d[3];
    if (nargs < 3 || !sizes_of(args[0], d) || named.count() != 2 ||
        !nonlinearity_of(named, &a.nonlinearity) || !named.flag("reverse", &a.span.reverse))
        return unfit;
    Reader<T> reader;
    Kept x, h0, mask, out;
    Memory<T> w;
    const std::int64_t n = d[2];
    a.x = reader.steps(args[0], x, d[0], d[1], n);
    a.h0 = reader.contiguous(args[1], h0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(args, nargs, 3, mask, d[0], d[1]), a.span.reverse};
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[2], w, n, n, true);
    a.out = reader.make(out, d[0], d[1], n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().rnn, a, n * n);
    return out.release();
}

// (g, out, w, *mask, nonlinearity, reverse) -> gx, gh0
template <class T>
PyObject* rnn_backward_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    RnnBackward<T> a{};
    std::int64_t d[3];
    if (nargs < 3 || !sizes_of(args[0], d) || named.count() != 2 ||
        !nonlinearity_of(named, &a.nonlinearity) || !named.flag("reverse", &a.span.reverse))
        return unfit;
    Reader<T> reader;
    Kept g, out, mask, gx, carry;
    Memory<T> w, total;
    const std::int64_t n = d[2];
    a.g = reader.steps(args[0], g, d[0], d[1], n);
    a.out = reader.contiguous(args[1], out, d[0], d[1], n);
    a.span = {d[0], d[1], n, reader.mask(args, nargs, 3, mask, d[0], d[1]), a.span.reverse};
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[2], w, n, n, false);
    a.gx = reader.make(gx, d[0], d[1], n);
    a.carry = reader.make(carry, d[1], n);
    a.total = reader.get(total, d[1] * n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().rnn_backward, a, n * n);
    return tuple_of({gx.release(), carry.release()});
}

// --- LSTM ----------------------------------------------------------------------------------------

// The three vectors of peepholes, one after the other.
template <class T>
const T* peepholes_of(Reader<T>& reader, PyObject* const* vectors, Memory<T>& memory,
                      std::int64_t n) {
    for (int k = 0; k < 3; ++k)
        if (reader.array(vectors[k], n) == nullptr) return nullptr;
    T* out = reader.get(memory, 3 * n);
    for (int k = 0; out != nullptr && k < 3; ++k) {
        PyArrayObject* v = as_array(vectors[k]);
        for (std::int64_t j = 0; j < n; ++j) out[k * n + j] = data<T>(v)[j * stride(v, 0)];
    }
    return out;
}

// (x, h0, c0, w, *others) -> h, c, gates; others are the projection, or the peepholes, and the mask
template <class T>
PyObject* lstm_forward(PyObject* const* args, Py_ssize_t nargs, bool projected, bool peephole,
                       bool reverse) {
    std::int64_t d[3];
    const Py_ssize_t mask_at = 4 + (projected ? 1 : 0) + (peephole ? 3 : 0);
    if (nargs < mask_at || !sizes_of(args[0], d) || d[2] % 4 != 0) return unfit;
    LstmForward<T> a{};
    Reader<T> reader;
    Kept x, h0, c0, mask, h, c, gates;
    Memory<T> w, projection, peepholes, memory;
    const std::int64_t n = d[2] / 4, size = projected ? last_of(args[1]) : n;
    if (size == 0) return unfit;
    a.size = size;
    a.x = reader.steps(args[0], x, d[0], d[1], 4 * n);
    a.h0 = reader.contiguous(args[1], h0, d[1], size);
    a.c0 = reader.contiguous(args[2], c0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(args, nargs, mask_at, mask, d[0], d[1]), reverse};
    if (peephole) a.peepholes = peepholes_of(reader, args + 4, peepholes, n);
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[3], w, 4 * n, size, true);
    if (projected) {
        a.projection = reader.packed(args[4], projection, size, n, true);
        a.memory = reader.get(memory, d[1] * n);
    }
    CHAINRULE_OTHERWISE(reader);
    a.h = reader.make(h, d[0], d[1], size);
    a.c = reader.make(c, d[0], d[1], n);
    a.gates = reader.make(gates, d[0], d[1], 4 * n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().lstm, a, 4 * n * size + 50 * n);
    return tuple_of({h.release(), c.release(), gates.release()});
}

// (gh, gc, c_out, gates, c0, w, *others) -> gx, gh0, gc0, and those of h or not
template <class T>
PyObject* lstm_backward(PyObject* const* args, PyObject* projected, PyObject* const* peepholes,
                        PyObject* const* masks, Py_ssize_t count, bool reverse) {
    std::int64_t d[3];
    if (!sizes_of(args[3], d) || d[2] % 4 != 0) return unfit;
    LstmBackward<T> a{};
    Reader<T> reader;
    Kept gh, gc, c, gates, c0, mask, gx, carry_h, carry_c, arrived;
    Memory<T> w, projection, vectors, total, memory;
    const std::int64_t n = d[2] / 4, size = projected != nullptr ? last_of(args[5]) : n;
    if (size == 0) return unfit;
    a.size = size;
    a.gh = reader.steps(args[0], gh, d[0], d[1], size);
    a.gc = reader.steps(args[1], gc, d[0], d[1], n);
    a.c = reader.contiguous(args[2], c, d[0], d[1], n);
    a.gates = reader.contiguous(args[3], gates, d[0], d[1], 4 * n);
    a.c0 = reader.contiguous(args[4], c0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(masks, count, 0, mask, d[0], d[1]), reverse};
    if (peepholes != nullptr) a.peepholes = peepholes_of(reader, peepholes, vectors, n);
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[5], w, 4 * n, size, false);
    if (projected != nullptr) {
        a.projection = reader.packed(projected, projection, size, n, false);
        a.memory = reader.get(memory, d[1] * n);
        a.arrived = reader.make(arrived, d[0], d[1], size);
    }
    CHAINRULE_OTHERWISE(reader);
    a.total = reader.get(total, d[1] * size);
    a.gx = reader.make(gx, d[0], d[1], 4 * n);
    a.carry_h = reader.make(carry_h, d[1], size);
    a.carry_c = reader.make(carry_c, d[1], n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().lstm_backward, a, 4 * n * size + 50 * n);
    if (peepholes != nullptr) return tuple_of({gx.release(), carry_h.release(), carry_c.release()});
    PyObject* of_h = projected != nullptr ? arrived.release() : new_reference(args[0]);
    return tuple_of({gx.release(), carry_h.release(), carry_c.release(), of_h});
}

template <class T>
PyObject* lstm_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    bool projected, reverse;
    if (named.count() != 2 || !named.flag("projected", &projected) ||
        !named.flag("reverse", &reverse))
        return unfit;
    return lstm_forward<T>(args, nargs, projected, false, reverse);
}

template <class T>
PyObject* lstm_backward_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    bool projected, reverse;
    if (named.count() != 2 || !named.flag("projected", &projected) ||
        !named.flag("reverse", &reverse))
        return unfit;
    const Py_ssize_t mask_at = projected ? 7 : 6;
    if (nargs < mask_at) return unfit;
    return lstm_backward<T>(args, projected ? args[6] : nullptr, nullptr, args + mask_at,
                            nargs - mask_at, reverse);
}

template <class T>
PyObject* peephole_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    bool full, reverse;
    if (named.count() != 2 || !named.flag("full", &full) || full ||
        !named.flag("reverse", &reverse))
        return unfit;
    return lstm_forward<T>(args, nargs, false, true, reverse);
}

// (gh, gc, c_out, gates, c0, w, peepholes, *mask, full, reverse) -> gx, gh0, gc0
template <class T>
PyObject* peephole_backward_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    bool full, reverse;
    if (named.count() != 2 || !named.flag("full", &full) || full ||
        !named.flag("reverse", &reverse) || nargs < 7)
        return unfit;
    PyObject* three = args[6];
    if (!(PyTuple_Check(three) || PyList_Check(three)) || PySequence_Fast_GET_SIZE(three) != 3)
        return unfit;
    return lstm_backward<T>(args, nullptr, PySequence_Fast_ITEMS(three), args + 7, nargs - 7,
                            reverse);
}

// --- GRU -----------------------------------------------------------------------------------------

// (x, h0, w, b, *mask, reverse) -> out, kept
template <class T>
PyObject* gru_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    std::int64_t d[3];
    bool reverse;
    if (nargs < 4 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(args[0], d) || d[2] % 3 != 0)
        return unfit;
    GruForward<T> a{};
    Reader<T> reader;
    Kept x, h0, b, mask, out, kept;
    Memory<T> w, memory;
    const std::int64_t n = d[2] / 3;
    a.x = reader.steps(args[0], x, d[0], d[1], 3 * n);
    a.h0 = reader.contiguous(args[1], h0, d[1], n);
    a.b = reader.contiguous(args[3], b, 3 * n);
    a.span = {d[0], d[1], n, reader.mask(args, nargs, 4, mask, d[0], d[1]), reverse};
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[2], w, 3 * n, n, true);
    a.memory = reader.get(memory, d[1] * 3 * n);
    a.out = reader.make(out, d[0], d[1], n);
    a.kept = reader.make(kept, d[0], d[1], 4 * n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().gru, a, 3 * n * n + 40 * n);
    return tuple_of({out.release(), kept.release()});
}

// (g, out, kept, h0, w, *mask, reverse) -> gx, gp, gh0
template <class T>
PyObject* gru_backward_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    std::int64_t d[3];
    bool reverse;
    if (nargs < 5 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(args[0], d))
        return unfit;
    GruBackward<T> a{};
    Reader<T> reader;
    Kept g, out, kept, h0, mask, gx, gp, carry;
    Memory<T> w, total, direct;
    const std::int64_t n = d[2];
    a.g = reader.steps(args[0], g, d[0], d[1], n);
    a.out = reader.contiguous(args[1], out, d[0], d[1], n);
    a.kept = reader.contiguous(args[2], kept, d[0], d[1], 4 * n);
    a.h0 = reader.contiguous(args[3], h0, d[1], n);
    a.span = {d[0], d[1], n, reader.mask(args, nargs, 5, mask, d[0], d[1]), reverse};
    CHAINRULE_OTHERWISE(reader);
    a.w = reader.packed(args[4], w, 3 * n, n, false);
    a.total = reader.get(total, d[1] * n);
    a.direct = reader.get(direct, d[1] * n);
    a.gx = reader.make(gx, d[0], d[1], 3 * n);
    a.gp = reader.make(gp, d[0], d[1], 3 * n);
    a.carry = reader.make(carry, d[1], n);
    CHAINRULE_OTHERWISE(reader);
    run(recurrent_kernels<T>().gru_backward, a, 3 * n * n + 40 * n);
    return tuple_of({gx.release(), gp.release(), carry.release()});
}

// --- the weights ---------------------------------------------------------------------------------

// (g, states, first, reverse) -> the gradient of w
template <class T>
PyObject* weight_gradient_of(PyObject* const* args, Py_ssize_t nargs, const Named& named) {
    std::int64_t d[3];
    bool reverse;
    if (nargs != 3 || named.count() != 1 || !named.flag("reverse", &reverse) ||
        !sizes_of(args[0], d))
        return unfit;
    WeightGradient<T> a{};
    Reader<T> reader;
    Kept g, states, first, out;
    a.gates = d[2];
    a.size = last_of(args[2]);
    if (a.size == 0) return unfit;
    a.g = reader.contiguous(args[0], g, d[0], d[1], d[2]);
    const T* all = reader.contiguous(args[1], states, d[0], d[1], a.size);
    const T* start = reader.contiguous(args[2], first, d[1], a.size);
    a.out = reader.make(out, a.gates, a.size);
    CHAINRULE_OTHERWISE(reader);
    const std::int64_t batch = d[1], others = (d[0] - 1) * batch;
    a.rows[reverse ? 1 : 0] = batch;
    a.states[reverse ? 1 : 0] = start;
    a.rows[reverse ? 0 : 1] = others;
    a.states[reverse ? 0 : 1] = reverse ? all + batch * a.size : all;
    const std::int64_t panel = recurrent_kernels<T>().panel, count = (a.gates + panel - 1) / panel;
    const std::int64_t work = d[0] * batch * a.size * panel, grain = WORK / (work + 1) + 1;
    WithoutGil released;
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        recurrent_kernels<T>().weight_gradient(a, begin, end);
    });
    return out.release();
}

// The type of the first argument decides; what does not fit goes to the NumPy kernel.
#define CHAINRULE_SEQUENCE(name, function)                                                  \
    PyObject* name(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) { \
        const Named named{args + nargs, kwnames};                                           \
        PyObject* result = nullptr;                                                         \
        if (nargs > 0)                                                                      \
            result = is_single(args[0]) ? function<float>(args, nargs, named)               \
                                        : function<double>(args, nargs, named);             \
        if (result != nullptr || PyErr_Occurred()) return result;                           \
        return by_reference(#name, args, nargs, kwnames);                                   \
    }

CHAINRULE_SEQUENCE(rnn_sequence, rnn_of)
CHAINRULE_SEQUENCE(rnn_sequence_backward, rnn_backward_of)
CHAINRULE_SEQUENCE(lstm_sequence, lstm_of)
CHAINRULE_SEQUENCE(lstm_sequence_backward, lstm_backward_of)
CHAINRULE_SEQUENCE(gru_sequence, gru_of)
CHAINRULE_SEQUENCE(gru_sequence_backward, gru_backward_of)
CHAINRULE_SEQUENCE(state_weight_gradient, weight_gradient_of)
CHAINRULE_SEQUENCE(peephole_sequence, peephole_of)
CHAINRULE_SEQUENCE(peephole_sequence_backward, peephole_backward_of)

}  // namespace

PyMethodDef recurrent_methods[] = {
    CHAINRULE_METHOD(rnn_sequence, "A simple recurrent network over a sequence."),
    CHAINRULE_METHOD(rnn_sequence_backward, "The gradients of its input and first state."),
    CHAINRULE_METHOD(lstm_sequence, "An LSTM over a sequence."),
    CHAINRULE_METHOD(lstm_sequence_backward, "The gradients of its input and first states."),
    CHAINRULE_METHOD(gru_sequence, "A GRU over a sequence."),
    CHAINRULE_METHOD(gru_sequence_backward, "The gradients of its input, product and first state."),
    CHAINRULE_METHOD(state_weight_gradient, "The gradient of the weights of the state."),
    CHAINRULE_METHOD(peephole_sequence, "An LSTM whose gates see the cell, over a sequence."),
    CHAINRULE_METHOD(peephole_sequence_backward, "The gradients of its input and first states."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
