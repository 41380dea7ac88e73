// Convolution and its gradients in up to three dimensions.
//
//     sum  y[n, o, i] * w[o, c, k] * x[n, c, i * stride + k * dilation - padding]
//
// is computed without laying out all windows. The channels of an image are copied into a slab
// (padded, and for a stride s > 1 with the elements s apart side by side), in which what all
// windows have at one place of the kernel is contiguous, at a fixed offset. A product of matrices
// then reads its second factor directly from the slab: row k at offset[k], columns at the positions
// of outputs.
#pragma once

#include "isa.hpp"
#include "depthwise.hpp"
#include "pairs.hpp"
#include "winograd.hpp"

namespace chainrule {

// Fewer dimensions than three: the leading ones are 1. Channels are those of one group.
struct ConvShape {
    std::int64_t batch, groups, in_channels, out_channels;
    std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

enum class ConvResult { done, no_memory, unsuited };

// All arrays are contiguous and none of the sizes is 0. `unsuited`: nothing was computed.
template <class T>
ConvResult conv_by_y(const ConvShape& s, const T* x, const T* w, T* y);
template <class T>
ConvResult conv_by_x(const ConvShape& s, const T* y, const T* w, T* x);
template <class T>
ConvResult conv_by_w(const ConvShape& s, const T* x, const T* y, T* w);

// The same by Winograd's algorithm (winograd.hpp), where it pays: `unsuited` elsewhere, where it is
// turned off, and where a result is not finite.
template <class T>
ConvResult winograd_by_y(const ConvShape& s, const T* x, const T* w, T* y);
template <class T>
ConvResult winograd_by_x(const ConvShape& s, const T* y, const T* w, T* x);
template <class T>
ConvResult winograd_by_w(const ConvShape& s, const T* x, const T* y, T* w);
// The same over pairs of an output and an element (pairs.hpp), where channels fill vectors.
template <class T>
ConvResult pairs_by_y(const ConvShape& s, const T* x, const T* w, T* y);
template <class T>
ConvResult pairs_by_x(const ConvShape& s, const T* y, const T* w, T* x);
template <class T>
ConvResult pairs_by_w(const ConvShape& s, const T* x, const T* y, T* w);
// The same of as many groups as channels (depthwise.hpp).
template <class T>
ConvResult depthwise_by_y(const ConvShape& s, const T* x, const T* w, T* y);
template <class T>
ConvResult depthwise_by_x(const ConvShape& s, const T* y, const T* w, T* x);
template <class T>
ConvResult depthwise_by_w(const ConvShape& s, const T* x, const T* y, T* w);
bool winograd_in_use();
void use_winograd(bool on);

// The windows of x (batch * in_channels, in) as columns (batch * in_channels * kernel, out), and
// back: added up where they overlap. Groups and output channels do not count.
template <class T>
void windows_to_columns(const ConvShape& s, const T* x, T* columns);
template <class T>
void columns_to_windows(const ConvShape& s, const T* columns, T* x);

// Rows of y = w (rows, terms) times what lies at the positions: y[row][at_y[v] + lane] for all v.
template <class T>
struct ConvPanel {
    std::int64_t rows, terms, vectors, limit, y_step;
    const T* w;                  // packed: all rows of a tile for term 0, for term 1, ...
    const std::int64_t* offset;  // of each term in x
    const T* x;
    const std::int64_t *at_x, *at_y;
    T* y;  // nothing is written at or beyond `limit` of a row
};

// w[row][term] += sum over v and lanes of y[row][at_y[v] + lane] * x[offset[term] + at_x[v] + lane]
template <class T>
struct ConvSums {
    std::int64_t rows, terms, vectors, y_step, w_step;
    T* w;
    const std::int64_t* offset;
    const T *x, *y;
    const std::int64_t *at_x, *at_y;
};

// For few positions: the lanes are those of the channels instead.
// y[channel][at_y[row]] (+)= sum over terms of x[at_row[row] + at_term[term]] * m[term][channel]
template <class T>
struct ConvLanes {
    std::int64_t rows, terms, channels, y_step;
    const std::int64_t *at_row, *at_term, *at_y;
    const T *x, *m;  // m is packed: `width` channels for term 0, for term 1, ...
    T* y;
    bool add;
};

// tile_rows, sum_rows: how many rows the next tile has if so many are left (it may have more)
// by_channels: the width is `lanes` or 2 * `lanes`
#define CHAINRULE_KERNELS_conv(KERNEL)                                     \
    KERNEL(int, lanes, ())                                                 \
    KERNEL(int, tile_rows, (std::int64_t left))                            \
    KERNEL(int, sum_rows, (std::int64_t left))                             \
    KERNEL(void, panel, (int tile, const ConvPanel<T>& p))                 \
    KERNEL(void, sums, (int tile, const ConvSums<T>& p))                   \
    KERNEL(void, by_channels, (int width, const ConvLanes<T>& p))          \
    CHAINRULE_KERNELS_winograd(KERNEL) CHAINRULE_KERNELS_depthwise(KERNEL) \
        CHAINRULE_KERNELS_pairs(KERNEL)

CHAINRULE_FAMILY(conv)

}  // namespace chainrule
