// Convolution as products over pairs: for each place of the kernel, each output and the one element
// of the input that it meets there, with the channels of a pixel beside each other.
//
//     y[output] += w[place] x[element],  x[element] += w[place]' y[output],
//     w[place] += y[output] x[element]'
//
// No product is one with a zero around the image, and lanes are channels, however small images are.
#pragma once

#include <cstdint>

namespace chainrule {

// turn_pixels: `channels` channels of `pixels` elements, `channel_step` apart, with the channels
// beside each other: pixel i at out + i * pixel_step. Channels are filled up with zeros to whole
// vectors.
// turn_back: the reverse
// pair_rows: c[c_at[i] + j] += the sum over p < depth of a[a_at[i] + p] * b[p * width + j]
// pair_sums: c[r * width + j] += the sum over pairs of a[a_at[i] + r] * b[b_at[i] + j]
// where width = 2 * lanes, j < width and i < pairs
#define CHAINRULE_KERNELS_pairs(KERNEL)                                                           \
    KERNEL(void, turn_pixels,                                                                     \
           (std::int64_t channels, std::int64_t pixels, const T* from, std::int64_t channel_step, \
            T* out, std::int64_t pixel_step))                                                     \
    KERNEL(void, turn_back,                                                                       \
           (std::int64_t channels, std::int64_t pixels, const T* from, std::int64_t pixel_step,   \
            T* out, std::int64_t channel_step))                                                   \
    KERNEL(void, pair_rows,                                                                       \
           (std::int64_t pairs, std::int64_t depth, const T* a, const std::int64_t* a_at,         \
            const T* b, T* c, const std::int64_t* c_at))                                          \
    KERNEL(void, pair_sums,                                                                       \
           (std::int64_t rows, std::int64_t pairs, const T* a, const std::int64_t* a_at,          \
            const T* b, const std::int64_t* b_at, T* c))

}  // namespace chainrule
