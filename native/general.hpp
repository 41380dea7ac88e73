// Second bindings of kernels, for what the first one leaves: arrays of any steps, numbers of
// Python's, powers of all kinds, products of stacks, sums along any dimensions.
#pragma once

#include "binding.hpp"

namespace chainrule {

// Looks whether there is a second binding of the kernel that takes the call. If so, its result, or
// null with an error, is in `result`.
bool taken_by_general(const Call& call, PyObject** result);

// Those of other files. Each says whether it knows what to do with a call.
bool general_matmul(const Call& call, PyObject** result);
bool general_sum(const Call& call, PyObject** result);
bool general_mean(const Call& call, PyObject** result);
bool general_sum_to(const Call& call, PyObject** result);
bool general_softmax(const Call& call, PyObject** result);
bool general_log_softmax(const Call& call, PyObject** result);
bool general_softmax_backward(const Call& call, PyObject** result);
bool general_log_softmax_backward(const Call& call, PyObject** result);

}  // namespace chainrule
