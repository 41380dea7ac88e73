// Convolution with kernels of 3 by 3 in tiles of 4 by 4 results: Winograd's F(4x4, 3x3).
//
// A tile of 6 by 6 numbers d, a kernel g and the 4 by 4 results y between them are polynomials,
// whose product is found from its values at the points 0, 1/sqrt(2), -1/sqrt(2), sqrt(2), -sqrt(2)
// and infinity of each dimension:
//
//     y = A' [(G g G') * (B' d B)] A
//
// The product in the middle is one of 36 numbers instead of 144 multiplications, and as all
// channels are added up there, it is 36 products of matrices. By d, by g and by y the same sum has
// the gradients, so that the gradient by the weight is F(3x3, 4x4).
//
// The points are those with the least rounding errors: an error is some five times that of the
// plain sum (root mean square), 1e-5 of the size of the results at most for 512 channels; with the
// points 0, 1, -1, 2, -2 of Lavin and Gray it would be twice to four times that.
#pragma once

#include <cstdint>

namespace chainrule {

constexpr std::int64_t WINOGRAD_PLACES = 36;

// Rows of tiles of one image, all channels: tile (i, j) begins at (4 i - padding, 4 j - padding),
// and what is outside of the image is zero. Number `place` of the result of a tile and a channel is
// at place * to_place + tile * to_tile + (channel / width) * to_block + channel % width, width
// being 2 * lanes.
template <class T>
struct WinogradTiles {
    std::int64_t channels, height, width, padding[2];
    std::int64_t tiles_across, first_row, rows;
    const T* image;
    std::int64_t to_place, to_tile, to_block;
    T* out;
    T* scratch;  // room for the channels, in whole vectors, of the rows and one pixel more
};

// Weights of `rows` channels of the result (at most 2 * lanes) and all channels of the source:
// out[place][channel][row]
template <class T>
struct WinogradWeights {
    std::int64_t rows, channels, row_step, channel_step;
    bool turned;  // the kernel is read from its end
    const T* w;
    const T* end;  // of all weights
    T* out;
};

// Tiles [first, first + tiles) of all tiles of all images, `rows` channels of each.
template <class T>
struct WinogradResults {
    std::int64_t first, tiles, rows, height, width, tiles_down, tiles_across;
    std::int64_t image_step;
    const T* from;  // [place][tile][2 * lanes]
    T* y;           // the first channel of the first image
};

// winograd_data, winograd_values: the tiles of 6 by 6, and of 4 by 4
// winograd_product: c (rows, 2 * lanes) = or += a (rows, depth) times b (depth, 2 * lanes), where
// the element (r, p) of a is at a[r * a_row + p * a_col]
// winograd_results: false if a result is not finite
// winograd_gradient: the weights (rows, columns, 3, 3) from [place][row][2 * lanes] for as many
// columns as asked for
#define CHAINRULE_KERNELS_winograd(KERNEL)                                                         \
    KERNEL(void, winograd_data, (const WinogradTiles<T>& p))                                       \
    KERNEL(void, winograd_values, (const WinogradTiles<T>& p))                                     \
    KERNEL(void, winograd_weights, (const WinogradWeights<T>& p))                                  \
    KERNEL(void, winograd_product,                                                                 \
           (std::int64_t rows, std::int64_t depth, const T* a, std::int64_t a_row,                 \
            std::int64_t a_col, const T* b, bool add, T* c))                                       \
    KERNEL(bool, winograd_results, (const WinogradResults<T>& p))                                  \
    KERNEL(bool, winograd_gradient,                                                                \
           (std::int64_t rows, std::int64_t columns, std::int64_t place_step, const T* from, T* w, \
            std::int64_t row_step))

}  // namespace chainrule
