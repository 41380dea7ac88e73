// Convolution.
#include "conv.hpp"

#include "conv_plan.hpp"

namespace chainrule {

using namespace conv_plan;

template <class T>
ConvResult conv_by_y(const ConvShape& s, const T* x, const T* w, T* y) {
    const ConvKernels<T>& k = kernels<T>();
    Plan<T> p;
    p.batch = s.batch;
    p.groups = s.groups;
    p.source_channels = s.in_channels;
    p.result_channels = s.out_channels;
    p.source_size = product(s.in);
    p.result_size = product(s.out);
    for (int a = 0; a < 3; ++a) p.result[a] = s.out[a];
    const Int terms = product(s.kernel) * s.in_channels, work = count_work(s);
    const auto measure = [&](Plan<T>& plan) {
        return make_slab(s, plan.cut, plan.part, plan.slab);
    };
    const Int together[3] = {1, 1, 1};
    if (!cut_result(p, work, together, measure)) return ConvResult::unsuited;
    p.passes = 1;
    p.band_first = nullptr;
    p.offsets = terms;
    p.weights = padded_rows(k, p) * terms;
    Scratch memory(0, static_cast<std::size_t>(terms) * sizeof(Int) +
                          static_cast<std::size_t>(p.weights * s.groups) * sizeof(T));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Int* offset = static_cast<Int*>(memory.get());
    T* packed = reinterpret_cast<T*>(offset + terms);
    const Pass pass = {terms, 0, 0, {0, 0, 0}};
    p.pass = &pass;
    p.offset = offset;
    p.packed = packed;
    find_offsets(s, p.slab, offset);
    pack(k, p, terms, Origin{s.out_channels * terms, terms, nullptr}, w, packed);
    return run(
        p, work, x, y,
        [](Int from, Int to, int, int) { return Line{0, to - from, from, 1}; },
        [&](Int from) { return from * s.stride[p.cut] - s.padding[p.cut]; });
}

template ConvResult conv_by_y(const ConvShape&, const float*, const float*, float*);
template ConvResult conv_by_y(const ConvShape&, const double*, const double*, double*);

}  // namespace chainrule
