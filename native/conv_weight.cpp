// The gradient by the weight: sums over all positions of all images.
//
// The images are cut into blocks whose number depends on the sizes alone; each block is summed by
// one thread, the blocks are added up in their order. So the number of threads changes nothing.
#include <atomic>

#include "conv.hpp"
#include "conv_slab.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "update.hpp"

namespace chainrule {
namespace {

using namespace conv_slab;

constexpr Int PIECE_BYTES = 512 * 1024;
constexpr Int WORK = 1 << 19;
constexpr Int BEYOND = 64;
constexpr Int MAX_BLOCKS = 16;
// If the weights take more than this, each thread computes so many output channels.
constexpr Int MANY_BYTES = 1 << 20, ROWS = 64;

// How the y of one image lies beside the positions of the slab.
enum class Rows {
    in_place,   // every row is a whole number of vectors
    padded,     // every row is filled up with zeros
    like_slab,  // with zeros in the gaps that the rows of the slab have
    by_channel  // channels side by side, which are the lanes then
};

struct Plan {
    Slab slab;
    int cut;
    Int part, parts;               // the outputs along `cut` in parts
    Int images, pieces;            // a piece: so many images, or a part of one
    Int blocks, row_blocks, rows;  // rows: output channels that one thread takes
    Rows layout;
    Int count[3];           // outputs of a part
    Int vectors, y_length;  // of one image; elements of a channel of y in the copy
    const Int* offset;
    const Int* numbers;  // 0, 1, ...: for each term
};

bool measure(const ConvShape& s, Plan& p) {
    for (int a = 0; a < 3; ++a) p.count[a] = a == p.cut ? p.part : s.out[a];
    return make_slab(s, p.cut, p.part, p.slab);
}

// Two vectors at a time, or one if that is enough.
int width_of(Int left, int lanes) { return left > lanes ? 2 * lanes : lanes; }

Int padded(Int channels, int lanes) {
    Int row = 0;
    while (row < channels) row += width_of(channels - row, lanes);
    return row;
}

void choose_layout(Plan& p, Int channels, int lanes) {
    const Int rows = p.count[0] * p.count[1], per_row = ceil_div(p.count[2], lanes);
    const Int length =
        (p.count[0] - 1) * p.slab.pitch[0] + (p.count[1] - 1) * p.slab.pitch[1] + p.count[2];
    const Int flat = ceil_div(length, lanes);
    if (p.count[2] % lanes == 0 && p.parts == 1) {
        p.layout = Rows::in_place;
    } else if (flat * 11 < rows * per_row * 10) {
        p.layout = Rows::like_slab;
    } else {
        p.layout = Rows::padded;
    }
    p.vectors = p.layout == Rows::like_slab ? flat : rows * per_row;
    p.y_length = p.layout == Rows::in_place ? 0 : p.vectors * lanes;
    const double busy =
        static_cast<double>(rows * p.count[2]) / static_cast<double>(p.vectors * lanes);
    const double other =
        static_cast<double>(channels) / static_cast<double>(padded(channels, lanes));
    if (other * 0.85 > busy) {
        p.layout = Rows::by_channel;
        p.vectors = p.y_length = rows * p.count[2];
    }
}

template <class T>
bool make_plan(const ConvShape& s, int lanes, Plan& p) {
    constexpr Int size = sizeof(T);
    p.cut = s.out[0] > 1 ? 0 : s.out[1] > 1 ? 1 : 2;
    p.part = s.out[p.cut];
    if (!measure(s, p)) return false;
    const Int bytes = p.slab.channel * s.in_channels * size;
    if (bytes > PIECE_BYTES) {
        p.part = ceil_div(p.part, least(ceil_div(bytes, PIECE_BYTES), p.part));
        if (!measure(s, p)) return false;
    }
    p.parts = ceil_div(s.out[p.cut], p.part);
    choose_layout(p, s.out_channels, lanes);
    const Int outputs = p.count[0] * p.count[1] * p.count[2];
    const double terms = static_cast<double>(s.in_channels) * static_cast<double>(s.kernel[0]) *
                         static_cast<double>(s.kernel[1]) * static_cast<double>(s.kernel[2]);
    const double weights = terms * static_cast<double>(s.groups * s.out_channels);
    // Many weights: threads take some of them; few: some of the images.
    const bool many = weights * static_cast<double>(size) > static_cast<double>(MANY_BYTES);
    const Int rows = many ? least(s.out_channels, ROWS) : s.out_channels;
    const Int image = p.slab.channel * s.in_channels + most(p.y_length, outputs) * rows;
    const Int bytes_together = p.layout == Rows::by_channel ? 2 * PIECE_BYTES : PIECE_BYTES;
    p.images = p.parts > 1 ? 1 : least(most(bytes_together / size / most(image, 1), 1), s.batch);
    // No more than needed to make the sums over the lanes cheap.
    p.images = least(p.images, ceil_div(p.layout == Rows::by_channel ? 512 : 256, p.vectors));
    p.pieces = ceil_div(s.batch, p.images) * p.parts;

    const double work = weights * static_cast<double>(s.batch) *
                        static_cast<double>(s.out[0] * s.out[1] * s.out[2]);
    const double worth = work / static_cast<double>(WORK);
    p.rows = rows;
    p.row_blocks = ceil_div(s.out_channels, p.rows);
    p.blocks = least(p.pieces, ceil_div(MAX_BLOCKS, p.row_blocks * (many ? s.groups : 1)));
    if (static_cast<double>(p.blocks) > worth) p.blocks = most(static_cast<Int>(worth), 1);
    return true;
}

void positions(const ConvShape& s, const Plan& p, int lanes, Int rows, Int* at_x, Int* at_y) {
    const Int x_image = p.slab.channel * s.in_channels;
    const Int y_image = p.layout == Rows::in_place
                            ? s.groups * s.out_channels * s.out[0] * s.out[1] * s.out[2]
                            : rows * p.y_length;
    const int step = p.layout == Rows::by_channel ? 1 : lanes;
    for (Int n = 0; n < p.images; ++n) {
        if (p.layout == Rows::like_slab) {
            for (Int v = 0; v < p.vectors; ++v) {
                *at_x++ = n * x_image + v * lanes;
                *at_y++ = n * y_image + v * lanes;
            }
            continue;
        }
        Int y = n * y_image;
        for (Int i = 0; i < p.count[0]; ++i)
            for (Int j = 0; j < p.count[1]; ++j)
                for (Int k = 0; k < p.count[2]; k += step, y += step) {
                    *at_x++ = n * x_image + i * p.slab.pitch[0] + j * p.slab.pitch[1] + k;
                    *at_y++ = y;
                }
    }
}

// Copies the outputs [from, to) along the cut of some channels of y; all else becomes zero.
template <class T>
void copy_y(const ConvShape& s, const Plan& p, int lanes, Int rows, Int from, Int to, const T* y,
            T* out) {
    const Int width = ceil_div(p.count[2], lanes) * lanes;
    Int begin[3] = {0, 0, 0}, n[3] = {s.out[0], s.out[1], s.out[2]};
    begin[p.cut] = from;
    n[p.cut] = to - from;
    for (Int r = 0; r < rows; ++r, y += s.out[0] * s.out[1] * s.out[2], out += p.y_length) {
        T* end = out;
        for (Int i = 0; i < n[0]; ++i)
            for (Int j = 0; j < n[1]; ++j) {
                const T* source =
                    y + ((begin[0] + i) * s.out[1] + begin[1] + j) * s.out[2] + begin[2];
                T* row =
                    out + (p.layout == Rows::like_slab ? i * p.slab.pitch[0] + j * p.slab.pitch[1]
                                                       : (i * p.count[1] + j) * width);
                while (end < row) *end++ = 0;
                std::memcpy(row, source, static_cast<std::size_t>(n[2]) * sizeof(T));
                end = row + n[2];
            }
        while (end < out + p.y_length) *end++ = 0;
    }
}

// Outputs [from, to) along the cut, of all images of a piece, with the channels side by side.
template <class T>
void transpose_y(const ConvShape& s, const Plan& p, int lanes, Int images, Int rows, Int from,
                 Int to, const T* y, T* out) {
    const Int size = s.out[0] * s.out[1] * s.out[2], each = size / s.out[p.cut];
    const Int n = (to - from) * each;  // the cut is the outermost dimension
    for (Int row = 0; row < rows;) {
        const int width = width_of(rows - row, lanes);
        for (Int image = 0; image < images; ++image, out += n * width) {
            const T* source = y + (image * s.groups * s.out_channels + row) * size + from * each;
            for (int c = 0; c < width; ++c, source += size)
                if (row + c < rows)
                    for (Int i = 0; i < n; ++i) out[i * width + c] = source[i];
                else
                    for (Int i = 0; i < n; ++i) out[i * width + c] = 0;
        }
        row += width;
    }
}

// One block of the images for some output channels of a group.
template <class T>
bool run_block(const ConvShape& s, const Plan& p, Int block, Int group, Int row, Int rows,
               const T* x, const T* y, T* w, T* x_slab, T* y_copy, const Int* at_x,
               const Int* at_y) {
    const conv_functions<T>& k = conv_of<T>();
    const Int in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
    const Int terms = s.in_channels * s.kernel[0] * s.kernel[1] * s.kernel[2];
    const Int slab_size = p.slab.channel * s.in_channels;
    std::memset(w, 0, static_cast<std::size_t>(rows * terms) * sizeof(T));
    Axis cut = p.slab.axis[p.cut];
    const Axis* axis[3] = {&p.slab.axis[0], &p.slab.axis[1], &p.slab.axis[2]};
    axis[p.cut] = &cut;
    for (Int piece = p.pieces * block / p.blocks; piece < p.pieces * (block + 1) / p.blocks;
         ++piece) {
        const Int part = piece % p.parts, n0 = piece / p.parts * p.images;
        const Int images = least(p.images, s.batch - n0);
        const Int from = part * p.part, to = least(from + p.part, s.out[p.cut]);
        if (p.parts > 1) cut.place(from * s.stride[p.cut] - s.padding[p.cut]);
        // What is outside of the images stays zero from one piece to the next, unless the part
        // changes.
        if (p.parts > 1) std::memset(x_slab, 0, static_cast<std::size_t>(slab_size) * sizeof(T));
        for (Int n = 0; n < images; ++n) {
            const T* source = x + ((n0 + n) * s.groups + group) * s.in_channels * in;
            fill(p.slab, axis, s.in_channels, source, x_slab + n * slab_size);
        }
        const T* y_here = y + ((n0 * s.groups + group) * s.out_channels + row) * out;
        if (p.layout == Rows::by_channel) {
            const Int each = out / s.out[p.cut] * (to - from);
            transpose_y(s, p, k.lanes(), images, rows, from, to, y_here, y_copy);
            ConvLanes<T> sums;
            sums.rows = terms;
            sums.terms = images * each;
            sums.y_step = terms;
            sums.at_row = p.offset;
            sums.at_term = at_x;
            sums.at_y = p.numbers;
            sums.x = x_slab;
            sums.m = y_copy;
            sums.add = true;
            for (Int r = 0; r < rows;) {
                const int width = width_of(rows - r, k.lanes());
                sums.channels = least(width, rows - r);
                sums.y = w + r * terms;
                k.by_channels(width, sums);
                sums.m += width * sums.terms;
                r += width;
            }
            continue;
        }
        ConvSums<T> sums;
        sums.y = y_here;
        sums.y_step = out;
        if (p.layout != Rows::in_place) {
            // Zeros times what lies in the gaps must be zero.
            if (!update_of<T>().finite(p.images * slab_size, x_slab)) return false;
            for (Int n = 0; n < images; ++n)
                copy_y(s, p, k.lanes(), rows, from, to,
                       y_here + n * s.groups * s.out_channels * out,
                       y_copy + n * rows * p.y_length);
            sums.y = y_copy;
            sums.y_step = p.y_length;
        }
        sums.terms = terms;
        sums.vectors = images * p.vectors;
        sums.w_step = terms;
        sums.offset = p.offset;
        sums.x = x_slab;
        sums.at_x = at_x;
        sums.at_y = at_y;
        for (Int r = 0; r < rows;) {
            const int tile = k.sum_rows(rows - r);
            sums.rows = tile;
            sums.w = w + r * terms;
            k.sums(tile, sums);
            sums.y += tile * sums.y_step;
            r += tile;
        }
    }
    return true;
}

template <class T>
void add_blocks(Int blocks, Int n, const T* parts, T* out) {
    parallel_for(n, 1 << 16, [&](Int begin, Int end) {
        std::memcpy(out + begin, parts + begin, static_cast<std::size_t>(end - begin) * sizeof(T));
        for (Int b = 1; b < blocks; ++b) {
            const T* part = parts + b * n;
            for (Int i = begin; i < end; ++i) out[i] += part[i];
        }
    });
}

}  // namespace

template <class T>
ConvResult conv_by_w(const ConvShape& s, const T* x, const T* y, T* w) {
    if (winograd_by_w(s, x, y, w) == ConvResult::done) return ConvResult::done;
    if (pairs_by_w(s, x, y, w) == ConvResult::done) return ConvResult::done;
    if (depthwise_by_w(s, x, y, w) == ConvResult::done) return ConvResult::done;
    const int lanes = conv_of<T>().lanes();
    Plan p;
    if (!make_plan<T>(s, lanes, p)) return ConvResult::unsuited;
    const Int places = s.kernel[0] * s.kernel[1] * s.kernel[2], terms = places * s.in_channels;
    const Int weights = s.groups * s.out_channels * terms;
    Scratch memory(0,
                   static_cast<std::size_t>(terms) * 2 * sizeof(Int) +
                       static_cast<std::size_t>(p.blocks > 1 ? p.blocks * weights : 0) * sizeof(T));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Int* offset = static_cast<Int*>(memory.get());
    p.offset = offset;
    p.numbers = offset + terms;
    for (Int i = 0; i < terms; ++i) offset[terms + i] = i;
    T* partial = p.blocks > 1 ? reinterpret_cast<T*>(offset + 2 * terms) : w;
    find_offsets(s, p.slab, offset);

    const Int slab = p.slab.channel * s.in_channels * p.images + BEYOND;
    const Int copy = p.y_length * padded(p.rows, lanes) * p.images, vectors = p.vectors * p.images;
    if (slab > MAX_ELEMENTS || copy > MAX_ELEMENTS) return ConvResult::unsuited;
    const std::size_t bytes = static_cast<std::size_t>(slab + copy) * sizeof(T) +
                              static_cast<std::size_t>(vectors) * 2 * sizeof(Int);
    std::atomic<bool> failed{false}, infinite{false};
    const auto work = [&](Int begin, Int end) {
        Scratch own(1, bytes);
        if (own.get() == nullptr) {
            failed.store(true);
            return;
        }
        Int* at_x = static_cast<Int*>(own.get());
        Int* at_y = at_x + vectors;
        T* x_slab = reinterpret_cast<T*>(at_y + vectors);
        T* y_copy = x_slab + slab;
        std::memset(x_slab, 0, static_cast<std::size_t>(slab) * sizeof(T));
        Int laid_out = -1;
        for (Int item = begin; item < end; ++item) {
            const Int g = item % s.groups, rest = item / s.groups;
            const Int row = rest % p.row_blocks * p.rows, block = rest / p.row_blocks;
            const Int rows = least(p.rows, s.out_channels - row);
            if (rows != laid_out) positions(s, p, lanes, rows, at_x, at_y);
            laid_out = rows;
            T* out = partial + block * weights + (g * s.out_channels + row) * terms;
            if (!run_block(s, p, block, g, row, rows, x, y, out, x_slab, y_copy, at_x, at_y))
                infinite.store(true);
        }
    };
    const Int items = p.blocks * p.row_blocks * s.groups;
    const double each = static_cast<double>(weights) / static_cast<double>(items) *
                        static_cast<double>(s.batch) *
                        static_cast<double>(s.out[0] * s.out[1] * s.out[2]);
    const Int grain =
        each > static_cast<double>(WORK) ? 1 : ceil_div(WORK, most(static_cast<Int>(each), 1));
    parallel_for(items, grain, work);
    if (failed.load()) return ConvResult::no_memory;
    if (infinite.load()) return ConvResult::unsuited;
    if (p.blocks > 1) add_blocks(p.blocks, weights, partial, w);
    return ConvResult::done;
}

template ConvResult conv_by_w(const ConvShape&, const float*, const float*, float*);
template ConvResult conv_by_w(const ConvShape&, const double*, const double*, double*);

}  // namespace chainrule
