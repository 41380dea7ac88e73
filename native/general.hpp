// What the first binding of an elementwise kernel leaves: arrays of any steps, numbers of Python's,
// powers of all kinds.
#pragma once

#include "binding.hpp"

namespace chainrule {

// Looks whether there is a second binding of the kernel that takes the call. If so, its result, or
// null with an error, is in `result`.
bool taken_by_general(const Call& call, PyObject** result);

}  // namespace chainrule
