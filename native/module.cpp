// The Python module chainrule.backend._native.
#define CHAINRULE_MODULE
#include "binding.hpp"

#include <initializer_list>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "blas.hpp"

namespace chainrule {

PyObject* reference_kernels = nullptr;

PyObject* by_reference(const char* name, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) {
    PyObject* kernel =
        reference_kernels == nullptr ? nullptr : PyDict_GetItemString(reference_kernels, name);
    if (kernel == nullptr) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "no NumPy kernel named %s", name);
        return nullptr;
    }
    return PyObject_Vectorcall(kernel, args, static_cast<size_t>(nargs), kwnames);
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

PyObject* get_isa(PyObject*, PyObject*) {
    const char* names[] = {"baseline", "avx2", "avx512"};
    return PyUnicode_FromString(names[static_cast<int>(isa())]);
}

PyObject* change_isa(PyObject*, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (text == nullptr) return nullptr;
    return PyBool_FromLong(set_isa(text));
}

PyMethodDef own_methods[] = {
    {"bind_reference", bind_reference, METH_O, "Sets the NumPy kernels by name."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads the kernels use."},
    {"set_num_threads", change_num_threads, METH_O, "Sets how many threads the kernels use."},
    {"get_isa", get_isa, METH_NOARGS, "The instruction set in use."},
    {"set_isa", change_isa, METH_O, "Uses another instruction set, if the processor has it."},
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
    for (PyMethodDef* family :
         {conv_methods, elementwise_methods, gather_methods, linear_methods, norm_methods,
          pool_methods, recurrent_methods, softmax_methods, update_methods}) {
        for (PyMethodDef* m = family; m->ml_name != nullptr; ++m) {
            PyObject* name = PyUnicode_FromString(m->ml_name);
            if (name == nullptr || PyList_Append(names, name) < 0) return nullptr;
            Py_DECREF(name);
        }
        if (PyModule_AddFunctions(module, family) < 0) return nullptr;
    }
    if (PyModule_AddObject(module, "kernels", names) < 0) return nullptr;
    if (PyModule_AddFunctions(module, own_methods) < 0) return nullptr;
    return module;
}
