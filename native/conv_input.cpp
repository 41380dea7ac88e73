// The gradient of a convolution by its input.
//
// i + padding = o * stride + k * dilation. The i with i + padding = q * stride + r take part in
// the places k with k * dilation = t * stride + r, where o = q - t: for each r, a convolution.
#include "conv.hpp"
#include "conv_plan.hpp"

namespace chainrule {
namespace {

using namespace conv_plan;

// A stride makes no more convolutions than this.
constexpr Int MAX_PASSES = 4096;

// The slab of y for `part` of the results along `cut`; `furthest` is the largest t.
bool make_slab_of_y(const ConvShape& s, const Int* furthest, int cut, Int part, Slab& slab) {
    for (int a = 0; a < 3; ++a) {
        Axis& axis = slab.axis[a];
        axis.length = s.out[a];
        axis.step = 1;
        axis.phases = 0;
        axis.phase_of(0);
        const Int last = floor_div(s.in[a] - 1 + s.padding[a], s.stride[a]);
        const Int count = a == cut && part < s.in[a]
                              ? (part - 1) / s.stride[a] + 1
                              : last - floor_div(s.padding[a], s.stride[a]) + 1;
        axis.size = count + furthest[a] + (a == cut && s.stride[a] > 1);
    }
    if (!slab.measure() || slab.channel > MAX_ELEMENTS / s.out_channels || nearly_empty(s, slab))
        return false;
    for (int a = 0; a < 3; ++a)
        slab.axis[a].place(floor_div(s.padding[a], s.stride[a]) - furthest[a]);
    return true;
}

// The places of the kernel along the cut, by their residue: what `band_first` of the plan says.
struct Bands {
    Int *first, *place, *at;  // at: the number in the kernel

    void find(const ConvShape& s, int cut, Int furthest) {
        Int found = 0;
        for (Int r = 0; r < s.stride[cut]; ++r) {
            first[r] = found;
            for (Int i = 0; i < s.kernel[cut]; ++i) {
                const Int reach = i * s.dilation[cut];
                if (reach % s.stride[cut] != r) continue;
                at[found] = i;
                place[found++] = furthest - reach / s.stride[cut];
            }
        }
        first[s.stride[cut]] = found;
    }
};

// The terms of a pass: where they lie in the slab, and where their weights are.
Int find_terms(const ConvShape& s, int cut, const Slab& slab, const Int* furthest,
               const Bands& bands, const int* residue, Int* offset, Int* from) {
    const int one = (cut + 1) % 3, two = (cut + 2) % 3;
    const Int places = product(s.kernel);
    Int terms = 0, at[3];
    const auto takes_part = [&](int a) {
        return at[a] * s.dilation[a] % s.stride[a] == residue[a];
    };
    for (Int b = bands.first[residue[cut]]; b < bands.first[residue[cut] + 1]; ++b) {
        at[cut] = bands.at[b];
        const Int begin = terms;
        for (at[one] = 0; at[one] < s.kernel[one]; ++at[one])
            for (at[two] = 0; at[two] < s.kernel[two]; ++at[two]) {
                if (!takes_part(one) || !takes_part(two)) continue;
                Int here = 0;
                for (int a = 0; a < 3; ++a)
                    here += (furthest[a] - at[a] * s.dilation[a] / s.stride[a]) * slab.pitch[a];
                from[terms] = (at[0] * s.kernel[1] + at[1]) * s.kernel[2] + at[2];
                offset[terms++] = here;
            }
        const Int same = terms - begin;
        for (Int rest = same * (s.out_channels - 1); rest > 0; --rest, ++terms) {
            from[terms] = from[terms - same] + s.in_channels * places;
            offset[terms] = offset[terms - same] + slab.channel;
        }
    }
    return terms;
}

}  // namespace

template <class T>
ConvResult conv_by_x(const ConvShape& given, const T* y, const T* w, T* x) {
    if (winograd_by_x(given, y, w, x) == ConvResult::done) return ConvResult::done;
    const conv_functions<T>& k = conv_of<T>();
    ConvShape s = given;
    // Weights times the zeros around y must be zero.
    const Int places = product(s.kernel), weights = s.out_channels * s.in_channels * places;
    if (!update_of<T>().finite(s.groups * weights, w)) return ConvResult::unsuited;
    if (depthwise_by_x(s, y, w, x) == ConvResult::done) return ConvResult::done;
    Plan<T> p;
    p.batch = s.batch;
    p.groups = s.groups;
    p.source_channels = s.out_channels;
    p.result_channels = s.in_channels;
    p.source_size = product(s.out);
    p.result_size = product(s.in);
    for (int a = 0; a < 3; ++a) p.result[a] = s.in[a];
    const Int work = count_work(s);
    Int furthest[3];
    p.passes = 1;
    for (int a = 0; a < 3; ++a) {
        // A single output: a stride as long as the kernel makes every place a pass of its own.
        const Int reach = (s.kernel[a] - 1) * s.dilation[a];
        if (s.out[a] == 1 && reach < 32) s.stride[a] = reach + 1;
        furthest[a] = reach / s.stride[a];
        if (s.stride[a] > MAX_PASSES || (p.passes *= s.stride[a]) > MAX_PASSES)
            return ConvResult::unsuited;
    }
    const auto measure = [&](Plan<T>& plan) {
        return make_slab_of_y(s, furthest, plan.cut, plan.part, plan.slab);
    };
    if (!cut_result(p, work, s.stride, measure)) return ConvResult::unsuited;
    if (p.few && pairs_by_x(given, y, w, x) == ConvResult::done) return ConvResult::done;
    const Int cut_places = s.kernel[p.cut], cut_stride = s.stride[p.cut];
    p.offsets = places * s.out_channels;
    p.weights = padded_rows(k, p) * p.offsets;
    const Int numbers = 2 * p.offsets + 2 * cut_places + cut_stride + 1;
    Scratch memory(0, static_cast<std::size_t>(numbers) * sizeof(Int) +
                          static_cast<std::size_t>(p.weights * s.groups) * sizeof(T) +
                          static_cast<std::size_t>(p.passes) * sizeof(Pass));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Pass* passes = static_cast<Pass*>(memory.get());
    Int* from = reinterpret_cast<Int*>(passes + p.passes);
    Int* offset = from + p.offsets;
    Bands bands;
    bands.first = offset + p.offsets;
    bands.place = bands.first + cut_stride + 1;
    bands.at = bands.place + cut_places;
    T* packed = reinterpret_cast<T*>(bands.at + cut_places);
    bands.find(s, p.cut, furthest[p.cut]);
    p.pass = passes;
    p.offset = offset;
    p.packed = packed;
    const double pairs = static_cast<double>(s.in[p.cut]) * static_cast<double>(cut_places) /
                         static_cast<double>(cut_stride);
    p.band_first = worth_bands(s, p.cut, pairs, weights) ? bands.first : nullptr;
    p.band_place = bands.place;

    Int first_offset = 0, first_weight = 0;
    for (Int i = 0; i < p.passes; ++i) {
        Pass& pass = passes[i];
        pass.residue[2] = static_cast<int>(i % s.stride[2]);
        pass.residue[1] = static_cast<int>(i / s.stride[2] % s.stride[1]);
        pass.residue[0] = static_cast<int>(i / s.stride[2] / s.stride[1]);
        pass.first_offset = first_offset;
        pass.first_weight = first_weight;
        const Int terms = find_terms(s, p.cut, p.slab, furthest, bands, pass.residue,
                                     offset + first_offset, from);
        pass.terms = terms;
        if (terms > 0) pack(k, p, terms, Origin{weights, places, from}, w, packed + first_weight);
        first_offset += terms;
        first_weight += padded_rows(k, p) * terms;
    }
    return run(
        p, work, y, x,
        [&](Int from, Int to, int a, int residue) {
            const Int stride = s.stride[a], begin = from + s.padding[a] - residue;
            const Int q = ceil_div(begin, stride);
            const Int end = floor_div(to - 1 + s.padding[a] - residue, stride) + 1;
            return Line{q - floor_div(from + s.padding[a], stride), end - q,
                        q * stride + residue - s.padding[a], stride};
        },
        [&](Int from) {
            return floor_div(from + s.padding[p.cut], s.stride[p.cut]) - furthest[p.cut];
        });
}

template ConvResult conv_by_x(const ConvShape&, const float*, const float*, float*);
template ConvResult conv_by_x(const ConvShape&, const double*, const double*, double*);

}  // namespace chainrule
