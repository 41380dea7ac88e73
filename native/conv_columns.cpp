// im2col and col2im: rows of windows copied, or added, one place of the kernel after the other.
#include <cstring>

#include "conv.hpp"
#include "conv_slab.hpp"
#include "parallel.hpp"

namespace chainrule {
namespace {

using namespace conv_slab;

// Fewer elements than this are not worth a second thread.
constexpr Int ELEMENTS = 1 << 15;

// The outputs along one dimension whose window has an element inside at place k.
struct Range {
    Int from, to, first;  // first: the element of output `from`

    Range(const ConvShape& s, int a, Int k) {
        const Int start = k * s.dilation[a] - s.padding[a];
        from = least(most(ceil_div(-start, s.stride[a]), 0), s.out[a]);
        to = most(least(ceil_div(s.in[a] - start, s.stride[a]), s.out[a]), from);
        first = start + from * s.stride[a];
    }
};

template <class T>
void zero(T* p, Int n) {
    std::memset(p, 0, static_cast<std::size_t>(n) * sizeof(T));
}

// What all windows of a channel have at one place.
template <class T>
void copy_place(const ConvShape& s, const Range* r, const T* x, T* out) {
    const Int plane = s.out[1] * s.out[2], n = r[2].to - r[2].from;
    zero(out, r[0].from * plane);
    for (Int i = r[0].from; i < r[0].to; ++i) {
        const T* slice = x + (r[0].first + (i - r[0].from) * s.stride[0]) * s.in[1] * s.in[2];
        T* rows = out + i * plane;
        zero(rows, r[1].from * s.out[2]);
        for (Int j = r[1].from; j < r[1].to; ++j) {
            const T* from =
                slice + (r[1].first + (j - r[1].from) * s.stride[1]) * s.in[2] + r[2].first;
            T* row = rows + j * s.out[2];
            for (Int k = 0; k < r[2].from; ++k) row[k] = 0;
            copy_row(n, s.stride[2], from, row + r[2].from);
            for (Int k = r[2].to; k < s.out[2]; ++k) row[k] = 0;
        }
        zero(rows + r[1].to * s.out[2], (s.out[1] - r[1].to) * s.out[2]);
    }
    zero(out + r[0].to * plane, (s.out[0] - r[0].to) * plane);
}

template <class T>
void add_place(const ConvShape& s, const Range* r, const T* columns, T* x) {
    const Int n = r[2].to - r[2].from, step = s.stride[2];
    for (Int i = r[0].from; i < r[0].to; ++i)
        for (Int j = r[1].from; j < r[1].to; ++j) {
            const T* from = columns + (i * s.out[1] + j) * s.out[2] + r[2].from;
            T* row = x +
                     ((r[0].first + (i - r[0].from) * s.stride[0]) * s.in[1] + r[1].first +
                      (j - r[1].from) * s.stride[1]) *
                         s.in[2] +
                     r[2].first;
            if (step == 1)
                for (Int k = 0; k < n; ++k) row[k] += from[k];
            else
                for (Int k = 0; k < n; ++k) row[k * step] += from[k];
        }
}

// work(ranges, number of the place) for every place of the kernel.
template <class F>
void for_places(const ConvShape& s, const F& work) {
    Int place = 0;
    for (Int a = 0; a < s.kernel[0]; ++a)
        for (Int b = 0; b < s.kernel[1]; ++b)
            for (Int c = 0; c < s.kernel[2]; ++c, ++place) {
                const Range r[3] = {{s, 0, a}, {s, 1, b}, {s, 2, c}};
                work(r, place);
            }
}

}  // namespace

template <class T>
void windows_to_columns(const ConvShape& s, const T* x, T* columns) {
    const Int in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
    const Int places = s.kernel[0] * s.kernel[1] * s.kernel[2];
    parallel_for(s.batch * s.in_channels, ceil_div(ELEMENTS, places * out), [&](Int from, Int to) {
        for (Int c = from; c < to; ++c)
            for_places(s, [&](const Range* r, Int place) {
                copy_place(s, r, x + c * in, columns + (c * places + place) * out);
            });
    });
}

template <class T>
void columns_to_windows(const ConvShape& s, const T* columns, T* x) {
    const Int in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
    const Int places = s.kernel[0] * s.kernel[1] * s.kernel[2];
    parallel_for(s.batch * s.in_channels, ceil_div(ELEMENTS, places * out), [&](Int from, Int to) {
        zero(x + from * in, (to - from) * in);
        for (Int c = from; c < to; ++c)
            for_places(s, [&](const Range* r, Int place) {
                add_place(s, r, columns + (c * places + place) * out, x + c * in);
            });
    });
}

template void windows_to_columns(const ConvShape&, const float*, float*);
template void windows_to_columns(const ConvShape&, const double*, double*);
template void columns_to_windows(const ConvShape&, const float*, float*);
template void columns_to_windows(const ConvShape&, const double*, double*);

}  // namespace chainrule
