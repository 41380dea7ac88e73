#include "isa.hpp"

namespace chainrule {
namespace {

Isa best() {
#if defined(CHAINRULE_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
    return Isa::baseline;
}

Isa current = best();

}  // namespace

Isa isa() { return current; }

bool set_isa(const char* name) {
    const Isa wanted = std::strcmp(name, "avx512") == 0 ? Isa::avx512
                       : std::strcmp(name, "avx2") == 0 ? Isa::avx2
                                                        : Isa::baseline;
    if (wanted > best()) return false;
    current = wanted;
    return true;
}

}  // namespace chainrule
