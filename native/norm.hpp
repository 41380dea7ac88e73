// Normalization: deviations from the mean over their standard deviation.
//
// Two layouts serve all layers. Rows: the numbers that are normalized together lie together (layer,
// group and instance norm). Channels: they are those of one channel c of (outer, channels, space)
// (batch norm). Backward, with d = x - mean and h = g w, gx = rstd (h - mean(h) - d rstd^2 mean(h
// d)).
#pragma once

#include "isa.hpp"

namespace chainrule {

// Each row is (parts, space), and weight and bias are (period, parts): those of part q of row r are
// the numbers (r % period, q).
struct NormRows {
    std::int64_t rows, parts, space, period;
};

struct NormChannels {
    std::int64_t outer, channels, space;
};

template <class T>
struct NormForward {
    const T *x, *weight, *bias;  // the last two may be null
    T eps;
    bool center;
    T *out, *mean, *rstd, *var;  // mean is null without center
};

template <class T>
struct NormBackward {
    const T *g, *x, *mean, *rstd, *weight;  // mean (zeros) and weight (ones) may be null
    T* gx;                                  // may be null: not needed
};

// rows_backward: with space > 1, gw and gb (rows, parts) are the sums of g d rstd and g over the
// space; with space 1, they are (period, parts), to which those of these rows are added. Both may
// be null. channels_backward: gw and gb are (channels), and may be null. add_up: out[j] = sum over
// i of parts[i, j] for (count, n). scale_planes: x * scale + shift, held between low and high, for
// planes [begin, end) of `space` numbers, which have the numbers of their channel each.
#define CHAINRULE_KERNELS_norm(KERNEL)                                                             \
    KERNEL(void, rows,                                                                             \
           (const NormRows& s, const NormForward<T>& a, std::int64_t begin, std::int64_t end))     \
    KERNEL(void, rows_backward,                                                                    \
           (const NormRows& s, const NormBackward<T>& a, T* gw, T* gb, std::int64_t begin,         \
            std::int64_t end))                                                                     \
    KERNEL(void, channels,                                                                         \
           (const NormChannels& s, const NormForward<T>& a, std::int64_t begin, std::int64_t end)) \
    KERNEL(void, channels_backward,                                                                \
           (const NormChannels& s, const NormBackward<T>& a, T* gw, T* gb, std::int64_t begin,     \
            std::int64_t end))                                                                     \
    KERNEL(void, scale_planes,                                                                     \
           (std::int64_t begin, std::int64_t end, std::int64_t channels, std::int64_t space,       \
            const T* x, const T* scale, const T* shift, T low, T high, T* out))                    \
    KERNEL(void, add_up, (std::int64_t count, std::int64_t n, const T* parts, T* out))

CHAINRULE_FAMILY(norm)

}  // namespace chainrule
