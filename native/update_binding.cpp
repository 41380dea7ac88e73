// The twins of backend/numpy_kernels/update.py: all parameters of a step in one call.
#include "arguments.hpp"
#include "kept_update.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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
    Rows(Rows&& other)
        : count(other.count), total(other.total), rows_(other.rows_), copies_(other.copies_) {
        if (other.rows_ == other.few_) {
            std::copy(other.few_, other.few_ + FEW, few_);
            rows_ = few_;
        }
        other.rows_ = other.few_;
        other.copies_ = nullptr;
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

    bool has_copies() const { return copies_ != nullptr; }

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

// The constants by number, by place and by name.
namespace constants {
#define CHAINRULE_EACH(name) name,
enum Number { CHAINRULE_CONSTANTS(CHAINRULE_EACH) COUNT };
#undef CHAINRULE_EACH
}  // namespace constants

#define CHAINRULE_EACH(name) &UpdateConstants::name,
constexpr double UpdateConstants::* PLACES[] = {CHAINRULE_CONSTANTS(CHAINRULE_EACH)};
#undef CHAINRULE_EACH
#define CHAINRULE_EACH(name) #name,
constexpr const char* CONSTANT_NAMES[] = {CHAINRULE_CONSTANTS(CHAINRULE_EACH)};
#undef CHAINRULE_EACH

struct Numbers {
    int count;
    constants::Number at[10];

    template <class... N>
    constexpr explicit Numbers(N... numbers) : count(sizeof...(N)), at{numbers...} {}
};

struct KnownRule {
    const char* name;
    UpdateRule kernel;
    int fewest_states, most_states;
    Numbers constants;
};

#define CHAINRULE_EACH(WITH, name, Struct, fewest, most, ...)  \
    {#name, CHAINRULE_CHOSEN(update, name), fewest, most, [] { \
         using namespace constants;                            \
         return Numbers(__VA_ARGS__);                          \
     }()},
const KnownRule RULES[] = {CHAINRULE_RULES(CHAINRULE_EACH, )};
#undef CHAINRULE_EACH
constexpr int RULE_COUNT = sizeof RULES / sizeof RULES[0];

// The names as Python strings, made at the first call: most are the very strings that are given.
struct Interned {
    PyObject *attribute, *rules[RULE_COUNT], *constants[constants::COUNT];
    bool complete;

    Interned() : attribute(PyUnicode_InternFromString("kernel")), complete(attribute != nullptr) {
        for (int i = 0; i < RULE_COUNT; ++i)
            complete &= (rules[i] = PyUnicode_InternFromString(RULES[i].name)) != nullptr;
        for (int i = 0; i < constants::COUNT; ++i)
            complete &= (constants[i] = PyUnicode_InternFromString(CONSTANT_NAMES[i])) != nullptr;
        PyErr_Clear();
    }
};

const Interned& interned() {
    static const Interned names;
    return names;
}

// The rule that a Python function names as its kernel; null if it names none, or one that is not
// here.
const KnownRule* rule_of(PyObject* function) {
    const Interned& names = interned();
    if (!names.complete || !PyFunction_Check(function)) return nullptr;
    PyObject* attributes = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
    if (attributes == nullptr) return nullptr;
    PyObject* name = PyDict_GetItemWithError(attributes, names.attribute);  // borrowed
    if (name == nullptr || !PyUnicode_Check(name)) return nullptr;
    for (int i = 0; i < RULE_COUNT; ++i)
        if (names.rules[i] == name) return &RULES[i];
    for (const KnownRule& rule : RULES)
        if (PyUnicode_CompareWithASCIIString(name, rule.name) == 0) return &rule;
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

// Whether a rule divides by what this constant makes zero: Python raises then.
bool divides_by_zero(constants::Number which, double value) {
    switch (which) {
        case constants::correction1:
        case constants::slowdown: return value == 0;
        case constants::growth: return value == -1;
        default: return false;
    }
}

// Whether the dictionary has the rule's constants, as numbers, and no others, none of which makes
// Python raise.
bool constants_of(const KnownRule& rule, PyObject* given, UpdateConstants* c) {
    if (rule.constants.count != PyDict_GET_SIZE(given)) return false;
    const Interned& names = interned();
    for (int i = 0; i < rule.constants.count; ++i) {
        const constants::Number which = rule.constants.at[i];
        PyObject* value = PyDict_GetItemWithError(given, names.constants[which]);
        if (value == nullptr) {
            PyErr_Clear();
            return false;
        }
        if (value == Py_None && which != constants::trust) return false;
        if (!number(value, &(c->*PLACES[which])) || divides_by_zero(which, c->*PLACES[which]))
            return false;
        // Bounds of NaN make everything NaN, which comparisons alone do not.
        if (std::isnan(c->*PLACES[which]) && which != constants::trust) return false;
    }
    return true;
}

// RMSprop's states depend on its constants.
bool states_fit(const KnownRule& rule, Py_ssize_t kinds, const UpdateConstants& c) {
    if (kinds < rule.fewest_states || kinds > rule.most_states) return false;
    if (rule.kernel.f != &update_functions<float>::rmsprop) return true;
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
bool row_of(const Call& call, Py_ssize_t count, Py_ssize_t i, bool in_parts, Rows* rows, Row* row) {
    PyObject* states = call[4];
    PyArrayObject* p = as_array(PyList_GET_ITEM(call[1], i));
    PyArrayObject* g = as_array(PyList_GET_ITEM(call[2], i));
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
void update_part(UpdateFunction<T> rule, const Row& r, std::int64_t i, std::int64_t n,
                 UpdateConstants c) {
    c.lr = r.lr;
    T* states[MAX_STATES];
    for (int k = 0; k < MAX_STATES; ++k) states[k] = at<T>(r.states[k], i);
    rule(n, at<T>(r.p, i), at<T>(r.g, i), states, c);
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

// An update as C++ sees it: rows of memory, a rule and its constants.
struct Prepared {
    const KnownRule* rule = nullptr;
    UpdateConstants constants{};
    Rows rows;

    explicit Prepared(Py_ssize_t count) : rows(count) {}

    void run() const {
        const auto of_float = rule->kernel.in(update_of<float>());
        const auto of_double = rule->kernel.in(update_of<double>());
        unlocked(rows.total, [&] {
            for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
                r.is_float ? update_part(of_float, r, i, n, constants)
                           : update_part(of_double, r, i, n, constants);
            });
        });
    }
};

// How many rows an update has; 0 if it is NumPy's. The rule and its constants, if it is not.
std::int64_t read_rule(const Call& call, const KnownRule** rule, UpdateConstants* c) {
    if (!call.has(6) || !PyList_Check(call[1]) || !PyList_Check(call[2]) ||
        !PyList_Check(call[4]) || !PyDict_Check(call[5]))
        return 0;
    const Py_ssize_t count = PyList_GET_SIZE(call[1]), kinds = PyList_GET_SIZE(call[4]);
    const std::int64_t parts = count_rows(call[1], call[3]);
    if (parts == 0 || PyList_GET_SIZE(call[2]) != count || kinds > MAX_STATES) return 0;
    *rule = rule_of(call[0]);
    if (*rule == nullptr || !constants_of(**rule, call[5], c) || !states_fit(**rule, kinds, *c))
        return 0;
    return parts;
}

bool read_rows(const Call& call, Rows* rows) {
    const Py_ssize_t count = PyList_GET_SIZE(call[1]);
    Row whole;
    Rates rates{nullptr, 1, 0, false};
    const bool one = PyFloat_CheckExact(call[3]);
    for (Py_ssize_t i = 0, k = 0; i < count; ++i, k += rates.count) {
        if (!one) rates_of(PyList_GET_ITEM(call[3], i), PyList_GET_ITEM(call[1], i), &rates);
        if (!row_of(call, count, i, rates.count > 1, rows, &whole)) return false;
        if (one) {
            whole.lr = PyFloat_AS_DOUBLE(call[3]);
            (*rows)[k] = whole;
        } else {
            split(whole, rates, &(*rows)[k]);
        }
    }
    return true;
}

// (rule, params, grads, rates, states, constants) -> None
PyObject* write_updates(const Call& call) {
    const auto otherwise = [&] { return PyErr_Occurred() ? nullptr : call.by_reference(); };
    const KnownRule* rule = nullptr;
    UpdateConstants c{};
    const std::int64_t parts = read_rule(call, &rule, &c);
    if (parts == 0) return otherwise();
    Prepared update(static_cast<Py_ssize_t>(parts));
    if (!update.rows) return PyErr_NoMemory();
    update.rule = rule;
    update.constants = c;
    if (!read_rows(call, &update.rows)) return otherwise();
    update.run();
    if (!update.rows.write_back()) return nullptr;
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

bool are_finite(const Rows& rows) {
    std::atomic<bool> fine{true};
    unlocked(rows.total, [&] {
        for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
            for (const std::int64_t end = i + n; i < end && fine; i += BLOCK) {
                const std::int64_t some = end - i < BLOCK ? end - i : BLOCK;
                if (!(r.is_float ? update_of<float>().finite(some, at<float>(r.p, i))
                                 : update_of<double>().finite(some, at<double>(r.p, i))))
                    fine = false;
            }
        });
    });
    return fine;
}

// (arrays) -> bool
PyObject* all_finite(const Call& call) {
    if (!call.has(1) || !PyList_Check(call[0])) return call.by_reference();
    Rows rows(PyList_GET_SIZE(call[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(call[0], false, &rows)) return call.by_reference();
    return PyBool_FromLong(run_with(rows, are_finite));
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

// Numbers the blocks of all rows; how many there are.
std::int64_t number_blocks(Rows* rows) {
    std::int64_t blocks = 0;
    for (Py_ssize_t i = 0; i < rows->count; ++i) {
        (*rows)[i].first_block = blocks;
        blocks += ((*rows)[i].size + BLOCK - 1) / BLOCK;
    }
    return blocks;
}

// The norm of all rows, whose blocks are numbered, of order 2 or infinity; false without memory.
bool norm_of(const Rows& rows, std::int64_t blocks, double order, double* out) {
    double few[64];
    Memory<double> many;
    if (blocks > 64 && !many.get(blocks)) return false;
    double* parts = blocks > 64 ? many.data : few;
    unlocked(rows.total, [&] {
        const auto of_float =
            order == 2 ? update_of<float>().sum_of_squares : update_of<float>().largest;
        const auto of_double =
            order == 2 ? update_of<double>().sum_of_squares : update_of<double>().largest;
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
    *out = order == 2 ? std::sqrt(total) : total;
    return true;
}

// Whether it is an order of norms that the kernels know.
bool order_of(PyObject* o, double* out) {
    if (!PyFloat_Check(o)) return false;
    *out = PyFloat_AS_DOUBLE(o);
    return *out == 2 || *out == INFINITE;
}

// (arrays, order) -> float
PyObject* total_norm(const Call& call) {
    double order, norm;
    if (!call.has(2) || !PyList_Check(call[0]) || !order_of(call[1], &order))
        return call.by_reference();
    Rows rows(PyList_GET_SIZE(call[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(call[0], false, &rows)) return call.by_reference();
    const std::int64_t blocks = number_blocks(&rows);
    return norm_of(rows, blocks, order, &norm) ? PyFloat_FromDouble(norm) : PyErr_NoMemory();
}

// (arrays, order, dtype, total_norm) -> array; the last is the kernel of that name in use
PyObject* norm_of_all(const Call& call) {
    double order;
    if (!call.has(4) || !PyList_Check(call[0]) || !order_of(call[1], &order) ||
        !PyArray_DescrCheck(call[2]) || !PyCFunction_Check(call[3]))
        return call.by_reference();
    const PyArray_Descr* descr = reinterpret_cast<PyArray_Descr*>(call[2]);
    const int type = descr->type_num;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISNBO(descr->byteorder))
        return call.by_reference();
    Rows rows(PyList_GET_SIZE(call[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(call[0], false, &rows)) return call.by_reference();
    const std::int64_t blocks = number_blocks(&rows);
    Kept out;
    if ((out.a = new_array(0, nullptr, type)) == nullptr) return nullptr;
    void* to = PyArray_DATA(out.a);
    const bool done = run_with(rows, [=](const Rows& held) {
        double norm;
        if (!norm_of(held, blocks, order, &norm)) return false;
        if (type == NPY_FLOAT)
            *static_cast<float*>(to) = static_cast<float>(norm);
        else
            *static_cast<double*>(to) = norm;
        return true;
    });
    return done ? out.release() : PyErr_NoMemory();
}

// A number among the arguments, 0 if there is none.
double number_at(const Call& call, Py_ssize_t i) {
    return i < call.count && PyFloat_Check(call[i]) ? PyFloat_AS_DOUBLE(call[i]) : 0;
}

// write(functions, n, elements) for the elements of all rows.
template <class Write>
void write_rows(const Rows& rows, const Write& write) {
    unlocked(rows.total, [&] {
        for_parts(rows, [&](const Row& r, std::int64_t i, std::int64_t n) {
            r.is_float ? write(update_of<float>(), n, at<float>(r.p, i))
                       : write(update_of<double>(), n, at<double>(r.p, i));
        });
    });
}

// The arrays of a call (arrays, number, ...) that writes them all.
template <class Write>
PyObject* write_all(const Call& call, Py_ssize_t numbers, const Write& write) {
    if (!call.has(1 + numbers) || !PyList_Check(call[0])) return call.by_reference();
    for (Py_ssize_t i = 1; i < call.count; ++i)
        if (!PyFloat_Check(call[i])) return call.by_reference();
    Rows rows(PyList_GET_SIZE(call[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(call[0], true, &rows)) return call.by_reference();
    run_with(rows, [write](const Rows& held) { write_rows(held, write); });
    Py_RETURN_NONE;
}

// (arrays, norm, limit, write_scaled) -> None; the last is the kernel of that name in use
PyObject* write_clipped(const Call& call) {
    if (!call.has(4) || !PyList_Check(call[0]) || !PyFloat_Check(call[2]) ||
        !PyCFunction_Check(call[3]))
        return call.by_reference();
    PyArrayObject* norm = plain_real(call[1]);
    if (norm == nullptr || PyArray_NDIM(norm) != 0) return call.by_reference();
    Rows rows(PyList_GET_SIZE(call[0]));
    if (!rows) return PyErr_NoMemory();
    if (!rows_of(call[0], true, &rows)) return call.by_reference();
    const double limit = PyFloat_AS_DOUBLE(call[2]);
    const void* place = PyArray_DATA(norm);
    const bool is_float = PyArray_TYPE(norm) == NPY_FLOAT;
    const bool done = run_with(rows, [=](const Rows& held) {
        const double size = is_float ? static_cast<double>(*static_cast<const float*>(place))
                                     : *static_cast<const double*>(place);
        if (size + 1e-6 == 0) return false;  // Python raises
        const double factor = limit / (size + 1e-6);
        if (!(factor >= 1))
            write_rows(held,
                       [=](const auto& t, std::int64_t n, auto* x) { t.scale(n, x, factor); });
        return true;
    });
    if (!done) return call.by_reference();
    Py_RETURN_NONE;
}

// (arrays, factor) -> None
PyObject* write_scaled(const Call& call) {
    const double factor = number_at(call, 1);
    return write_all(call, 1,
                     [=](const auto& t, std::int64_t n, auto* x) { t.scale(n, x, factor); });
}

// (arrays, low, high) -> None
PyObject* write_clamped(const Call& call) {
    // A bound that is NaN makes everything NaN.
    for (Py_ssize_t i = 1; i < call.count; ++i)
        if (PyFloat_Check(call[i]) && std::isnan(PyFloat_AS_DOUBLE(call[i])))
            return call.by_reference();
    const double low = number_at(call, 1), high = number_at(call, 2);
    return write_all(call, 2,
                     [=](const auto& t, std::int64_t n, auto* x) { t.clamp(n, x, low, high); });
}

}  // namespace

// --- kept updates --------------------------------------------------------------------------------

struct KeptUpdate::Inside {
    Prepared update;
    std::vector<Rates> rates;  // of each parameter, if it has its own
    explicit Inside(Py_ssize_t count) : update(count) {}
};

KeptUpdate::KeptUpdate(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
KeptUpdate::~KeptUpdate() = default;

std::unique_ptr<KeptUpdate> KeptUpdate::of(PyObject* const* args, Py_ssize_t count) {
    const Call call{"write_updates", args, count, nullptr};
    const KnownRule* rule = nullptr;
    UpdateConstants c{};
    const std::int64_t parts = read_rule(call, &rule, &c);
    if (parts == 0) return nullptr;
    auto inside = std::make_unique<Inside>(static_cast<Py_ssize_t>(parts));
    if (!inside->update.rows || !read_rows(call, &inside->update.rows) ||
        inside->update.rows.has_copies())
        return nullptr;
    for (Py_ssize_t i = 0; !PyFloat_CheckExact(call[3]) && i < PyList_GET_SIZE(call[1]); ++i) {
        Rates rates{nullptr, 1, 0, false};
        if (!rates_of(PyList_GET_ITEM(call[3], i), PyList_GET_ITEM(call[1], i), &rates))
            return nullptr;
        inside->rates.push_back(rates);
    }
    inside->update.rule = rule;
    inside->update.constants = c;
    return std::unique_ptr<KeptUpdate>(new KeptUpdate(std::move(inside)));
}

bool KeptUpdate::has_rates() const { return !inside_->rates.empty(); }

bool KeptUpdate::set(PyObject* constants) {
    return constants_of(*inside_->update.rule, constants, &inside_->update.constants);
}

void KeptUpdate::set_rate(double lr) {
    for (Py_ssize_t i = 0; i < inside_->update.rows.count; ++i) inside_->update.rows[i].lr = lr;
}

int KeptUpdate::constant(const char* name) {
    for (int i = 0; i < constants::COUNT; ++i)
        if (std::strcmp(CONSTANT_NAMES[i], name) == 0) return i;
    return -1;
}

bool KeptUpdate::set_constant(int number, double value) {
    inside_->update.constants.*PLACES[number] = value;
    return !divides_by_zero(static_cast<constants::Number>(number), value);
}

void KeptUpdate::run() const {
    Py_ssize_t row = 0;
    for (const Rates& rates : inside_->rates)
        for (std::int64_t i = 0; i < rates.count; ++i) inside_->update.rows[row++].lr = rates[i];
    inside_->update.run();
}

PyMethodDef update_methods[] = {
    CHAINRULE_METHOD(write_updates, "Updates parameters by an optimizer's rule."),
    CHAINRULE_METHOD(all_finite, "Whether no element of any array is NaN or infinite."),
    CHAINRULE_METHOD(total_norm, "The norm of all arrays as if they were one vector."),
    CHAINRULE_METHOD(norm_of_all, "The same as an array."),
    CHAINRULE_METHOD(write_clipped, "Multiplies all arrays by limit / norm where that is below 1."),
    CHAINRULE_METHOD(write_scaled, "Multiplies all arrays by a number, in place."),
    CHAINRULE_METHOD(write_clamped, "Moves all elements into an interval, in place."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
