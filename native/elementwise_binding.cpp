// Arithmetic, activations and their slopes: the twins of
// backend/numpy_kernels/{elementwise,activation}.py.
#include "arguments.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

// --- what a chain computes by itself (chain.hpp) -------------------------------------------------

constexpr bool same_text(const char* a, const char* b) {
    return *a == *b && (*a == 0 || same_text(a + 1, b + 1));
}

// An operation that is one of the processor's, so that it needs no call for a single number.
constexpr NumberCode number_code(const char* name) {
    return same_text(name, "add")      ? NumberCode::add
           : same_text(name, "sub")    ? NumberCode::sub
           : same_text(name, "mul")    ? NumberCode::mul
           : same_text(name, "div")    ? NumberCode::div
           : same_text(name, "neg")    ? NumberCode::neg
           : same_text(name, "square") ? NumberCode::square
                                       : NumberCode::none;
}

template <class T>
using FromNumber = void (*)(std::int64_t n, T a, const T* b, T* out);
template <class T>
using WithNumber = void (*)(std::int64_t n, const T* a, T b, T* out);

template <class T>
void apply_one(const ElementCall& c, std::int64_t n, const void* const* from, void* to) {
    reinterpret_cast<UnaryFunction<T>>(c.function)(n, static_cast<const T*>(from[0]),
                                                   static_cast<T*>(to));
}

template <class T>
void apply_two(const ElementCall& c, std::int64_t n, const void* const* from, void* to) {
    reinterpret_cast<BinaryFunction<T>>(c.function)(
        n, static_cast<const T*>(from[0]), static_cast<const T*>(from[1]), static_cast<T*>(to));
}

template <class T>
void apply_from_number(const ElementCall& c, std::int64_t n, const void* const* from, void* to) {
    reinterpret_cast<FromNumber<T>>(c.function)(
        n, *static_cast<const T*>(from[0]), static_cast<const T*>(from[1]), static_cast<T*>(to));
}

template <class T>
void apply_with_number(const ElementCall& c, std::int64_t n, const void* const* from, void* to) {
    reinterpret_cast<WithNumber<T>>(c.function)(
        n, static_cast<const T*>(from[0]), *static_cast<const T*>(from[1]), static_cast<T*>(to));
}

template <class T, class F>
ElementCall element_call(ElementFunction apply, F* function, std::int64_t size, std::int64_t cost,
                         T* to) {
    ElementCall c;
    c.apply = apply;
    c.function = reinterpret_cast<void (*)()>(function);
    c.bytes = sizeof(T);
    c.size = size;
    c.cost = cost;
    c.to = to;
    return c;
}

void take(ElementCall* c, const void* place, std::int64_t count) {
    c->from[c->operands++] = {place, count, 1};
}

// Arithmetic of NumPy's on arrays without dimensions, as derivative rules have it, gives numbers of
// NumPy's. They are arrays here, so that what follows rounds as it does of arrays.
struct OwnArray {
    PyObject* made = nullptr;
    PyObject* of(PyObject* o) {
        if (!PyArray_IsScalar(o, Float) && !PyArray_IsScalar(o, Double)) return o;
        made = PyArray_FromScalar(o, nullptr);
        if (made == nullptr) PyErr_Clear();
        cannot_be_kept();
        return made == nullptr ? o : made;
    }
    OwnArray() = default;
    OwnArray(const OwnArray&) = delete;
    OwnArray& operator=(const OwnArray&) = delete;
    ~OwnArray() { Py_XDECREF(made); }
};

// --- functions of one and of two arrays ----------------------------------------------------------

template <class T>
PyObject* new_unary(Unary which, NumberCode code, std::int64_t cost, PyArrayObject* x) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const auto f = which.in(elementwise_of<T>());
    const T* from = data<T>(x);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(x);
    const auto describe = [=] {
        ElementCall c = element_call(apply_one<T>, f, size, cost, to);
        c.code = code;
        take(&c, from, size);
        return c;
    };
    run_elements(describe, [=] {
        share(size, cost, [=](std::int64_t i, std::int64_t end) { f(end - i, from + i, to + i); });
    });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* unary(const Call& call, Unary which, NumberCode code, std::int64_t cost, Floats floats) {
    OwnArray own;
    PyArrayObject* x = call.has(1) ? plain_real(own.of(call[0])) : nullptr;
    if (x != nullptr && PyArray_TYPE(x) == NPY_FLOAT) return new_unary<float>(which, code, cost, x);
    if (x == nullptr || floats == Floats::single) return call.by_reference();
    return new_unary<double>(which, code, cost, x);
}

template <class T>
PyObject* new_binary(Binary which, std::int64_t cost, PyArrayObject* g, PyArrayObject* y) {
    PyArrayObject* out = new_like(y);
    if (out == nullptr) return nullptr;
    const auto f = which.in(elementwise_of<T>());
    const T *first = data<T>(g), *second = data<T>(y);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(y);
    const auto describe = [=] {
        ElementCall c = element_call(apply_two<T>, f, size, cost, to);
        take(&c, first, size);
        take(&c, second, size);
        return c;
    };
    run_elements(describe, [=] {
        share(size, cost,
              [=](std::int64_t i, std::int64_t end) { f(end - i, first + i, second + i, to + i); });
    });
    return reinterpret_cast<PyObject*>(out);
}

PyObject* binary(const Call& call, Binary which, std::int64_t cost, Floats floats) {
    OwnArray first, second;
    PyArrayObject* g = call.has(2) ? plain_real(first.of(call[0])) : nullptr;
    PyArrayObject* y = g == nullptr ? nullptr : plain_of(second.of(call[1]), PyArray_TYPE(g));
    if (y == nullptr || !same_shape(g, y)) return call.by_reference();
    if (PyArray_TYPE(g) == NPY_FLOAT) return new_binary<float>(which, cost, g, y);
    if (floats == Floats::single) return call.by_reference();
    return new_binary<double>(which, cost, g, y);
}

#define CHAINRULE_UNARY(WITH, name, value, cost, floats, text)                               \
    PyObject* name(const Call& call) {                                                       \
        constexpr NumberCode code = number_code(#name);                                      \
        return unary(call, CHAINRULE_CHOSEN(elementwise, name), code, cost, Floats::floats); \
    }
#define CHAINRULE_BINARY(WITH, name, value, cost, floats, text)                         \
    PyObject* name(const Call& call) {                                                  \
        return binary(call, CHAINRULE_CHOSEN(elementwise, name), cost, Floats::floats); \
    }
CHAINRULE_UNARIES(CHAINRULE_UNARY, )
CHAINRULE_BINARIES(CHAINRULE_BINARY, )

// --- arithmetic ----------------------------------------------------------------------------------

// What is done to whole numbers; a quotient of them is none.
enum class Whole { add, sub, mul, div };

struct Arithmetic {
    Whole whole;
    NumberCode code;
    Binary pairs;
    Chosen<elementwise_functions, FromNumber> from_number;
    Chosen<elementwise_functions, WithNumber> with_number;
};

template <class T>
ElementCall arithmetic_call(const Arithmetic& which, const ChainOperand& a, const ChainOperand& b,
                            std::int64_t size, T* to) {
    const auto& f = elementwise_of<T>();
    const bool from = a.count == 1 && size != 1, with = !from && b.count == 1 && size != 1;
    ElementCall c =
        from   ? element_call(apply_from_number<T>, which.from_number.in(f), size, LIGHT, to)
        : with ? element_call(apply_with_number<T>, which.with_number.in(f), size, LIGHT, to)
               : element_call(apply_two<T>, which.pairs.in(f), size, LIGHT, to);
    c.operands = 2;
    c.from[0] = a;
    c.from[1] = b;
    c.takes_number[0] = from;
    c.takes_number[1] = with;
    c.code = which.code;
    return c;
}

// For small arrays this takes a third of the time of NumPy's, which looks for loops and for ways to
// broadcast; and the result of numbers is an array without dimensions, as a tensor wants it.
template <class T>
PyObject* new_arithmetic(const Arithmetic& which, PyArrayObject* a, PyArrayObject* b) {
    const bool one_a = PyArray_NDIM(a) == 0, one_b = PyArray_NDIM(b) == 0;
    PyArrayObject* out = new_like(one_a ? b : a);
    if (out == nullptr) return nullptr;
    const T *as = data<T>(a), *bs = data<T>(b);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(out);
    const Arithmetic* operation = &which;  // of static storage
    const auto describe = [=] {
        return arithmetic_call<T>(*operation, {as, one_a ? 1 : size}, {bs, one_b ? 1 : size}, size,
                                  to);
    };
    run_elements(describe, [=] {
        const auto& f = elementwise_of<T>();
        share(size, LIGHT, [=, &f](std::int64_t i, std::int64_t end) {
            if (one_a)
                operation->from_number.in(f)(end - i, *as, bs + i, to + i);
            else if (one_b)
                operation->with_number.in(f)(end - i, as + i, *bs, to + i);
            else
                operation->pairs.in(f)(end - i, as + i, bs + i, to + i);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

// Two arrays of any steps, brought to one shape. Trailing dimensions that both have in one piece,
// or repeat, are joined to one: the span of a loop.
struct Together {
    int ndim = 0;
    npy_intp shape[NPY_MAXDIMS], step_a[NPY_MAXDIMS], step_b[NPY_MAXDIMS];  // in elements
    std::int64_t span = 1, size = 1;
    npy_intp along_a = 0, along_b = 0;  // steps within a span: 0 or 1
    int outer = 0;                      // dimensions before the span
};

bool bring_together(PyArrayObject* a, PyArrayObject* b, Together* t) {
    const int na = PyArray_NDIM(a), nb = PyArray_NDIM(b), ndim = na > nb ? na : nb;
    const npy_intp bytes = PyArray_ITEMSIZE(a);
    t->ndim = ndim;
    for (int i = 0; i < ndim; ++i) {
        const int ia = i - (ndim - na), ib = i - (ndim - nb);
        const npy_intp da = ia < 0 ? 1 : PyArray_DIM(a, ia), db = ib < 0 ? 1 : PyArray_DIM(b, ib);
        if (da != db && da != 1 && db != 1) return false;
        const npy_intp sa = da == 1 ? 0 : PyArray_STRIDE(a, ia);
        const npy_intp sb = db == 1 ? 0 : PyArray_STRIDE(b, ib);
        if (sa % bytes != 0 || sb % bytes != 0) return false;
        t->shape[i] = da == 1 ? db : da;
        t->step_a[i] = sa / bytes;
        t->step_b[i] = sb / bytes;
        t->size *= t->shape[i];
    }
    t->outer = ndim;
    bool fresh = true;
    while (t->outer > 0) {
        const int i = t->outer - 1;
        const npy_intp n = t->shape[i], sa = t->step_a[i], sb = t->step_b[i];
        if (n != 1) {
            if (fresh && (sa < 0 || sa > 1 || sb < 0 || sb > 1)) return false;
            if (!fresh && (sa != t->along_a * t->span || sb != t->along_b * t->span)) break;
            if (fresh) {
                t->along_a = sa;
                t->along_b = sb;
            }
            fresh = false;
            t->span *= n;
        }
        --t->outer;
    }
    return true;
}

template <class T>
void compute_broadcast(const Arithmetic& which, const T* as, const T* bs, const Together& t,
                       T* to) {
    const auto& f = elementwise_of<T>();
    share(t.size / t.span, t.span + 4, [=, &f, &t, &which](std::int64_t begin, std::int64_t end) {
        npy_intp place[NPY_MAXDIMS] = {};
        std::int64_t at_a = 0, at_b = 0, rest = begin;
        for (int i = t.outer - 1; i >= 0; --i) {
            place[i] = rest % t.shape[i];
            rest /= t.shape[i];
            at_a += place[i] * t.step_a[i];
            at_b += place[i] * t.step_b[i];
        }
        for (std::int64_t k = begin; k < end; ++k) {
            if (t.along_a != 0 && t.along_b != 0)
                which.pairs.in(f)(t.span, as + at_a, bs + at_b, to + k * t.span);
            else if (t.along_a != 0)
                which.with_number.in(f)(t.span, as + at_a, bs[at_b], to + k * t.span);
            else
                which.from_number.in(f)(t.span, as[at_a], bs + at_b, to + k * t.span);
            for (int i = t.outer - 1; i >= 0; --i) {
                at_a += t.step_a[i];
                at_b += t.step_b[i];
                if (++place[i] < t.shape[i]) break;
                at_a -= t.shape[i] * t.step_a[i];
                at_b -= t.shape[i] * t.step_b[i];
                place[i] = 0;
            }
        }
    });
}

template <class T>
PyObject* new_broadcast(const Arithmetic& which, PyArrayObject* a, PyArrayObject* b, Together& t) {
    PyArrayObject* out = new_array(t.ndim, t.shape, PyArray_TYPE(a));
    if (out == nullptr) return nullptr;
    const T *as = data<T>(a), *bs = data<T>(b);
    T* to = data<T>(out);
    const Arithmetic* operation = &which;  // of static storage
    ChainOperand first, second;
    if (tapes_in_the_making != 0 && supply_keeps() && chain_operand(a, t.ndim, t.shape, &first) &&
        chain_operand(b, t.ndim, t.shape, &second))
        note_elements(arithmetic_call<T>(which, first, second, t.size, to));
    run_with(t, [=](const Together& held) { compute_broadcast(*operation, as, bs, held, to); });
    return reinterpret_cast<PyObject*>(out);
}

constexpr std::int64_t FEW_NUMBERS = 256;  // of more, NumPy computes several at a time

// Whole numbers of 64 bits: an array of few, or a number of Python's or NumPy's.
struct WholeNumbers {
    PyArrayObject* array = nullptr;
    const std::int64_t* place = nullptr;
    std::int64_t number = 0;

    bool read(PyObject* o) {
        if (as_integer(o, &number)) return true;
        if (PyArray_IsScalar(o, Int64)) {
            PyArray_ScalarAsCtype(o, &number);
            return true;
        }
        if (!PyArray_CheckExact(o) || PyArray_TYPE(as_array(o)) != NPY_INT64 ||
            !is_plain(as_array(o)))
            return false;
        array = as_array(o);
        place = data<std::int64_t>(array);
        return PyArray_SIZE(array) <= FEW_NUMBERS;
    }
    bool is_one() const { return array == nullptr || PyArray_NDIM(array) == 0; }
};

// Beyond the largest number it goes on with the smallest, as in NumPy.
std::int64_t combined(Whole whole, std::int64_t a, std::int64_t b) {
    const std::uint64_t x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<std::int64_t>(whole == Whole::add   ? x + y
                                     : whole == Whole::sub ? x - y
                                                           : x * y);
}

// Two arrays of whole numbers of one shape, or one of them and a number.
PyObject* new_whole(const Call& call, Whole whole) {
    WholeNumbers a, b;
    if (whole == Whole::div || !a.read(call[0]) || !b.read(call[1]) ||
        (a.array == nullptr && b.array == nullptr) ||
        (!a.is_one() && !b.is_one() && !same_shape(a.array, b.array)))
        return call.by_reference();
    PyArrayObject* out = new_like(a.is_one() && b.array != nullptr ? b.array : a.array);
    if (out == nullptr) return nullptr;
    std::int64_t* to = data<std::int64_t>(out);
    const std::int64_t size = PyArray_SIZE(out), own_a = a.number, own_b = b.number;
    const std::int64_t *as = a.place, *bs = b.place;
    const bool one_a = a.is_one(), one_b = b.is_one();
    run([=] {
        for (std::int64_t i = 0; i < size; ++i)
            to[i] = combined(whole, as == nullptr ? own_a : as[one_a ? 0 : i],
                             bs == nullptr ? own_b : bs[one_b ? 0 : i]);
    });
    return reinterpret_cast<PyObject*>(out);
}

// (a, b): arrays of one shape; one of them without dimensions; or whatever fits by repetition
PyObject* arithmetic(const Call& call, const Arithmetic& which) {
    if (!call.has(2)) return call.by_reference();
    if (!PyArray_CheckExact(call[0]) || !PyArray_CheckExact(call[1]) ||
        PyArray_TYPE(as_array(call[0])) == NPY_INT64)
        return new_whole(call, which.whole);
    PyArrayObject *a = as_array(call[0]), *b = as_array(call[1]);
    if (!is_real(a) || PyArray_TYPE(b) != PyArray_TYPE(a) || !is_real(b))
        return call.by_reference();
    if (!is_plain(a) || !is_plain(b) ||
        (PyArray_NDIM(a) != 0 && PyArray_NDIM(b) != 0 && !same_shape(a, b))) {
        Together t;
        if (!PyArray_ISALIGNED(a) || !PyArray_ISALIGNED(b) || PyArray_SIZE(a) == 0 ||
            PyArray_SIZE(b) == 0 || !bring_together(a, b, &t) || (t.along_a == 0 && t.along_b == 0))
            return call.by_reference();
        return PyArray_TYPE(a) == NPY_FLOAT ? new_broadcast<float>(which, a, b, t)
                                            : new_broadcast<double>(which, a, b, t);
    }
    return PyArray_TYPE(a) == NPY_FLOAT ? new_arithmetic<float>(which, a, b)
                                        : new_arithmetic<double>(which, a, b);
}

#define CHAINRULE_OPERATION(WITH, name, op, text)        \
    PyObject* name(const Call& call) {                   \
        static constexpr Arithmetic which = {            \
            Whole::name,                                 \
            number_code(#name),                          \
            CHAINRULE_CHOSEN(elementwise, name##_pairs), \
            CHAINRULE_CHOSEN(elementwise, name##_from),  \
            CHAINRULE_CHOSEN(elementwise, name##_with),  \
        };                                               \
        return arithmetic(call, which);                  \
    }
CHAINRULE_ARITHMETIC(CHAINRULE_OPERATION, )

template <class T>
bool compute_square(std::int64_t size, const T* from, const T* exponent, T* to) {
    if (*exponent != 2) return false;
    const auto f = elementwise_of<T>().square;
    share(size, LIGHT, [=](std::int64_t i, std::int64_t end) { f(end - i, from + i, to + i); });
    return true;
}

template <class T>
PyObject* new_power(const Call& call, PyArrayObject* a, PyArrayObject* b) {
    const T* exponent = data<T>(b);
    if (*exponent != 2) return call.by_reference();
    PyArrayObject* out = new_like(a);
    if (out == nullptr) return nullptr;
    const T* from = data<T>(a);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(a);
    run([=] { return compute_square(size, from, exponent, to); });
    return reinterpret_cast<PyObject*>(out);
}

// (a, b): where b is one number of which the power needs no logarithm
PyObject* pow(const Call& call) {
    PyArrayObject* a = call.has(2) ? plain_real(call[0]) : nullptr;
    PyArrayObject* b = a == nullptr ? nullptr : plain_of(call[1], PyArray_TYPE(a));
    if (b == nullptr || PyArray_NDIM(b) != 0) return call.by_reference();
    return PyArray_TYPE(a) == NPY_FLOAT ? new_power<float>(call, a, b)
                                        : new_power<double>(call, a, b);
}

// --- squared errors ------------------------------------------------------------------------------

// Blocks of one size, so that the sum does not depend on who adds them. False without memory.
template <class T>
bool compute_squared_error(std::int64_t n, const T* xs, const T* ys, double scale, T* out) {
    constexpr std::int64_t BLOCK = 1 << 15;
    const auto f = elementwise_of<T>().squared_error;
    const std::int64_t blocks = (n + BLOCK - 1) / BLOCK;
    const Scratch memory(0, static_cast<std::size_t>(blocks) * sizeof(double));
    double* parts = static_cast<double*>(memory.get());
    if (parts == nullptr) return false;
    share(blocks, BLOCK, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = first; b < last; ++b) {
            const std::int64_t i = b * BLOCK, left = n - i;
            parts[b] = f(left < BLOCK ? left : BLOCK, xs + i, ys + i);
        }
    });
    double total = 0;
    for (std::int64_t b = 0; b < blocks; ++b) total += parts[b];
    *out = static_cast<T>(scale * total);
    return true;
}

template <class T>
PyObject* new_squared_error(PyArrayObject* a, PyArrayObject* b, double scale) {
    Kept out;
    if ((out.a = new_array(0, nullptr, PyArray_TYPE(a))) == nullptr) return nullptr;
    const T *xs = data<T>(a), *ys = data<T>(b);
    T* to = data<T>(out.a);
    const std::int64_t n = PyArray_SIZE(a);
    if (!run([=] { return compute_squared_error(n, xs, ys, scale, to); })) return PyErr_NoMemory();
    return out.release();
}

// (a, b, scale)
PyObject* squared_error(const Call& call) {
    PyArrayObject* a = call.has(3) ? plain_real(call[0]) : nullptr;
    PyArrayObject* b = a == nullptr ? nullptr : plain_of(call[1], PyArray_TYPE(a));
    double scale;
    if (b == nullptr || !same_shape(a, b) || !as_number(call[2], &scale))
        return call.by_reference();
    return PyArray_TYPE(a) == NPY_FLOAT ? new_squared_error<float>(a, b, scale)
                                        : new_squared_error<double>(a, b, scale);
}

template <class T>
PyObject* new_difference(PyArrayObject* a, PyArrayObject* b, double scale, const Scalar<T>& g) {
    PyArrayObject* out = new_like(a);
    if (out == nullptr) return nullptr;
    const T *as = data<T>(a), *bs = data<T>(b);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(a);
    run([=] {
        const auto f = elementwise_of<T>().scaled_difference;
        const T by = static_cast<T>(2 * scale * g.get());
        share(size, LIGHT,
              [=](std::int64_t i, std::int64_t end) { f(end - i, as + i, bs + i, by, to + i); });
    });
    return reinterpret_cast<PyObject*>(out);
}

// (g, a, b, scale)
PyObject* squared_error_backward(const Call& call) {
    PyArrayObject* a = call.has(4) ? plain_real(call[1]) : nullptr;
    PyArrayObject* b = a == nullptr ? nullptr : plain_of(call[2], PyArray_TYPE(a));
    double scale;
    if (b == nullptr || !same_shape(a, b) || !as_number(call[3], &scale))
        return call.by_reference();
    if (PyArray_TYPE(a) == NPY_FLOAT) {
        Scalar<float> g;
        return g.read(call[0]) ? new_difference(a, b, scale, g) : call.by_reference();
    }
    Scalar<double> g;
    return g.read(call[0]) ? new_difference(a, b, scale, g) : call.by_reference();
}

// --- with parameters -----------------------------------------------------------------------------

struct EluConstants {
    double alpha, scale, rate;
};

template <class T>
PyObject* new_elu(PyArrayObject* g, PyArrayObject* x, const EluConstants& c) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const T *gs = g == nullptr ? nullptr : data<T>(g), *xs = data<T>(x);
    T* to = data<T>(out);
    const T alpha = T(c.alpha), scale = T(c.scale), rate = T(c.rate);
    const std::int64_t size = PyArray_SIZE(x);
    run([=] {
        const auto& f = elementwise_of<T>();
        share(size, HEAVY, [=, &f](std::int64_t i, std::int64_t end) {
            if (gs == nullptr)
                f.elu(end - i, xs + i, alpha, scale, rate, to + i);
            else
                f.elu_backward(end - i, gs + i, xs + i, alpha, scale, rate, to + i);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

// (a, alpha, scale, rate)
PyObject* elu(const Call& call) {
    static Names names{"a", "alpha", "scale", "rate"};
    PyObject* given[4];
    EluConstants c;
    PyArrayObject* x = nullptr;
    if (read_arguments(call, names, given)) x = plain_real(given[0]);
    if (x == nullptr || !as_number(given[1], &c.alpha) || !as_number(given[2], &c.scale) ||
        !as_number(given[3], &c.rate))
        return call.by_reference();
    return PyArray_TYPE(x) == NPY_FLOAT ? new_elu<float>(nullptr, x, c)
                                        : new_elu<double>(nullptr, x, c);
}

// (g, a, alpha, scale, rate)
PyObject* elu_backward(const Call& call) {
    static Names names{"g", "a", "alpha", "scale", "rate"};
    PyObject* given[5];
    EluConstants c;
    PyArrayObject *g = nullptr, *x = nullptr;
    if (read_arguments(call, names, given)) g = plain_real(given[0]);
    if (g != nullptr) x = plain_of(given[1], PyArray_TYPE(g));
    if (x == nullptr || !same_shape(g, x) || !as_number(given[2], &c.alpha) ||
        !as_number(given[3], &c.scale) || !as_number(given[4], &c.rate))
        return call.by_reference();
    return PyArray_TYPE(x) == NPY_FLOAT ? new_elu<float>(g, x, c) : new_elu<double>(g, x, c);
}

template <class T>
PyObject* new_prelu(PyArrayObject* g, PyArrayObject* x, const Scalar<T>& slope) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const T *gs = g == nullptr ? nullptr : data<T>(g), *xs = data<T>(x);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(x);
    run([=] {
        const auto& f = elementwise_of<T>();
        const T by = static_cast<T>(slope.get());
        share(size, LIGHT, [=, &f](std::int64_t i, std::int64_t end) {
            if (gs == nullptr)
                f.prelu(end - i, xs + i, by, to + i);
            else
                f.prelu_backward(end - i, gs + i, xs + i, by, to + i);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

// One slope for all.
PyObject* any_prelu(const Call& call, PyArrayObject* g, PyArrayObject* x, PyObject* slope) {
    if (PyArray_TYPE(x) == NPY_FLOAT) {
        Scalar<float> s;
        return s.read(slope) ? new_prelu(g, x, s) : call.by_reference();
    }
    Scalar<double> s;
    return s.read(slope) ? new_prelu(g, x, s) : call.by_reference();
}

// (a, slope)
PyObject* prelu(const Call& call) {
    PyArrayObject* x = call.has(2) ? plain_real(call[0]) : nullptr;
    return x == nullptr ? call.by_reference() : any_prelu(call, nullptr, x, call[1]);
}

// (g, a, slope)
PyObject* prelu_backward(const Call& call) {
    PyArrayObject* g = call.has(3) ? plain_real(call[0]) : nullptr;
    PyArrayObject* x = g == nullptr ? nullptr : plain_of(call[1], PyArray_TYPE(g));
    if (x == nullptr || !same_shape(g, x)) return call.by_reference();
    return any_prelu(call, g, x, call[2]);
}

template <class T>
PyObject* new_hardtanh_backward(PyArrayObject* g, PyArrayObject* x, double low, double high) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const T *gs = data<T>(g), *xs = data<T>(x);
    T* to = data<T>(out);
    const T from = static_cast<T>(low), below = static_cast<T>(high);
    const std::int64_t size = PyArray_SIZE(x);
    run([=] {
        const auto f = elementwise_of<T>().hardtanh_backward;
        share(size, LIGHT, [=](std::int64_t i, std::int64_t end) {
            f(end - i, gs + i, xs + i, from, below, to + i);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

// (g, a, low, high)
PyObject* hardtanh_backward(const Call& call) {
    PyArrayObject* g = call.has(4) ? plain_real(call[0]) : nullptr;
    PyArrayObject* x = g == nullptr ? nullptr : plain_of(call[1], PyArray_TYPE(g));
    double low, high;
    if (x == nullptr || !same_shape(g, x) || !as_number(call[2], &low) ||
        !as_number(call[3], &high))
        return call.by_reference();
    return PyArray_TYPE(x) == NPY_FLOAT ? new_hardtanh_backward<float>(g, x, low, high)
                                        : new_hardtanh_backward<double>(g, x, low, high);
}

template <class T>
PyObject* new_logits_backward(PyArrayObject* g, PyArrayObject* x, PyArrayObject* y) {
    PyArrayObject* out = new_like(x);
    if (out == nullptr) return nullptr;
    const T *gs = data<T>(g), *xs = data<T>(x), *ys = data<T>(y);
    T* to = data<T>(out);
    const std::int64_t size = PyArray_SIZE(x);
    run([=] {
        const auto f = elementwise_of<T>().logits_backward;
        share(size, HEAVY, [=](std::int64_t i, std::int64_t end) {
            f(end - i, gs + i, xs + i, ys + i, to + i);
        });
    });
    return reinterpret_cast<PyObject*>(out);
}

// (g, x, y)
PyObject* binary_cross_entropy_with_logits_backward(const Call& call) {
    PyArrayObject* g = call.has(3) ? plain_real(call[0]) : nullptr;
    PyArrayObject* x = g == nullptr ? nullptr : plain_of(call[1], PyArray_TYPE(g));
    PyArrayObject* y = g == nullptr ? nullptr : plain_of(call[2], PyArray_TYPE(g));
    if (x == nullptr || y == nullptr || !same_shape(g, x) || !same_shape(g, y))
        return call.by_reference();
    return PyArray_TYPE(x) == NPY_FLOAT ? new_logits_backward<float>(g, x, y)
                                        : new_logits_backward<double>(g, x, y);
}

}  // namespace

#define CHAINRULE_LISTED(WITH, name, value, cost, floats, text) CHAINRULE_METHOD(name, text),
#define CHAINRULE_LISTED_ARITHMETIC(WITH, name, op, text) CHAINRULE_METHOD(name, text),

PyMethodDef elementwise_methods[] = {
    CHAINRULE_UNARIES(CHAINRULE_LISTED, ) CHAINRULE_BINARIES(CHAINRULE_LISTED, )
        CHAINRULE_ARITHMETIC(CHAINRULE_LISTED_ARITHMETIC, )
            CHAINRULE_METHOD(pow, "a to the power b."),
    CHAINRULE_METHOD(squared_error, "scale * the sum of (a - b)^2"),
    CHAINRULE_METHOD(squared_error_backward, "2 scale g (a - b)"),
    CHAINRULE_METHOD(elu, "ELU, SELU and CELU of a."),
    CHAINRULE_METHOD(elu_backward, "g times the slope of elu."),
    CHAINRULE_METHOD(prelu, "a above 0, slope * a below."),
    CHAINRULE_METHOD(prelu_backward, "g times the slope of prelu."),
    CHAINRULE_METHOD(hardtanh_backward, "g between the limits, else 0."),
    CHAINRULE_METHOD(binary_cross_entropy_with_logits_backward, "g (sigmoid(x) - y)"),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
