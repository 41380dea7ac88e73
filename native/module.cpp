// The Python module chainrule.backend._native.
#define CHAINRULE_MODULE
#include "binding.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "blas.hpp"
#include "general.hpp"
#include "shortcut.hpp"
#include "tape.hpp"

namespace chainrule {

PyObject* reference_kernels = nullptr;

PyObject* Call::by_reference() const {
    PyObject* result = nullptr;
    if (taken_by_general(*this, &result)) return result;
    PyObject* function =
        reference_kernels == nullptr ? nullptr : PyDict_GetItemString(reference_kernels, kernel);
    if (function == nullptr) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "no NumPy kernel named %s", kernel);
        return nullptr;
    }
    if (supply != nullptr) supply->fell_back = true;
    return PyObject_Vectorcall(function, args, static_cast<size_t>(count), names);
}

namespace {

PyObject* bind_reference(PyObject*, PyObject* kernels) {
    if (!PyDict_Check(kernels)) {
        PyErr_SetString(PyExc_TypeError, "bind_reference: expected a dictionary of kernels");
        return nullptr;
    }
    Py_INCREF(kernels);
    Py_XSETREF(reference_kernels, kernels);
    Py_RETURN_NONE;
}

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }

PyObject* change_num_threads(PyObject*, PyObject* count) {
    const long n = PyLong_AsLong(count);
    if (n == -1 && PyErr_Occurred()) return nullptr;
    if (n < 1 || n > 1024) {
        PyErr_SetString(PyExc_ValueError,
                        "set_num_threads: the number of threads must be 1 to 1024");
        return nullptr;
    }
    set_num_threads(static_cast<int>(n));
    Py_RETURN_NONE;
}

PyObject* get_isa(PyObject*, PyObject*) { return PyUnicode_FromString(isa_name()); }

PyObject* change_isa(PyObject*, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) return nullptr;
    return PyBool_FromLong(set_isa(text));
}

PyObject* get_winograd(PyObject*, PyObject*) { return PyBool_FromLong(winograd_in_use()); }

PyObject* change_winograd(PyObject*, PyObject* on) {
    const int truth = PyObject_IsTrue(on);
    if (truth < 0) return nullptr;
    use_winograd(truth != 0);
    Py_RETURN_NONE;
}

PyMethodDef own_methods[] = {
    {"bind_reference", bind_reference, METH_O, "Sets the NumPy kernels by name."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads the kernels use."},
    {"set_num_threads", change_num_threads, METH_O, "Sets how many threads the kernels use."},
    {"get_isa", get_isa, METH_NOARGS, "The instruction set in use."},
    {"set_isa", change_isa, METH_O, "Uses another instruction set, if the processor has it."},
    {"get_winograd", get_winograd, METH_NOARGS, "Whether Winograd's algorithm is in use."},
    {"set_winograd", change_winograd, METH_O, "Turns Winograd's algorithm on or off."},
    {nullptr, nullptr, 0, nullptr},
};

// Arrays are made and given up at every step. Memory that goes back to the system in between comes
// again as new pages, which take longer to get than a kernel to fill; so it stays with the process.
void keep_freed_memory() {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}

#define CHAINRULE_EACH(F) F##_methods,
PyMethodDef* const families[] = {CHAINRULE_FAMILIES(CHAINRULE_EACH) cells_methods};
#undef CHAINRULE_EACH
#define CHAINRULE_EACH(WITH, name, ...) #name,
const char* const update_rules[] = {CHAINRULE_RULES(CHAINRULE_EACH, )};
// Kernels whose calls can be parts of chains (chain.hpp).
const char* const elementwise[] = {CHAINRULE_UNARIES(CHAINRULE_EACH, ) CHAINRULE_BINARIES(
    CHAINRULE_EACH, ) CHAINRULE_ARITHMETIC(CHAINRULE_EACH, )};
#undef CHAINRULE_EACH

bool append(PyObject* list, const char* text) {
    PyObject* name = PyUnicode_FromString(text);
    const bool done = list != nullptr && name != nullptr && PyList_Append(list, name) == 0;
    Py_XDECREF(name);
    return done;
}

// A list of names as an attribute of the module.
template <std::size_t N>
bool add_list(PyObject* module, const char* attribute, const char* const (&names)[N]) {
    PyObject* list = PyList_New(0);
    for (const char* name : names)
        if (!append(list, name)) return false;
    return PyModule_AddObject(module, attribute, list) == 0;
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "chainrule.backend._native",
    "Compiled kernels.",
    -1,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace chainrule

PyMODINIT_FUNC PyInit__native(void) {
    using namespace chainrule;
    import_array();
    keep_freed_memory();
    PyObject* module = PyModule_Create(&definition);
    if (module == nullptr) return nullptr;
    PyObject* names = PyList_New(0);
    for (PyMethodDef* family : families) {
        for (PyMethodDef* m = family; m->ml_name != nullptr; ++m)
            if (!append(names, m->ml_name)) return nullptr;
        if (PyModule_AddFunctions(module, family) < 0) return nullptr;
    }
    if (PyModule_AddObject(module, "kernels", names) < 0) return nullptr;
    if (!add_list(module, "update_rules", update_rules)) return nullptr;
    if (!add_list(module, "elementwise", elementwise)) return nullptr;
    if (PyModule_AddFunctions(module, own_methods) < 0) return nullptr;
    if (!make_tape_type()) return nullptr;
    Py_INCREF(reinterpret_cast<PyObject*>(tape_type));
    if (PyModule_AddObject(module, "Tape", reinterpret_cast<PyObject*>(tape_type)) < 0)
        return nullptr;
    if (!add_shortcut_types(module)) return nullptr;
    return module;
}
