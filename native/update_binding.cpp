// The twins of backend/numpy_kernels/update.py: all parameters of a step in one call.
#include <atomic>
#include <cmath>
#include <limits>

#include "arguments.hpp"

namespace chainrule {
namespace {

// --- arrays --------------------------------------------------------------------------------------

// A parameter (or what has one learning rate of it) with its gradient and states, or one array
// alone, as p.
struct Row {
    std::int64_t size, first_block;
    bool is_float;
    void* p;
    void* g;
    void* states[MAX_STATES];
    double lr;
};

constexpr std::int64_t UNLOCKED = 16384;  // from so many elements on, other Python threads may run
constexpr std::int64_t BLOCK = 8192;      // the elements of a partial sum
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Rows, in the frame of the caller if they are few.
class Rows {
  public:
    explicit Rows(Py_ssize_t count) : count(count) {
        if (count > FEW) rows_ = static_cast<Row*>(PyMem_Calloc(count, sizeof(Row)));
    }
    ~Rows() {
        if (rows_ != few_) PyMem_Free(rows_);
        Py_XDECREF(copies_);
    }
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;

    explicit operator bool() const { return rows_ != nullptr; }
    Row& operator[](Py_ssize_t i) { return rows_[i]; }
    const Row* begin() const { return rows_; }
    const Row* end() const { return rows_ + count; }

    // A copy of an array in this order, which lives as long as the rows do.
    PyArrayObject* copy(PyArrayObject* a, NPY_ORDER order, bool write_back) {
        if (copies_ == nullptr) copies_ = PyList_New(0);
        PyObject* copy = copies_ == nullptr ? nullptr : PyArray_NewCopy(a, order);
        PyObject* original = write_back ? reinterpret_cast<PyObject*>(a) : Py_None;
        PyObject* pair = copy == nullptr ? nullptr : PyTuple_Pack(2, copy, original);
        const bool kept = pair != nullptr && PyList_Append(copies_, pair) == 0;
        Py_XDECREF(pair);
        Py_XDECREF(copy);
        return kept ? reinterpret_cast<PyArrayObject*>(copy) : nullptr;
    }

    // Writes what copies hold to where they came from.
    bool write_back() {
        for (Py_ssize_t i = 0; copies_ != nullptr && i < PyList_GET_SIZE(copies_); ++i) {
            PyObject* pair = PyList_GET_ITEM(copies_, i);
            PyArrayObject* original = as_array(PyTuple_GET_ITEM(pair, 1));
            PyArrayObject* copy = as_array(PyTuple_GET_ITEM(pair, 0));
            if (original != nullptr && PyArray_CopyInto(original, copy) < 0) return false;
        }
        return true;
    }

    const Py_ssize_t count;
    std::int64_t total = 0;

  private:
    static constexpr Py_ssize_t FEW = 32;
    Row few_[FEW];
    Row* rows_ = few_;
    PyObject* copies_ = nullptr;
};

// Where a part that ends at x ends in an array of n elements: at a vector's end, so that which
// elements make up a vector, and with it their rounding, does not depend on the number of threads.
inline std::int64_t cut(std::int64_t x, std::int64_t n) {
    return x <= 0 ? 0 : x >= n ? n : x / 64 * 64;
}

// Calls step(row, begin, n) for parts of rows, shared among the threads as if all were one array.
template <class Step>
void for_parts(const Rows& rows, const Step& step) {
    parallel_for(rows.total, GRAIN, [&](std::int64_t begin, std::int64_t end) {
        std::int64_t start = 0;
        for (const Row& row : rows) {
            const std::int64_t from = cut(begin - start, row.size), to = cut(end - start, row.size);
            if (from < to) step(row, from, to - from);
            start += row.size;
        }
    });
}

template <class T>
T* at(void* base, std::int64_t i) {
    return base == nullptr ? nullptr : static_cast<T*>(base) + i;
}

// Lets other Python threads run meanwhile, if it takes long.
template <class Work>
void unlocked(std::int64_t total, const Work& work) {
    if (total < UNLOCKED) return work();
    WithoutGil released;
    work();
}

// --- the rules by name ---------------------------------------------------------------------------

struct Constant {
    const char* name;
    double UpdateConstants::* place;
};

// A rule's function, the numbers of states that it may have, and all constants that it is given.
struct KnownRule {
    const char *module, *name;
    Rule rule;
    int fewest_states, most_states;
    Constant constants[10];
};

#define C(name) {#name, &UpdateConstants::name}
#define DECAY C(weight_decay), C(maximize)
#define MOMENTS C(beta1), C(beta2), C(eps), C(decoupled), C(correction1), C(correction2), DECAY
#define SGD_CONSTANTS C(momentum), C(dampening), C(nesterov), DECAY
#define LIMITS C(etaminus), C(etaplus), C(smallest), C(largest), C(maximize)

const KnownRule RULES[] = {
    {"chainrule.optim.sgd", "SGD.rule", Rule::sgd, 0, 1, {SGD_CONSTANTS}},
    {"chainrule.optim.momentum", "SGDW.rule", Rule::sgdw, 0, 1, {SGD_CONSTANTS}},
    {"chainrule.optim.momentum",
     "AveragedMomentum.rule",
     Rule::averaged_momentum,
     1,
     1,
     {C(momentum), DECAY}},
    {"chainrule.optim.momentum", "Lion.rule", Rule::lion, 1, 1, {C(beta1), C(beta2), DECAY}},
    {"chainrule.optim.adam", "Adam.rule", Rule::adam, 2, 3, {MOMENTS, C(eps_in_root)}},
    {"chainrule.optim.adam", "Adamax.rule", Rule::adamax, 2, 2, {MOMENTS}},
    {"chainrule.optim.adam", "NAdam.rule", Rule::nadam, 2, 2, {MOMENTS, C(of_g), C(of_m)}},
    {"chainrule.optim.adam", "RAdam.rule", Rule::radam, 2, 2, {MOMENTS, C(trust)}},
    {"chainrule.optim.adaptive",
     "Adagrad.rule",
     Rule::adagrad,
     1,
     1,
     {C(eps), C(slowdown), C(eps_in_root), DECAY}},
    {"chainrule.optim.adaptive",
     "RMSprop.rule",
     Rule::rmsprop,
     1,
     3,
     {C(alpha), C(eps), C(momentum), C(centered), C(eps_in_root), DECAY}},
    {"chainrule.optim.adaptive", "Adadelta.rule", Rule::adadelta, 2, 2, {C(rho), C(eps), DECAY}},
    {"chainrule.optim.asgd", "ASGD.rule", Rule::asgd, 1, 1, {C(lambd), C(eta), C(mu), DECAY}},
    {"chainrule.optim.rprop", "Rprop.rule", Rule::rprop, 2, 2, {LIMITS}},
    {"chainrule.optim.rprop_variants", "RpropMinus.rule", Rule::rprop_minus, 2, 2, {LIMITS}},
    {"chainrule.optim.rprop_variants", "RpropPlus.rule", Rule::rprop_plus, 3, 3, {LIMITS, C(undo)}},
    {"chainrule.optim.quickprop",
     "Quickprop.rule",
     Rule::quickprop,
     2,
     2,
     {C(growth), C(gradient_term), DECAY}},
    {"chainrule.optim.adaptive_rates",
     "DeltaDelta.rule",
     Rule::delta_delta,
     2,
     2,
     {C(gamma), DECAY}},
    {"chainrule.optim.adaptive_rates",
     "DeltaBarDelta.rule",
     Rule::delta_bar_delta,
     2,
     2,
     {C(kappa), C(phi), C(theta), DECAY}},
};
constexpr int MAX_CONSTANTS = sizeof(KnownRule::constants) / sizeof(Constant);
constexpr int RULE_COUNT = sizeof RULES / sizeof RULES[0];

// The functions that were recognized (references to them are kept) and the names of their
// constants as Python strings: neither is looked at twice.
struct Recognized {
    PyObject* function = nullptr;
    const KnownRule* rule = nullptr;
    PyObject* names[MAX_CONSTANTS] = {};
};
Recognized recognized[RULE_COUNT];
int recognized_count = 0;

bool has_text(PyObject* object, const char* attribute, const char* text) {
    PyObject* value = PyObject_GetAttrString(object, attribute);
    const bool same = value != nullptr && PyUnicode_Check(value) &&
                      PyUnicode_CompareWithASCIIString(value, text) == 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return same;
}

// Null if the function is not one of chainrule's rules.
const Recognized* recognize(PyObject* function) {
    for (int i = 0; i < recognized_count; ++i)
        if (recognized[i].function == function) return &recognized[i];
    if (recognized_count == RULE_COUNT) return nullptr;
    for (const KnownRule& rule : RULES) {
        if (!has_text(function, "__qualname__", rule.name) ||
            !has_text(function, "__module__", rule.module))
            continue;
        Recognized r;
        r.rule = &rule;
        for (int i = 0; i < MAX_CONSTANTS && rule.constants[i].name != nullptr; ++i) {
            r.names[i] = PyUnicode_InternFromString(rule.constants[i].name);
            if (r.names[i] == nullptr) {
                PyErr_Clear();
                return nullptr;
            }
        }
        Py_INCREF(function);
        r.function = function;
        recognized[recognized_count] = r;
        return &recognized[recognized_count++];
    }
    return nullptr;
}

// A number or truth; None is NaN.
bool number(PyObject* value, double* out) {
    if (PyFloat_Check(value)) {
        *out = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (value == Py_None) {
        *out = std::numeric_limits<double>::quiet_NaN();
        return true;
    }
    if (!PyLong_Check(value)) return false;
    *out = PyLong_AsDouble(value);
    if (*out != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

// Whether the dictionary has the rule's constants, as numbers, and no others.
bool constants_of(const Recognized& r, PyObject* given, UpdateConstants* c) {
    Py_ssize_t found = 0;
    c->undo = 1;  // what RpropPlus is not given
    for (int i = 0; i < MAX_CONSTANTS && r.names[i] != nullptr; ++i) {
        PyObject* value = PyDict_GetItemWithError(given, r.names[i]);
        double UpdateConstants::* place = r.rule->constants[i].place;
        if (value == nullptr) {
            if (place == &UpdateConstants::undo) continue;
            PyErr_Clear();
            return false;
        }
        if (value == Py_None && place != &UpdateConstants::trust) return false;
        if (!number(value, &(c->*place))) return false;
        ++found;
    }
    return found == PyDict_GET_SIZE(given);
}

// RMSprop's states depend on its constants.
bool states_fit(const KnownRule& rule, Py_ssize_t kinds, const UpdateConstants& c) {
    if (kinds < rule.fewest_states || kinds > rule.most_states) return false;
    if (rule.rule != Rule::rmsprop) return true;
    return kinds == 1 + (c.momentum != 0) + (c.centered != 0);
}

// --- write_updates -------------------------------------------------------------------------------

enum Order { ROWS_FIRST, COLUMNS_FIRST };

bool is_ordered(PyArrayObject* a, Order order) {
    return PyArray_ISALIGNED(a) && PyArray_ISNOTSWAPPED(a) &&
           (order == ROWS_FIRST ? PyArray_IS_C_CONTIGUOUS(a) : PyArray_IS_F_CONTIGUOUS(a));
}

// The memory of an array in this order: its own, or that of a copy. Null if there is an error.
void* ordered(PyArrayObject* a, Order order, bool write, Rows* rows) {
    if (!is_ordered(a, order))
        a = rows->copy(a, order == ROWS_FIRST ? NPY_CORDER : NPY_FORTRANORDER, write);
    return a == nullptr ? nullptr : PyArray_DATA(a);
}

// The learning rates of a parameter: one, or one for each entry of its first dimension.
struct Rates {
    const char* first;
    std::int64_t count, stride;
    bool is_float;

    double operator[](std::int64_t i) const {
        const char* place = first + i * stride;
        return is_float ? static_cast<double>(*reinterpret_cast<const float*>(place))
                        : *reinterpret_cast<const double*>(place);
    }
};

// Whether an array, as large as its parameter, holds such rates: repeated along other dimensions.
bool rates_of(PyObject* o, PyObject* param, Rates* out) {
    PyArrayObject *a = as_array(o), *p = as_array(param);
    if (a == nullptr || p == nullptr || !is_real(a) || !PyArray_ISALIGNED(a) ||
        PyArray_TYPE(a) != PyArray_TYPE(p) || !same_shape(a, p) || PyArray_SIZE(a) == 0)
        return false;
    for (int i = 1; i < PyArray_NDIM(a); ++i)
        if (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) != 0) return false;
    const bool one = PyArray_NDIM(a) == 0 || PyArray_STRIDE(a, 0) == 0;
    *out = {PyArray_BYTES(a), one ? 1 : PyArray_DIM(a, 0), one ? 0 : PyArray_STRIDE(a, 0),
            PyArray_TYPE(a) == NPY_FLOAT};
    return true;
}

// The i-th of `count` parameters as a row; rows first, if parts of it have rates of their own.
bool row_of(PyObject* const* args, Py_ssize_t count, Py_ssize_t i, bool in_parts, Rows* rows,
            Row* row) {
    PyObject* states = args[4];
    PyArrayObject* p = as_array(PyList_GET_ITEM(args[1], i));
    PyArrayObject* g = as_array(PyList_GET_ITEM(args[2], i));
    if (p == nullptr || g == nullptr || !is_real(p) || !PyArray_ISWRITEABLE(p)) return false;
    const int type = PyArray_TYPE(p);
    if (PyArray_TYPE(g) != type || !PyArray_ISNOTSWAPPED(g) || !same_shape(p, g)) return false;
    const bool columns = PyArray_IS_F_CONTIGUOUS(p) && !PyArray_IS_C_CONTIGUOUS(p) && !in_parts;
    const Order order = columns ? COLUMNS_FIRST : ROWS_FIRST;
    *row = {PyArray_SIZE(p),
            0,
            type == NPY_FLOAT,
            ordered(p, order, true, rows),
            ordered(g, order, false, rows),
            {},
            0};
    if (row->p == nullptr || row->g == nullptr) return false;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(states); ++k) {
        PyObject* column = PyList_GET_ITEM(states, k);
        if (!PyList_Check(column) || PyList_GET_SIZE(column) != count) return false;
        PyArrayObject* s = as_array(PyList_GET_ITEM(column, i));
        if (s == nullptr || PyArray_TYPE(s) != type || !PyArray_ISNOTSWAPPED(s) ||
            !PyArray_ISWRITEABLE(s) || !same_shape(s, p))
            return false;
        row->states[k] = ordered(s, order, true, rows);
        if (row->states[k] == nullptr) return false;
    }
    rows->total += row->size;
    return true;
}

// Equal parts of a parameter as rows, each with its rate.
void split(const Row& whole, const Rates& rates, Row* rows) {
    const std::int64_t size = whole.size / rates.count, bytes = size * (whole.is_float ? 4 : 8);
    for (std::int64_t i = 0; i < rates.count; ++i) {
        const auto part = [=](void* x) {
            return x == nullptr ? nullptr : static_cast<char*>(x) + i * bytes;
        };
        rows[i] = {size, 0, whole.is_float, part(whole.p), part(whole.g), {}, rates[i]};
        for (int k = 0; k < MAX_STATES; ++k) rows[i].states[k] = part(whole.states[k]);
    }
}

template <class T>
void update_part(const update_functions<T>& t, Rule rule, const Row& r, std::int64_t i,
                 std::int64_t n, UpdateConstants c) {
    c.lr = r.lr;
    T* states[MAX_STATES];
    for (int k = 0; k < MAX_STATES; ++k) states[k] = at<T>(r.states[k], i);
    t.apply(rule, n, at<T>(r.p, i), at<T>(r.g, i), states, c);
}

constexpr std::int64_t MOST_RATES = 1 << 16;  // more are NumPy's: most have one element each

// How many rows a step has: parameters, or parts of them with a rate of their own; 0 if the rates
// are such that NumPy is to see to them.
std::int64_t count_rows(PyObject* params, PyObject* given) {
    const Py_ssize_t count = PyList_GET_SIZE(params);
    if (PyFloat_CheckExact(given)) return count;
    if (!PyList_Check(given) || PyList_GET_SIZE(given) != count) return 0;
    std::int64_t total = 0;
    Rates rates;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!rates_of(PyList_GET_ITEM(given, i), PyList_GET_ITEM(params, i), &rates)) return 0;
        total += rates.count;
    }
    return total <= MOST_RATES ? total : 0;
}

// (rule, params, grads, rates, states, constants) -> None
PyObject* write_updates(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] {
        return PyErr_Occurred() ? nullptr : by_reference("write_updates", args, nargs, kwnames);
    };
    if (nargs != 6 || kwnames != nullptr || !PyList_Check(args[1]) || !PyList_Check(args[2]) ||
        !PyList_Check(args[4]) || !PyDict_Check(args[5]))
        return otherwise();
    const Py_ssize_t count = PyList_GET_SIZE(args[1]), kinds = PyList_GET_SIZE(args[4]);
    const std::int64_t parts = count_rows(args[1], args[3]);
    if (parts == 0 || PyList_GET_SIZE(args[2]) != count || kinds > MAX_STATES) return otherwise();
    const Recognized* known = recognize(args[0]);
    UpdateConstants c{};
    if (known == nullptr || !constants_of(*known, args[5], &c) ||
        !states_fit(*known->rule, kinds, c))
        return otherwise();
    Rows rows(static_cast<Py_ssize_t>(parts));
    if (!rows) return PyErr_NoMemory();
    Row whole;
    Rates rates{nullptr, 1, 0, false};
    const bool one = PyFloat_CheckExact(args[3]);
    for (Py_ssize_t i = 0, k = 0; i < count; ++i, k += rates.count) {
        if (!one) rates_of(PyList_GET_ITEM(args[3], i), PyList_GET_ITEM(args[1], i), &rates);
        if (!row_of(args, count, i, rates.count > 1, &rows, &whole)) return otherwise();
        if (one) {
            whole.lr = PyFloat_AS_DOUBLE(args[3]);
            rows[k] = whole;
        } else {
            split(whole, rates, &rows[k]);
        }
    }
    const Rule rule = known->rule->rule;
    const update_table& t = update();
    unlocked(rows.total, [&] {
        for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
            r.is_float ? update_part(t.f, rule, r, i, n, c) : update_part(t.d, rule, r, i, n, c);
        });
    });
    if (!rows.write_back()) return nullptr;
    Py_RETURN_NONE;
}

// --- gradients -----------------------------------------------------------------------------------

// Whether the arrays of a list, now rows, are such that the kernels can take them.
bool rows_of(PyObject* list, bool writable, Rows* rows) {
    for (Py_ssize_t i = 0; i < rows->count; ++i) {
        PyArrayObject* a = as_array(PyList_GET_ITEM(list, i));
        if (a == nullptr || !is_real(a) || (writable && !PyArray_ISWRITEABLE(a))) return false;
        // Of elements alone the order does not matter.
        if (!is_ordered(a, ROWS_FIRST) && !is_ordered(a, COLUMNS_FIRST)) return false;
        const bool is_float = PyArray_TYPE(a) == NPY_FLOAT;
        (*rows)[i] = {PyArray_SIZE(a), 0, is_float, PyArray_DATA(a), nullptr, {}, 0};
        rows->total += PyArray_SIZE(a);
    }
    return true;
}

// (arrays) -> bool
PyObject* all_finite(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("all_finite", args, nargs, kwnames); };
    if (nargs != 1 || kwnames != nullptr || !PyList_Check(args[0])) return otherwise();
    Rows rows(PyList_GET_SIZE(args[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(args[0], false, &rows)) return otherwise();
    std::atomic<bool> fine{true};
    const update_table& t = update();
    unlocked(rows.total, [&] {
        for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
            for (const std::int64_t end = i + n; i < end && fine; i += BLOCK) {
                const std::int64_t some = end - i < BLOCK ? end - i : BLOCK;
                if (!(r.is_float ? t.f.finite(some, at<float>(r.p, i))
                                 : t.d.finite(some, at<double>(r.p, i))))
                    fine = false;
            }
        });
    });
    return PyBool_FromLong(fine);
}

// part(row, begin, n) of each block of each row: the same for any number of threads.
template <class Part>
void for_blocks(const Rows& rows, std::int64_t blocks, double* parts, const Part& part) {
    const std::int64_t grain = rows.total < 2 * GRAIN ? blocks : GRAIN / BLOCK;
    parallel_for(blocks, grain, [&](std::int64_t begin, std::int64_t end) {
        for (const Row& row : rows) {
            const std::int64_t count = (row.size + BLOCK - 1) / BLOCK;
            for (std::int64_t b = 0; b < count; ++b) {
                const std::int64_t number = row.first_block + b, left = row.size - b * BLOCK;
                if (number < begin || number >= end) continue;
                parts[number] = part(row, b * BLOCK, left < BLOCK ? left : BLOCK);
            }
        }
    });
}

// (arrays, order) -> float
PyObject* total_norm(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("total_norm", args, nargs, kwnames); };
    if (nargs != 2 || kwnames != nullptr || !PyList_Check(args[0]) || !PyFloat_Check(args[1]))
        return otherwise();
    const double order = PyFloat_AS_DOUBLE(args[1]);
    if (order != 2 && order != INFINITE) return otherwise();
    Rows rows(PyList_GET_SIZE(args[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(args[0], false, &rows)) return otherwise();
    std::int64_t blocks = 0;
    for (Py_ssize_t i = 0; i < rows.count; ++i) {
        rows[i].first_block = blocks;
        blocks += (rows[i].size + BLOCK - 1) / BLOCK;
    }
    double few[64];
    double* parts = few;
    if (blocks > 64) parts = static_cast<double*>(PyMem_Calloc(blocks, sizeof(double)));
    if (parts == nullptr) return PyErr_NoMemory();
    unlocked(rows.total, [&] {
        const auto of_float = order == 2 ? update().f.sum_of_squares : update().f.largest;
        const auto of_double = order == 2 ? update().d.sum_of_squares : update().d.largest;
        for_blocks(rows, blocks, parts, [&](const Row& r, std::int64_t i, std::int64_t n) {
            return r.is_float ? of_float(n, at<float>(r.p, i)) : of_double(n, at<double>(r.p, i));
        });
    });
    double total = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
        if (order == 2)
            total += parts[b];
        else if (!(parts[b] <= total))  // NaN stays
            total = parts[b];
        if (total != total) break;
    }
    if (parts != few) PyMem_Free(parts);
    return PyFloat_FromDouble(order == 2 ? std::sqrt(total) : total);
}

// The arrays of a call (arrays, number, ...) that writes them all.
template <class Write>
PyObject* write_all(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                    Py_ssize_t numbers, const Write& write) {
    const auto otherwise = [&] { return by_reference(name, args, nargs, kwnames); };
    if (nargs != 1 + numbers || kwnames != nullptr || !PyList_Check(args[0])) return otherwise();
    for (Py_ssize_t i = 1; i < nargs; ++i)
        if (!PyFloat_Check(args[i])) return otherwise();
    Rows rows(PyList_GET_SIZE(args[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(args[0], true, &rows)) return otherwise();
    const update_table& t = update();
    unlocked(rows.total, [&] {
        for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
            r.is_float ? write(t.f, n, at<float>(r.p, i)) : write(t.d, n, at<double>(r.p, i));
        });
    });
    Py_RETURN_NONE;
}

// (arrays, factor) -> None
PyObject* write_scaled(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    return write_all(
        "write_scaled", args, nargs, kwnames, 1,
        [&](const auto& t, std::int64_t n, auto* x) { t.scale(n, x, PyFloat_AS_DOUBLE(args[1])); });
}

// (arrays, low, high) -> None
PyObject* write_clamped(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    // A bound that is NaN makes everything NaN.
    for (Py_ssize_t i = 1; i < nargs; ++i)
        if (PyFloat_Check(args[i]) && std::isnan(PyFloat_AS_DOUBLE(args[i])))
            return by_reference("write_clamped", args, nargs, kwnames);
    return write_all("write_clamped", args, nargs, kwnames, 2,
                     [&](const auto& t, std::int64_t n, auto* x) {
                         t.clamp(n, x, PyFloat_AS_DOUBLE(args[1]), PyFloat_AS_DOUBLE(args[2]));
                     });
}

}  // namespace

PyMethodDef update_methods[] = {
    CHAINRULE_METHOD(write_updates, "Updates parameters by an optimizer's rule."),
    CHAINRULE_METHOD(all_finite, "Whether no element of any array is NaN or infinite."),
    CHAINRULE_METHOD(total_norm, "The norm of all arrays as if they were one vector."),
    CHAINRULE_METHOD(write_scaled, "Multiplies all arrays by a number, in place."),
    CHAINRULE_METHOD(write_clamped, "Moves all elements into an interval, in place."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
