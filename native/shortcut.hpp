// Calls of compiled functions without Python, as long as everything is as it was.
#pragma once

#include "binding.hpp"

namespace chainrule {

// Adds the types Shortcut and Repeater to the module; false with a Python error.
bool add_shortcut_types(PyObject* module);

}  // namespace chainrule
