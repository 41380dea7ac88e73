// One kernel source, compiled for several instruction sets; the best that the processor has is
// used.
//
// A family of kernels F lists them in F.hpp, each with its result, name and arguments, T standing
// for float or double:
//
//     #define CHAINRULE_KERNELS_F(KERNEL) KERNEL(void, scale, (std::int64_t n, T* x, T factor)) ...
//     CHAINRULE_FAMILY(F)
//
// F.inc has a function template of each name in `namespace CHAINRULE_ISA { namespace F_kernels`,
// and CHAINRULE_TABLE(F) at the end of it. Everything else comes from the list: the struct of
// function pointers, the tables of all instruction sets, and F_of<T>(), the table in use. isa_*.cpp
// include all F.inc. Standard headers that an F.inc needs are included here, before any target is
// set, so that their inline functions are compiled for every processor.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// Before a loop whose passes do not depend on each other, even where arrays are the same memory.
#if defined(__clang__)
#define CHAINRULE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CHAINRULE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CHAINRULE_INDEPENDENT
#endif

// All instruction sets, from the least to the most, with the bytes of a vector, and those that are
// compiled for this processor.
#define CHAINRULE_ISAS(EACH) EACH(baseline, 16) EACH(avx2, 32) EACH(avx512, 64)
#if defined(__x86_64__) && defined(__GNUC__)
#define CHAINRULE_X86 1
#define CHAINRULE_COMPILED(EACH, F) EACH(F, baseline) EACH(F, avx2) EACH(F, avx512)
#else
#define CHAINRULE_COMPILED(EACH, F) EACH(F, baseline)
#endif

namespace chainrule {

#define CHAINRULE_EACH(name, bytes) name,
enum class Isa { CHAINRULE_ISAS(CHAINRULE_EACH) };
#undef CHAINRULE_EACH
#define CHAINRULE_EACH(name, bytes)     \
    namespace name {                    \
    constexpr int VECTOR_BYTES = bytes; \
    }
CHAINRULE_ISAS(CHAINRULE_EACH)
#undef CHAINRULE_EACH

extern Isa isa_in_use;
inline Isa isa() { return isa_in_use; }  // what the kernels use
const char* isa_name();                  // the same in words
bool set_isa(const char* name);          // for tests; false if the processor does not have it

// The functions of a family for both dtypes.
template <template <class> class Functions>
struct Table {
    Functions<float> f;
    Functions<double> d;

    template <class T>
    const Functions<T>& of() const {
        if constexpr (std::is_same_v<T, float>)
            return f;
        else
            return d;
    }
};

// One function of a family, wherever its table is: CHAINRULE_CHOSEN(F, name).
template <template <class> class Functions, template <class> class Function>
struct Chosen {
    Function<float> Functions<float>::* f = nullptr;
    Function<double> Functions<double>::* d = nullptr;

    explicit operator bool() const { return f != nullptr; }
    template <class T>
    Function<T> in(const Functions<T>& table) const {
        if constexpr (std::is_same_v<T, float>)
            return table.*f;
        else
            return table.*d;
    }
};
#define CHAINRULE_CHOSEN(F, name) {&F##_functions<float>::name, &F##_functions<double>::name}

#define CHAINRULE_FIELD(result, name, arguments) result(*name) arguments;
#define CHAINRULE_OF_FLOAT(result, name, arguments) name<float>,
#define CHAINRULE_OF_DOUBLE(result, name, arguments) name<double>,
#define CHAINRULE_DECLARED(F, set)               \
    namespace set {                              \
    namespace F##_kernels {                      \
        extern const Table<F##_functions> table; \
    }                                            \
    }
#define CHAINRULE_CASE(F, set) \
    case Isa::set: return set::F##_kernels::table.of<T>();

#define CHAINRULE_FAMILY(F)                          \
    template <class T>                               \
    struct F##_functions {                           \
        CHAINRULE_KERNELS_##F(CHAINRULE_FIELD)       \
    };                                               \
    CHAINRULE_COMPILED(CHAINRULE_DECLARED, F)        \
    template <class T>                               \
    inline const F##_functions<T>& F##_of() {        \
        switch (isa()) {                             \
            CHAINRULE_COMPILED(CHAINRULE_CASE, F)    \
            default: break;                          \
        }                                            \
        return baseline::F##_kernels::table.of<T>(); \
    }

#define CHAINRULE_TABLE(F)                            \
    const Table<F##_functions> table = {              \
        {CHAINRULE_KERNELS_##F(CHAINRULE_OF_FLOAT)},  \
        {CHAINRULE_KERNELS_##F(CHAINRULE_OF_DOUBLE)}, \
    };

}  // namespace chainrule
