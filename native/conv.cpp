// Convolution.
#include "conv.hpp"

#include "conv_plan.hpp"

namespace chainrule {

using namespace conv_plan;

namespace {

// The terms with the places along the cut outermost, by their numbers in the order of the weights.
void by_place(const ConvShape& s, int cut, Int* from) {
    const Int after[3] = {s.kernel[1] * s.kernel[2], s.kernel[2], 1};
    const Int places = product(s.kernel), before = places / s.kernel[cut] / after[cut];
    for (Int i = 0; i < s.kernel[cut]; ++i)
        for (Int c = 0; c < s.in_channels; ++c)
            for (Int b = 0; b < before; ++b)
                for (Int a = 0; a < after[cut]; ++a)
                    *from++ = c * places + (b * s.kernel[cut] + i) * after[cut] + a;
}

}  // namespace

template <class T>
ConvResult conv_by_y(const ConvShape& s, const T* x, const T* w, T* y) {
    if (winograd_by_y(s, x, w, y) == ConvResult::done) return ConvResult::done;
    if (depthwise_by_y(s, x, w, y) == ConvResult::done) return ConvResult::done;
    const conv_functions<T>& k = conv_of<T>();
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
    if (p.few && pairs_by_y(s, x, w, y) == ConvResult::done) return ConvResult::done;
    p.passes = 1;
    p.band_first = nullptr;
    p.offsets = terms;
    p.weights = padded_rows(k, p) * terms;
    const Int weights = s.out_channels * terms;
    const double pairs = static_cast<double>(s.out[p.cut]) * static_cast<double>(s.kernel[p.cut]);
    // Without the products with zeros around x, which are not zero if a weight is infinite.
    const bool bands = s.stride[p.cut] == 1 && worth_bands(s, p.cut, pairs, weights) &&
                       update_of<T>().finite(s.groups * weights, w);
    const Int numbers = bands ? 3 * terms + s.kernel[p.cut] : terms;
    Scratch memory(0, static_cast<std::size_t>(numbers) * sizeof(Int) +
                          static_cast<std::size_t>(p.weights * s.groups) * sizeof(T));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Int* offset = static_cast<Int*>(memory.get());
    T* packed = reinterpret_cast<T*>(offset + numbers);
    const Pass pass = {terms, 0, 0, {0, 0, 0}};
    p.pass = &pass;
    p.offset = offset;
    p.packed = packed;
    find_offsets(s, p.slab, offset);
    Origin origin = {weights, terms, nullptr};
    const Int one_residue[2] = {0, s.kernel[p.cut]};
    if (bands) {
        Int *from = offset + terms, *sorted = from + terms, *place = sorted + terms;
        by_place(s, p.cut, from);
        for (Int i = 0; i < terms; ++i) sorted[i] = offset[from[i]];
        for (Int i = 0; i < s.kernel[p.cut]; ++i) place[i] = i * s.dilation[p.cut];
        origin.from = from;
        p.offset = sorted;
        p.band_first = one_residue;
        p.band_place = place;
    }
    pack(k, p, terms, origin, w, packed);
    return run(
        p, work, x, y, [](Int from, Int to, int, int) { return Line{0, to - from, from, 1}; },
        [&](Int from) { return from * s.stride[p.cut] - s.padding[p.cut]; });
}

template ConvResult conv_by_y(const ConvShape&, const float*, const float*, float*);
template ConvResult conv_by_y(const ConvShape&, const double*, const double*, double*);

}  // namespace chainrule
