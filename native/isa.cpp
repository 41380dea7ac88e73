#include "isa.hpp"

namespace chainrule {
namespace {

#define CHAINRULE_EACH(name, bytes) #name,
constexpr const char* NAMES[] = {CHAINRULE_ISAS(CHAINRULE_EACH)};
#undef CHAINRULE_EACH

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

}  // namespace

Isa isa_in_use = best();

const char* isa_name() { return NAMES[static_cast<int>(isa_in_use)]; }

bool set_isa(const char* name) {
    for (int i = 0; i <= static_cast<int>(best()); ++i) {
        if (std::strcmp(name, NAMES[i]) != 0) continue;
        isa_in_use = static_cast<Isa>(i);
        return true;
    }
    return false;
}

}  // namespace chainrule
