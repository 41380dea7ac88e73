// write_updates and all_finite: the twins of backend/numpy_kernels/update.py.
#include "binding.hpp"

namespace chainrule {
namespace {

constexpr int MAX_STATES = 4;

// One parameter with its gradient and states, all of one dtype and size.
struct Row {
    std::int64_t size;
    void* p;
    void* g;
    void* states[MAX_STATES];
};

bool number(PyObject* constants, const char* name, double* out) {
    PyObject* value = PyDict_GetItemString(constants, name);
    if (value == nullptr || !(PyFloat_CheckExact(value) || PyLong_CheckExact(value))) return false;
    *out = PyFloat_AsDouble(value);
    return !PyErr_Occurred();
}

bool truth(PyObject* constants, const char* name, bool* out) {
    PyObject* value = PyDict_GetItemString(constants, name);
    if (value == nullptr) {
        *out = false;
        return true;
    }
    if (!PyBool_Check(value)) return false;
    *out = value == Py_True;
    return true;
}

enum class Rule { none, sgd, adam };

Rule rule_of(PyObject* function) {
    PyObject* name = PyObject_GetAttrString(function, "__qualname__");
    if (name == nullptr) {
        PyErr_Clear();
        return Rule::none;
    }
    Rule rule = Rule::none;
    if (PyUnicode_Check(name)) {
        if (PyUnicode_CompareWithASCIIString(name, "SGD.rule") == 0) rule = Rule::sgd;
        if (PyUnicode_CompareWithASCIIString(name, "Adam.rule") == 0) rule = Rule::adam;
    }
    Py_DECREF(name);
    return rule;
}

// The rows of the update, if all arrays are of the kind that the kernels take.
bool rows_of(PyObject* params, PyObject* grads, PyObject* states, int type, Row* rows) {
    const Py_ssize_t count = PyList_GET_SIZE(params), kinds = PyList_GET_SIZE(states);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyArrayObject* p = as_array(PyList_GET_ITEM(params, i));
        PyArrayObject* g = as_array(PyList_GET_ITEM(grads, i));
        if (p == nullptr || g == nullptr || PyArray_TYPE(p) != type || PyArray_TYPE(g) != type ||
            !is_plain_writable(p) || !is_plain(g) || PyArray_SIZE(p) != PyArray_SIZE(g))
            return false;
        rows[i] = {PyArray_SIZE(p), PyArray_DATA(p), PyArray_DATA(g), {}};
        for (Py_ssize_t k = 0; k < kinds; ++k) {
            PyObject* column = PyList_GET_ITEM(states, k);
            if (!PyList_Check(column) || PyList_GET_SIZE(column) != count) return false;
            PyArrayObject* s = as_array(PyList_GET_ITEM(column, i));
            if (s == nullptr || PyArray_TYPE(s) != type || !is_plain_writable(s) ||
                PyArray_SIZE(s) != rows[i].size)
                return false;
            rows[i].states[k] = PyArray_DATA(s);
        }
    }
    return true;
}

template <class T>
T* at(void* base, std::int64_t i) {
    return base == nullptr ? nullptr : static_cast<T*>(base) + i;
}

// Small parameters one after the other; large ones shared among the threads.
template <class Step>
void for_all(const Row* rows, Py_ssize_t count, const Step& step) {
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Row& row = rows[i];
        parallel_for(row.size, GRAIN,
                     [&](std::int64_t begin, std::int64_t end) { step(row, begin, end - begin); });
    }
}

template <class T, class Sgd>
void run_sgd(const Row* rows, Py_ssize_t count, const SgdConstants& c, Sgd sgd) {
    for_all(rows, count, [&](const Row& r, std::int64_t i, std::int64_t n) {
        sgd(n, at<T>(r.p, i), at<T>(r.g, i), at<T>(r.states[0], i), c);
    });
}

template <class T, class Adam>
void run_adam(const Row* rows, Py_ssize_t count, const AdamConstants& c, Adam adam) {
    for_all(rows, count, [&](const Row& r, std::int64_t i, std::int64_t n) {
        adam(n, at<T>(r.p, i), at<T>(r.g, i), at<T>(r.states[0], i), at<T>(r.states[1], i),
             at<T>(r.states[2], i), c);
    });
}

// (rule, params, grads, rates, states, constants) -> None
PyObject* write_updates(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("write_updates", args, nargs, kwnames); };
    if (nargs != 6 || kwnames != nullptr || !PyList_Check(args[1]) || !PyList_Check(args[2]) ||
        !PyFloat_CheckExact(args[3]) || !PyList_Check(args[4]) || !PyDict_Check(args[5]))
        return otherwise();
    const Rule rule = rule_of(args[0]);
    const Py_ssize_t count = PyList_GET_SIZE(args[1]), kinds = PyList_GET_SIZE(args[4]);
    if (rule == Rule::none || count == 0 || PyList_GET_SIZE(args[2]) != count || kinds > MAX_STATES)
        return otherwise();
    PyArrayObject* first = as_array(PyList_GET_ITEM(args[1], 0));
    if (first == nullptr || !is_real(first)) return otherwise();
    const int type = PyArray_TYPE(first);
    const double lr = PyFloat_AS_DOUBLE(args[3]);
    PyObject* k = args[5];

    SgdConstants s{};
    AdamConstants a{};
    s.lr = a.lr = lr;
    bool known;
    if (rule == Rule::sgd)
        known = kinds <= 1 && number(k, "momentum", &s.momentum) &&
                number(k, "dampening", &s.dampening) && number(k, "weight_decay", &s.weight_decay) &&
                truth(k, "nesterov", &s.nesterov) && truth(k, "maximize", &s.maximize);
    else
        known = (kinds == 2 || kinds == 3) && number(k, "beta1", &a.beta1) &&
                number(k, "beta2", &a.beta2) && number(k, "eps", &a.eps) &&
                number(k, "weight_decay", &a.weight_decay) &&
                number(k, "correction1", &a.correction1) &&
                number(k, "correction2", &a.correction2) && truth(k, "decoupled", &a.decoupled) &&
                truth(k, "maximize", &a.maximize) && truth(k, "eps_in_root", &a.eps_in_root);
    if (!known) {
        PyErr_Clear();
        return otherwise();
    }
    Row few[64];
    Row* rows = count <= 64 ? few : static_cast<Row*>(PyMem_Malloc(count * sizeof(Row)));
    if (rows == nullptr) return PyErr_NoMemory();
    const bool fits = rows_of(args[1], args[2], args[4], type, rows);
    if (fits) {
        const update_table& t = update();
        WithoutGil released;
        if (rule == Rule::sgd)
            type == NPY_FLOAT ? run_sgd<float>(rows, count, s, t.sgd_f)
                              : run_sgd<double>(rows, count, s, t.sgd_d);
        else
            type == NPY_FLOAT ? run_adam<float>(rows, count, a, t.adam_f)
                              : run_adam<double>(rows, count, a, t.adam_d);
    }
    if (rows != few) PyMem_Free(rows);
    if (!fits) return otherwise();
    Py_RETURN_NONE;
}

// (arrays) -> bool
PyObject* all_finite(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const auto otherwise = [&] { return by_reference("all_finite", args, nargs, kwnames); };
    if (nargs != 1 || kwnames != nullptr || !PyList_Check(args[0])) return otherwise();
    const update_table& t = update();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[0]); ++i) {
        PyArrayObject* a = as_array(PyList_GET_ITEM(args[0], i));
        if (a == nullptr || !is_real(a) || !is_plain(a)) return otherwise();
        const std::int64_t n = PyArray_SIZE(a);
        const bool fine = PyArray_TYPE(a) == NPY_FLOAT ? t.finite_f(n, data<float>(a))
                                                       : t.finite_d(n, data<double>(a));
        if (!fine) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

}  // namespace

PyMethodDef update_methods[] = {
    CHAINRULE_METHOD(write_updates, "Updates parameters by an optimizer's rule."),
    CHAINRULE_METHOD(all_finite, "Whether no element of any array is NaN or infinite."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
