// Layers with weights of their own, computed in one call: what vmap makes of many networks.
#pragma once

#include "binding.hpp"

namespace chainrule {

// The arguments and results are those of `linear` and `linear_backward`, the weights (count, D_out,
// D_in), the biases (count, D_out), the inputs (count, N, D_in) or for all layers (N, D_in). Null
// where NumPy is to see to it, or with a Python error.
PyObject* linear_of_stack(const Call& call);
PyObject* linear_backward_of_stack(const Call& call);

// The products of arrays (count, m, k) and (count, k, n), of which one may be a matrix for all.
PyObject* matmul_of_stack(const Call& call);

}  // namespace chainrule
