// The slab that a convolution reads from: see conv.hpp.
#pragma once

#include <cstring>

#include "conv.hpp"

namespace chainrule {
namespace conv_slab {

using Int = std::int64_t;

constexpr int MAX_PHASES = 32;
// No slab has more elements than this.
constexpr Int MAX_ELEMENTS = Int{1} << 31;
// One with more elements in a channel than this has no more than MANY_TIMES as many as the data.
constexpr Int LARGE = Int{1} << 20;
constexpr double MANY_TIMES = 64;

static inline Int floor_div(Int a, Int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
static inline Int ceil_div(Int a, Int b) { return -floor_div(-a, b); }
static inline Int least(Int a, Int b) { return a < b ? a : b; }
static inline Int most(Int a, Int b) { return a > b ? a : b; }

// One dimension. The elements that are `step` apart lie side by side, for each needed residue (or
// phase) in turn: place q of a phase holds element start + q * step of the source if from <= q <
// to, zero otherwise.
struct Axis {
    Int length, step, size;
    int phases;
    Int residue[MAX_PHASES];
    struct {
        Int start, from, to;
    } phase[MAX_PHASES];

    // Makes the slab start at this element of the source, which may lie outside of it.
    void place(Int first) {
        for (int i = 0; i < phases; ++i) {
            const Int start = first + residue[i];
            phase[i].start = start;
            phase[i].from = least(most(ceil_div(-start, step), 0), size);
            phase[i].to = most(least(ceil_div(length - start, step), size), phase[i].from);
        }
    }

    // The number of the phase of this residue, which is added if it is new; -1 if there are too
    // many.
    int phase_of(Int wanted) {
        for (int i = 0; i < phases; ++i)
            if (residue[i] == wanted) return i;
        if (phases == MAX_PHASES) return -1;
        residue[phases] = wanted;
        return phases++;
    }
};

// Of every channel: phase, phase, phase, place, place, place.
struct Slab {
    Axis axis[3];
    Int pitch[3];  // what one place further is in memory
    Int plane, channel;

    // After the sizes and phases of the axes are known; false if it would be too large.
    bool measure() {
        pitch[2] = 1;
        pitch[1] = axis[2].size;
        Int total = 1;
        for (const Axis& a : axis) {
            if (a.size > MAX_ELEMENTS / total) return false;
            total *= a.size;
        }
        pitch[0] = axis[1].size * axis[2].size;
        plane = total;
        for (const Axis& a : axis) {
            if (a.phases > MAX_ELEMENTS / total) return false;
            total *= a.phases;
        }
        channel = total;
        return true;
    }

    // Where a place of certain phases lies in a channel.
    Int at(const int* phase, const Int* place) const {
        const Int number = (Int{phase[0]} * axis[1].phases + phase[1]) * axis[2].phases + phase[2];
        return number * plane + place[0] * pitch[0] + place[1] * pitch[1] + place[2];
    }
};

template <class T>
void copy_row(Int n, Int step, const T* source, T* out) {
    if (step != 1)
        for (Int q = 0; q < n; ++q) out[q] = source[q * step];
    else if (n < 64)  // sooner done than a call
        for (Int q = 0; q < n; ++q) out[q] = source[q];
    else
        std::memcpy(out, source, static_cast<std::size_t>(n) * sizeof(T));
}

// What lies inside the source, of one plane of places of one phase; the zeros around are left
// alone.
template <class T>
void fill_plane(const Axis* const* axis, const int* phase, const T* __restrict source,
                T* __restrict out) {
    const Axis &a = *axis[0], &b = *axis[1], &c = *axis[2];
    const auto& pa = a.phase[phase[0]];
    const auto& pb = b.phase[phase[1]];
    const auto& pc = c.phase[phase[2]];
    const Int rows = pb.to - pb.from, n = pc.to - pc.from;
    if (rows < 1 || n < 1) return;
    // Whole rows that follow each other without padding between them are copied at once.
    const bool joined = c.step == 1 && b.step == 1 && pc.start == 0 && c.size == c.length;
    source += (pb.start + pb.from * b.step) * c.length + pc.start + pc.from * c.step;
    out += pb.from * c.size + pc.from;
    for (Int q = pa.from; q < pa.to; ++q) {
        const T* from = source + (pa.start + q * a.step) * b.length * c.length;
        T* to = out + q * b.size * c.size;
        if (joined)
            copy_row(rows * n, 1, from, to);
        else
            for (Int r = 0; r < rows; ++r)
                copy_row(n, c.step, from + r * b.step * c.length, to + r * c.size);
    }
}

// Copies channels of the source into a slab that is zero everywhere else.
template <class T>
void fill(const Slab& slab, const Axis* const* axis, Int channels, const T* source, T* out) {
    const Int elements = axis[0]->length * axis[1]->length * axis[2]->length;
    int phase[3];
    for (Int c = 0; c < channels; ++c, source += elements)
        for (phase[0] = 0; phase[0] < axis[0]->phases; ++phase[0])
            for (phase[1] = 0; phase[1] < axis[1]->phases; ++phase[1])
                for (phase[2] = 0; phase[2] < axis[2]->phases; ++phase[2], out += slab.plane)
                    fill_plane(axis, phase, source, out);
}

// Whether nearly all of a slab are zeros that no result needs: with a huge dilation most places of
// the kernel lie far outside of the image.
static inline bool nearly_empty(const ConvShape& s, const Slab& slab) {
    double in = 1, products = 1;
    for (int a = 0; a < 3; ++a) {
        in *= static_cast<double>(s.in[a]);
        products *= static_cast<double>(s.out[a]) * static_cast<double>(s.kernel[a]);
    }
    return slab.channel > LARGE && static_cast<double>(slab.channel) > MANY_TIMES * (in + products);
}

// The slab of x for `part` of the outputs along `cut`; false if it cannot be made.
static inline bool make_slab(const ConvShape& s, int cut, Int part, Slab& slab) {
    for (int a = 0; a < 3; ++a) {
        Axis& axis = slab.axis[a];
        axis.length = s.in[a];
        axis.step = s.stride[a];
        axis.phases = 0;
        Int furthest = 0;
        for (Int i = 0; i < s.kernel[a]; ++i) {
            if (axis.phase_of(i * s.dilation[a] % s.stride[a]) < 0) return false;
            furthest = i * s.dilation[a] / s.stride[a];
        }
        axis.size = (a == cut ? part : s.out[a]) + furthest;
    }
    if (!slab.measure() || slab.channel > MAX_ELEMENTS / s.in_channels || nearly_empty(s, slab))
        return false;
    for (int a = 0; a < 3; ++a) slab.axis[a].place(-s.padding[a]);
    return true;
}

// Where each channel and place of the kernel lies in it.
static inline void find_offsets(const ConvShape& s, Slab& slab, Int* offset) {
    Int at[3], places = 0;
    for (at[0] = 0; at[0] < s.kernel[0]; ++at[0])
        for (at[1] = 0; at[1] < s.kernel[1]; ++at[1])
            for (at[2] = 0; at[2] < s.kernel[2]; ++at[2]) {
                int phase[3];
                Int place[3];
                for (int a = 0; a < 3; ++a) {
                    phase[a] = slab.axis[a].phase_of(at[a] * s.dilation[a] % s.stride[a]);
                    place[a] = at[a] * s.dilation[a] / s.stride[a];
                }
                offset[places++] = slab.at(phase, place);
            }
    for (Int i = places; i < places * s.in_channels; ++i)
        offset[i] = offset[i - places] + slab.channel;
}

}  // namespace conv_slab
}  // namespace chainrule
