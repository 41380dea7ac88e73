// The declarations of all families of kernels.
#pragma once

#include "conv.hpp"
#include "norm.hpp"
#include "pool.hpp"
#include "recurrent.hpp"
#include "elementwise.hpp"
#include "gather.hpp"
#include "linear.hpp"
#include "softmax.hpp"
#include "update.hpp"
