// Programs that are repeated: the calls of kernels with their arguments, in memory of their own.
#pragma once

#include <vector>

#include "keep.hpp"

namespace chainrule {

// Where arrays for results come from while a call of a tape runs in this thread.
struct Supply {
    bool collects;                       // new arrays, which are noted; else those that were noted
    std::vector<PyArrayObject*> arrays;  // in the order in which they are asked for
    std::size_t next = 0;
    bool fell_back = false;  // to the NumPy kernel
    bool exhausted = false;  // an array was asked for that was not noted
    bool keeps = false;      // functions are kept, and not run
    bool lasting = true;     // nothing was made of arguments that a kept function would not see
    std::size_t ran = 0;     // functions that could have been kept
    std::vector<KeptFunction> functions = {};
    KeptDraw draw = nullptr;
    std::vector<ElementCall> elements = {};  // what functions compute, of those that say it
};

// Null where no tape is at work.
extern thread_local Supply* supply;

extern PyTypeObject* tape_type;

// Makes the type; false with a Python error.
bool make_tape_type();

// For those who have a tape. All steps of it: -1, the number of a check whose answer is another one
// than recorded, or -2 with a Python error.
Py_ssize_t tape_run(PyObject* tape);
// The step at which the last run has ended.
Py_ssize_t tape_at(PyObject* tape);
// The numbers of the next step of an update; false if it would divide by zero.
bool tape_advance(PyObject* tape, Py_ssize_t update);
// Another argument of a call; false with a Python error.
bool tape_set_argument(PyObject* tape, Py_ssize_t step, Py_ssize_t place, PyObject* value);

}  // namespace chainrule
