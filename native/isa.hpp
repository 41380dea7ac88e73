// One kernel source, compiled for several instruction sets; the best that the processor has is
// used.
//
// A family of kernels F has F.hpp with `struct F_table` of plain function pointers and
// CHAINRULE_ISA (F), and F.inc with the functions in `namespace CHAINRULE_ISA` and, at its end, the
// table `extern const F_table F_for_<isa>`. isa_*.cpp include all F.inc. Standard headers that an
// F.inc needs are included here, before any target is set, so that their inline functions are
// compiled for every processor.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#define CHAINRULE_JOIN_(a, b) a##b
#define CHAINRULE_JOIN(a, b) CHAINRULE_JOIN_(a, b)
#define CHAINRULE_TABLE(F) extern const F##_table CHAINRULE_JOIN(F##_for_, CHAINRULE_ISA)

// Before a loop whose passes do not depend on each other, even where arrays are the same memory.
#if defined(__clang__)
#define CHAINRULE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CHAINRULE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CHAINRULE_INDEPENDENT
#endif

namespace chainrule {

enum class Isa { baseline, avx2, avx512 };
Isa isa();                       // what the kernels use
bool set_isa(const char* name);  // "baseline", "avx2", "avx512": for tests; false if not here

#if defined(__x86_64__) && defined(__GNUC__)
#define CHAINRULE_X86 1
#define CHAINRULE_TABLES(F)                                                \
    extern const F##_table F##_for_baseline, F##_for_avx2, F##_for_avx512; \
    static inline const F##_table& F() {                                   \
        switch (isa()) {                                                   \
            case Isa::avx512: return F##_for_avx512;                       \
            case Isa::avx2: return F##_for_avx2;                           \
            default: return F##_for_baseline;                              \
        }                                                                  \
    }
#else
#define CHAINRULE_TABLES(F)                  \
    extern const F##_table F##_for_baseline; \
    static inline const F##_table& F() { return F##_for_baseline; }
#endif

}  // namespace chainrule
