// Where Winograd's algorithm is used, and how its work is shared: see winograd.hpp.
//
// Rows of tiles are taken some at a time, so that what they become stays in the cache. For each
// such block the threads share the tiles first and then the channels of the result. Each result
// comes from one thread and is summed in one order, whatever the threads.
#include <atomic>

#include "conv.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

using Int = std::int64_t;

constexpr Int P = WINOGRAD_PLACES;
// What the tiles of a block become takes about so much, and the rows of one part so much.
constexpr Int BLOCK_BYTES = 4 << 20, GRADIENT_BYTES = 6 << 20, STRIP_BYTES = 192 << 10;
// Tiles whose products are turned into results at a time.
constexpr Int TOGETHER = 64;
// A cache line between places, lest they all lie in the same part of the cache.
constexpr Int LINE = 16;

bool in_use = true;

Int least(Int a, Int b) { return a < b ? a : b; }
Int most(Int a, Int b) { return a > b ? a : b; }
Int ceil_div(Int a, Int b) { return (a + b - 1) / b; }
Int up_to(Int n, Int step) { return ceil_div(n, step) * step; }

// One image with a source, padded, and a result, each with some channels of one group.
struct Problem {
    Int batch, groups, source_channels, channels;  // of the source, of the result
    Int source[2], result[2], padding[2];
    Int down, across, rows_of_tiles;

    Int tiles() const { return rows_of_tiles * across; }
    void count() {
        down = ceil_div(result[0], 4);
        across = ceil_div(result[1], 4);
        rows_of_tiles = batch * down;
    }
};

bool has_form(const ConvShape& s) {
    for (int a = 1; a < 3; ++a)
        if (s.kernel[a] != 3 || s.stride[a] != 1 || s.dilation[a] != 1 || s.padding[a] < 0 ||
            s.padding[a] > 2)
            return false;
    return s.kernel[0] == 1 && s.in[0] == 1 && s.out[0] == 1 && s.padding[0] == 0 && in_use;
}

// Pairs of a result and a place of the kernel along one dimension that are not with a zero around.
double pairs(Int source, Int result, Int padding) {
    double n = 0;
    for (Int i = 0; i < 3; ++i)
        n += static_cast<double>(
            most(least(source + padding - i, result) - most(padding - i, 0), 0));
    return n;
}

// Whether it is sooner done than the plain sum. Costs in multiplications of vectors, measured: what
// a tile takes for each channel, and a weight.
bool pays(const Problem& p, double for_source, double for_result, double for_weight) {
    const double in = static_cast<double>(p.source_channels), out = static_cast<double>(p.channels),
                 tiles = static_cast<double>(p.tiles());
    if (in < 16 || out < 16) return false;
    const double plain = pairs(p.source[0], p.result[0], p.padding[0]) *
                         pairs(p.source[1], p.result[1], p.padding[1]) *
                         static_cast<double>(p.batch) * in * out;
    const double own =
        tiles * (P * in * out + for_source * in + for_result * out) + for_weight * in * out;
    return own < 0.85 * plain;
}

// Memory and sizes of a block of rows of tiles.
template <class T>
struct Tiles {
    Int rows;  // at most in a block
    Int place, tile, block;
    T* memory;

    static Int lanes() { return conv_of<T>().lanes(); }

    // Tile by tile with all channels, or blocks of channels with all tiles each.
    void tile_by_tile(Int tiles, Int channels) {
        tile = up_to(channels, 2 * lanes());
        place = tiles * tile + LINE;
        block = 2 * lanes();
    }
    void by_blocks(Int tiles, Int channels) {
        tile = 2 * lanes();
        block = tiles * tile;
        place = ceil_div(channels, tile) * block + LINE;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(P * place) * sizeof(T); }
};

// What rows of tiles [first, first + rows) of a group become, rows of several images shared.
template <class T>
bool fill_tiles(const Problem& p, const Tiles<T>& to, bool values, Int channels, const Int* size,
                const Int* padding, Int first, Int rows, Int group, const T* from) {
    const auto kernel = values ? conv_of<T>().winograd_values : conv_of<T>().winograd_data;
    const Int lanes = conv_of<T>().lanes(), padded = up_to(channels, lanes);
    const Int strip = most(STRIP_BYTES / static_cast<Int>(sizeof(T)) / (padded * size[1] * 4), 1);
    const std::size_t bytes =
        static_cast<std::size_t>(padded * (least(4 * strip + 2, size[0]) * size[1] + 1)) *
        sizeof(T);
    std::atomic<bool> failed{false};
    const Int grain = ceil_div(1 << 15, most(p.across * 16 * channels, 1));
    parallel_for(rows, grain, [&](Int begin, Int end) {
        Scratch memory(1, bytes);
        if (memory.get() == nullptr) return failed.store(true);
        WinogradTiles<T> t;
        t.channels = channels;
        t.height = size[0];
        t.width = size[1];
        t.padding[0] = padding[0];
        t.padding[1] = padding[1];
        t.tiles_across = p.across;
        t.to_place = to.place;
        t.to_tile = to.tile;
        t.to_block = to.block;
        t.scratch = static_cast<T*>(memory.get());
        while (begin < end) {
            const Int image = (first + begin) / p.down;
            t.first_row = (first + begin) % p.down;
            t.rows = least(least(end - begin, p.down - t.first_row), strip);
            t.image = from + (image * p.groups + group) * channels * size[0] * size[1];
            t.out = to.memory + begin * p.across * to.tile;
            kernel(t);
            begin += t.rows;
        }
    });
    return !failed.load();
}

// Where the weights of a group lie.
template <class T>
struct Weights {
    Int row_step, channel_step, group_step;
    bool turned;
    const T *w, *end;
};

template <class T>
bool fill_results(const Problem& p, const Tiles<T>& v, const Weights<T>& w, Int first, Int rows,
                  Int group, T* y, std::atomic<bool>* failed) {
    const conv_functions<T>& k = conv_of<T>();
    const Int width = 2 * k.lanes(), blocks = ceil_div(p.channels, width);
    const Int tiles = rows * p.across, size = p.result[0] * p.result[1];
    // Parts of the tiles where there are few blocks of channels for the threads to share.
    const Int parts = blocks >= 16 ? 1 : least(ceil_div(tiles, TOGETHER), ceil_div(16, blocks));
    const Int together = least(TOGETHER, tiles);
    const Int weights = P * p.source_channels * width;
    const std::size_t bytes = static_cast<std::size_t>(weights + P * together * width) * sizeof(T);
    std::atomic<bool> infinite{false};
    parallel_for(blocks * parts, 1, [&](Int begin, Int end) {
        Scratch memory(1, bytes);
        if (memory.get() == nullptr) return failed->store(true);
        T* u = static_cast<T*>(memory.get());
        T* products = u + weights;
        Int ready = -1;
        for (Int item = begin; item < end; ++item) {
            const Int block = item / parts, part = item % parts, row = block * width;
            const Int count = least(width, p.channels - row);
            if (block != ready)
                k.winograd_weights({count, p.source_channels, w.row_step, w.channel_step, w.turned,
                                    w.w + group * w.group_step + row * w.row_step, w.end, u});
            ready = block;
            const Int last = tiles * (part + 1) / parts;
            for (Int t = tiles * part / parts; t < last; t += together) {
                const Int n = least(together, last - t);
                for (Int place = 0; place < P; ++place)
                    k.winograd_product(
                        n, p.source_channels, v.memory + place * v.place + t * v.tile, v.tile, 1,
                        u + place * p.source_channels * width, false, products + place * n * width);
                const bool finite =
                    k.winograd_results({first * p.across + t, n, count, p.result[0], p.result[1],
                                        p.down, p.across, p.groups * p.channels * size, products,
                                        y + (group * p.channels + row) * size});
                if (!finite) infinite.store(true);
            }
        }
    });
    return !infinite.load();
}

template <class T>
ConvResult convolve(const Problem& p, const Weights<T>& w, const T* x, T* y) {
    Tiles<T> v;
    const Int row_bytes =
        P * p.across * up_to(p.source_channels, 2 * v.lanes()) * static_cast<Int>(sizeof(T));
    v.rows = least(p.rows_of_tiles, most(BLOCK_BYTES / row_bytes, ceil_div(TOGETHER, p.across)));
    v.tile_by_tile(v.rows * p.across, p.source_channels);
    Scratch memory(0, v.bytes());
    if (memory.get() == nullptr) return ConvResult::no_memory;
    v.memory = static_cast<T*>(memory.get());
    std::atomic<bool> failed{false};
    for (Int group = 0; group < p.groups; ++group)
        for (Int first = 0; first < p.rows_of_tiles; first += v.rows) {
            const Int rows = least(v.rows, p.rows_of_tiles - first);
            if (!fill_tiles(p, v, false, p.source_channels, p.source, p.padding, first, rows, group,
                            x))
                return ConvResult::no_memory;
            if (!fill_results(p, v, w, first, rows, group, y, &failed)) return ConvResult::unsuited;
            if (failed.load()) return ConvResult::no_memory;
        }
    return ConvResult::done;
}

Problem problem_of(const ConvShape& s) {
    Problem p;
    p.batch = s.batch;
    p.groups = s.groups;
    p.source_channels = s.in_channels;
    p.channels = s.out_channels;
    for (int a = 0; a < 2; ++a) {
        p.source[a] = s.in[a + 1];
        p.result[a] = s.out[a + 1];
        p.padding[a] = s.padding[a + 1];
    }
    p.count();
    return p;
}

}  // namespace

bool winograd_in_use() { return in_use; }
void use_winograd(bool on) { in_use = on; }

template <class T>
ConvResult winograd_by_y(const ConvShape& s, const T* x, const T* w, T* y) {
    if (sizeof(T) != sizeof(float) || !has_form(s)) return ConvResult::unsuited;
    const Problem p = problem_of(s);
    if (!pays(p, 400, 300, 160)) return ConvResult::unsuited;
    const Int step = 9 * s.in_channels;
    const Weights<T> weights = {step,  9, s.out_channels * step,
                                false, w, w + s.groups * s.out_channels * step};
    return convolve(p, weights, x, y);
}

// The gradient by x is a convolution of y with the kernels turned.
template <class T>
ConvResult winograd_by_x(const ConvShape& s, const T* y, const T* w, T* x) {
    if (sizeof(T) != sizeof(float) || !has_form(s)) return ConvResult::unsuited;
    Problem p;
    p.batch = s.batch;
    p.groups = s.groups;
    p.source_channels = s.out_channels;
    p.channels = s.in_channels;
    for (int a = 0; a < 2; ++a) {
        p.source[a] = s.out[a + 1];
        p.result[a] = s.in[a + 1];
        p.padding[a] = 2 - s.padding[a + 1];
    }
    p.count();
    if (!pays(p, 400, 300, 160)) return ConvResult::unsuited;
    const Int step = 9 * s.in_channels;
    const Weights<T> weights = {9,    step, s.out_channels * step,
                                true, w,    w + s.groups * s.out_channels * step};
    return convolve(p, weights, y, x);
}

template <class T>
ConvResult winograd_by_w(const ConvShape& s, const T* x, const T* y, T* w) {
    if (sizeof(T) != sizeof(float) || !has_form(s)) return ConvResult::unsuited;
    const Problem p = problem_of(s);
    if (!pays(p, 400, 250, 160)) return ConvResult::unsuited;
    const conv_functions<T>& k = conv_of<T>();
    const Int width = 2 * k.lanes(), size = static_cast<Int>(sizeof(T));
    // Blocks of both channels whose weights are found together.
    const Int down = ceil_div(s.out_channels, width), across = ceil_div(s.in_channels, width);
    const Int each = P * width * width;
    const Int row_bytes = P * p.across * (down + across) * width * size;
    // Sums that wait for the next block of tiles take memory, too.
    const Int waiting = down * across * each * size;
    const bool whole = p.rows_of_tiles * row_bytes <= GRADIENT_BYTES + waiting;
    const Int rows = whole ? p.rows_of_tiles : most(GRADIENT_BYTES / row_bytes, 1);
    Tiles<T> v, u;
    v.by_blocks(rows * p.across, s.in_channels);
    u.by_blocks(rows * p.across, s.out_channels);
    Scratch memory(0, v.bytes() + u.bytes() + (whole ? 0 : static_cast<std::size_t>(waiting)));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    v.memory = static_cast<T*>(memory.get());
    u.memory = v.memory + P * v.place;
    T* kept = u.memory + P * u.place;
    std::atomic<bool> failed{false}, infinite{false};
    const Int none[2] = {0, 0};
    for (Int group = 0; group < s.groups; ++group)
        for (Int first = 0; first < p.rows_of_tiles; first += rows) {
            const Int count = least(rows, p.rows_of_tiles - first), tiles = count * p.across;
            if (!fill_tiles(p, v, false, s.in_channels, p.source, p.padding, first, count, group,
                            x) ||
                !fill_tiles(p, u, true, s.out_channels, p.result, none, first, count, group, y))
                return ConvResult::no_memory;
            parallel_for(down * across, 1, [&](Int begin, Int end) {
                Scratch own(1, whole ? static_cast<std::size_t>(each * size) : 0);
                if (whole && own.get() == nullptr) return failed.store(true);
                for (Int item = begin; item < end; ++item) {
                    const Int i = item / across, j = item % across;
                    const Int high = least(width, s.out_channels - i * width);
                    T* sums = whole ? static_cast<T*>(own.get()) : kept + item * each;
                    for (Int place = 0; place < P; ++place)
                        k.winograd_product(high, tiles, u.memory + place * u.place + i * u.block, 1,
                                           u.tile, v.memory + place * v.place + j * v.block,
                                           first > 0, sums + place * width * width);
                    if (first + count < p.rows_of_tiles) continue;
                    const Int row = group * s.out_channels + i * width;
                    if (!k.winograd_gradient(
                            high, least(width, s.in_channels - j * width), width * width, sums,
                            w + (row * s.in_channels + j * width) * 9, s.in_channels * 9))
                        infinite.store(true);
                }
            });
            if (failed.load()) return ConvResult::no_memory;
        }
    return infinite.load() ? ConvResult::unsuited : ConvResult::done;
}

#define CHAINRULE_EACH(T)                                                        \
    template ConvResult winograd_by_y(const ConvShape&, const T*, const T*, T*); \
    template ConvResult winograd_by_x(const ConvShape&, const T*, const T*, T*); \
    template ConvResult winograd_by_w(const ConvShape&, const T*, const T*, T*);
CHAINRULE_EACH(float)
CHAINRULE_EACH(double)
#undef CHAINRULE_EACH

}  // namespace chainrule
