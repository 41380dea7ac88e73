#include "isa.hpp"
#include "families.hpp"
#if defined(CHAINRULE_X86)
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define CHAINRULE_ISA avx512
#include "families.inc"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
