// Comparisons, and what is chosen by them, element by element.
#pragma once

#include "isa.hpp"

namespace chainrule {

// out[i] = whether a[i] op b[i]
#define CHAINRULE_COMPARISONS(EACH, WITH) \
    EACH(WITH, eq, ==, "a == b")          \
    EACH(WITH, ne, !=, "a != b")          \
    EACH(WITH, lt, <, "a < b")            \
    EACH(WITH, le, <=, "a <= b")          \
    EACH(WITH, gt, >, "a > b")            \
    EACH(WITH, ge, >=, "a >= b")

// out[i] = a[i] or b[i]: a if it holds, else b
#define CHAINRULE_CHOICES(EACH, WITH)                                                \
    EACH(WITH, maximum, ((a >= b) | (a != a)), "The larger of a and b, NaN if one.") \
    EACH(WITH, minimum, ((a <= b) | (a != a)), "The smaller of a and b, NaN if one.")

// out[i] = whether it holds for x = a[i]
#define CHAINRULE_PREDICATES(EACH, WITH)                                      \
    EACH(WITH, isnan, (x != x), "Where a is NaN.")                            \
    EACH(WITH, isinf, (absolute(x) == infinity<T>()), "Where a is infinite.") \
    EACH(WITH, isfinite, (absolute(x) < infinity<T>()), "Where a is finite.")

// Truth values, as NumPy has them: a byte that is 0 or 1.
using Truth = unsigned char;

// select: out[i] = a[i] where the condition holds, else b[i]
// clamp: min(max(x, low), high), NaN if one of them is
// clamp_between: the same for two numbers, neither of which is NaN
#define CHAINRULE_KERNELS_compare(KERNEL)                                                  \
    CHAINRULE_COMPARISONS(CHAINRULE_COMPARISON_KERNEL, KERNEL)                             \
    CHAINRULE_CHOICES(CHAINRULE_CHOICE_KERNEL, KERNEL)                                     \
    CHAINRULE_PREDICATES(CHAINRULE_PREDICATE_KERNEL, KERNEL)                               \
    KERNEL(void, select, (std::int64_t n, const Truth* c, const T* a, const T* b, T* out)) \
    KERNEL(void, clamp, (std::int64_t n, const T* x, const T* low, const T* high, T* out)) \
    KERNEL(void, clamp_between, (std::int64_t n, const T* x, T low, T high, T* out))

#define CHAINRULE_COMPARISON_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name, (std::int64_t n, const T* a, const T* b, Truth* out))
#define CHAINRULE_CHOICE_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name, (std::int64_t n, const T* a, const T* b, T* out))
#define CHAINRULE_PREDICATE_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name, (std::int64_t n, const T* a, Truth* out))

CHAINRULE_FAMILY(compare)

template <class T>
using Comparing = void (*)(std::int64_t n, const T* a, const T* b, Truth* out);
template <class T>
using Choosing = void (*)(std::int64_t n, const T* a, const T* b, T* out);
template <class T>
using Judging = void (*)(std::int64_t n, const T* a, Truth* out);

}  // namespace chainrule
