// The declarations of all families of kernels; their sources are in families.inc.
#pragma once

#include "compare.hpp"
#include "attention.hpp"
#include "conv.hpp"
#include "elementwise.hpp"
#include "gather.hpp"
#include "linear.hpp"
#include "norm.hpp"
#include "pool.hpp"
#include "recurrent.hpp"
#include "reduce.hpp"
#include "softmax.hpp"
#include "update.hpp"

#define CHAINRULE_FAMILIES(EACH) \
    EACH(compare)                \
    EACH(attention)              \
    EACH(conv)                   \
    EACH(elementwise)            \
    EACH(gather)                 \
    EACH(linear)                 \
    EACH(norm)                   \
    EACH(pool)                   \
    EACH(recurrent)              \
    EACH(reduce)                 \
    EACH(softmax)                \
    EACH(update)
