// Depthwise convolution: each channel has a kernel of its own. A vector has as many channels, for
// which an image is laid out as a frame: its pixels with zeros around, each with its channels
// beside each other.
#pragma once

#include <cstdint>

namespace chainrule {

// One image with as many channels as a vector has. Results are made `WIDE` of a row at a time, so
// rows of results are filled up to a multiple of it; rows of `NARROW` stay as they are.
struct DepthwiseFrame {
    static constexpr std::int64_t WIDE = 4, NARROW = 2;
    std::int64_t rows, columns;  // results
    std::int64_t stride[2];      // between the elements of neighboring results
    std::int64_t across;         // elements in a row of the frame
    std::int64_t places;
    const std::int64_t* place;  // where each place of the kernel lies in the frame

    std::int64_t padded() const {
        return columns <= NARROW ? NARROW : (columns + WIDE - 1) / WIDE * WIDE;
    }
};

// to_frame: pixels of channels that lie `step` apart to out + at[i] of a frame; channels are filled
// up with zeros
// from_frame: the reverse
// depthwise_results: results (rows, padded columns) from a frame, with weights [place][lanes]
// depthwise_spread: adds each result (rows, columns) times the weights to the frame
// depthwise_sums: adds the products of results (rows, columns) and the frame to sums [place][lanes]
#define CHAINRULE_KERNELS_depthwise(KERNEL)                                                        \
    KERNEL(void, to_frame,                                                                         \
           (std::int64_t channels, std::int64_t pixels, const T* from, std::int64_t step,          \
            const std::int64_t* at, T* out))                                                       \
    KERNEL(void, from_frame,                                                                       \
           (std::int64_t channels, std::int64_t pixels, const T* from, const std::int64_t* at,     \
            T* out, std::int64_t step))                                                            \
    KERNEL(void, depthwise_results, (const DepthwiseFrame& p, const T* frame, const T* w, T* out)) \
    KERNEL(void, depthwise_spread,                                                                 \
           (const DepthwiseFrame& p, const T* results, const T* w, T* frame))                      \
    KERNEL(void, depthwise_sums,                                                                   \
           (const DepthwiseFrame& p, const T* results, const T* frame, T* sums))

}  // namespace chainrule
