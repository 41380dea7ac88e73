// Copies of elements from array to array that need no Python.
#pragma once

#include "keep.hpp"

namespace chainrule {

// What copies the elements of one array, converted and repeated where it has to be, into another.
// None where the types are others than we convert, the arrays overlap or the shapes do not fit.
KeptFunction copy_between(PyArrayObject* target, PyArrayObject* source);

// The same as an elementwise call; null if it is none.
std::unique_ptr<ElementCall> copied_elements(PyArrayObject* target, PyArrayObject* source);

}  // namespace chainrule
