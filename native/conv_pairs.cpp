// Convolution over pairs of an output and an element of the input: see pairs.hpp.
//
// Some images at a time are turned so that their channels lie beside each other; then the threads
// share the channels of the result. Every sum has one order, whatever the threads.
#include <atomic>
#include <cstring>

#include "conv_slab.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "update.hpp"

namespace chainrule {
namespace {

using namespace conv_slab;

// What is turned at a time takes about so much.
constexpr Int BLOCK_BYTES = 2 << 20, GRADIENT_BYTES = 6 << 20;
// Images are put together until they have so many outputs.
constexpr Int TOGETHER = 128;
constexpr Int MAX_PLACES = 4096, MAX_PAIRS = 1 << 22;

Int up_to(Int n, Int step) { return ceil_div(n, step) * step; }
Int volume(const Int* n) { return n[0] * n[1] * n[2]; }

struct Sizes {
    Int in, out, places;
    Int together;  // images
    bool fits;

    explicit Sizes(const ConvShape& s)
        : in(volume(s.in)), out(volume(s.out)), places(volume(s.kernel)) {
        together = least(ceil_div(TOGETHER, out), s.batch);
        fits = places <= MAX_PLACES && places * out <= MAX_PAIRS;
    }
    Int pairs() const { return places * together * out; }  // at most
};

// The pairs of each place for images that are together, those of the first image first.
struct Pairs {
    Int *outputs, *elements;  // where they lie
    Int* count;               // of each place, in one image
    Int each;                 // room for each place

    static Int room(const Sizes& n) { return 2 * n.pairs() + n.places; }

    Pairs(const ConvShape& s, const Sizes& n, Int output_step, Int element_step, Int* memory)
        : outputs(memory),
          elements(memory + n.pairs()),
          count(memory + 2 * n.pairs()),
          each(n.together * n.out) {
        Int k[3], place = 0;
        for (k[0] = 0; k[0] < s.kernel[0]; ++k[0])
            for (k[1] = 0; k[1] < s.kernel[1]; ++k[1])
                for (k[2] = 0; k[2] < s.kernel[2]; ++k[2], ++place)
                    find(s, n, k, place, output_step, element_step);
    }

  private:
    void find(const ConvShape& s, const Sizes& n, const Int* k, Int place, Int output_step,
              Int element_step) {
        Int from[3], to[3], start[3], o[3];
        for (int a = 0; a < 3; ++a) {
            start[a] = k[a] * s.dilation[a] - s.padding[a];
            from[a] = most(ceil_div(-start[a], s.stride[a]), 0);
            to[a] = least(ceil_div(s.in[a] - start[a], s.stride[a]), s.out[a]);
        }
        Int *output = outputs + place * each, *element = elements + place * each, found = 0;
        for (o[0] = from[0]; o[0] < to[0]; ++o[0])
            for (o[1] = from[1]; o[1] < to[1]; ++o[1])
                for (o[2] = from[2]; o[2] < to[2]; ++o[2], ++found) {
                    Int at[3];
                    for (int a = 0; a < 3; ++a) at[a] = start[a] + o[a] * s.stride[a];
                    output[found] = ((o[0] * s.out[1] + o[1]) * s.out[2] + o[2]) * output_step;
                    element[found] = ((at[0] * s.in[1] + at[1]) * s.in[2] + at[2]) * element_step;
                }
        count[place] = found;
        for (Int i = found; i < n.together * found; ++i) {
            output[i] = output[i - found] + n.out * output_step;
            element[i] = element[i - found] + n.in * element_step;
        }
    }
};

// --- results -------------------------------------------------------------------------------------

// A convolution, or the gradient by its input: rows of the result from rows of the source.
template <class T>
struct Rows {
    Int batch, groups, depth, channels;  // depth: the channels of the source
    Int source, result, places, together;
    Int row_step, depth_step;  // of weights; places follow each other
    const Int *source_at, *result_at, *count;
    Int each;

    // The weights of some channels as [place][depth][2 * lanes].
    void pack(Int rows, const T* w, T* some, T* out) const {
        const conv_functions<T>& k = conv_of<T>();
        const Int lanes = k.lanes(), width = 2 * lanes, columns = up_to(places, lanes);
        if (rows < width)
            std::memset(static_cast<void*>(out), 0,
                        static_cast<std::size_t>(places * depth * width) * sizeof(T));
        if (places == 1 && depth_step == 1)
            return k.turn_pixels(rows, depth, w, row_step, out, width);
        const std::size_t bytes = static_cast<std::size_t>(rows) * sizeof(T);
        T *copy = some, *turned = some + width * columns + columns;
        for (Int d = 0; d < depth; ++d, w += depth_step) {
            if (places == 1) {
                std::memcpy(out + d * width, w, bytes);
                continue;
            }
            // In a copy it does no harm to turn more columns than there are places.
            const Int step = row_step == places ? places : columns;
            if (row_step == places)
                std::memcpy(copy, w, static_cast<std::size_t>(places) * bytes);
            else
                for (Int r = 0; r < rows; ++r)
                    for (Int p = 0; p < places; ++p) copy[r * columns + p] = w[r * row_step + p];
            k.turn_pixels(rows, columns, copy, step, turned, width);
            for (Int p = 0; p < places; ++p)
                std::memcpy(out + (p * depth + d) * width, turned + p * width, bytes);
        }
    }

    static Int room_to_pack(Int places) {
        const Int lanes = conv_of<T>().lanes(), columns = up_to(places, lanes);
        return (4 * lanes + 1) * columns;
    }

    bool run(const T* from, const T* w, Int group_step, T* to, T* turned, Int images) const {
        std::atomic<bool> failed{false};
        for (Int group = 0; group < groups; ++group)
            for (Int first = 0; first < batch; first += images)
                if (!block(from, w + group * group_step, to, turned, group, first,
                           least(images, batch - first)))
                    return false;
        return true;
    }

  private:
    bool block(const T* from, const T* w, T* to, T* turned, Int group, Int first,
               Int images) const {
        const conv_functions<T>& k = conv_of<T>();
        const Int lanes = k.lanes(), width = 2 * lanes, padded = up_to(depth, lanes);
        parallel_for(images, ceil_div(1 << 16, source * depth), [&](Int i, Int end) {
            for (; i < end; ++i)
                k.turn_pixels(depth, source, from + ((first + i) * groups + group) * depth * source,
                              source, turned + i * source * padded, padded);
        });
        const Int sets = ceil_div(images, together), blocks = ceil_div(channels, width);
        const Int parts = blocks >= 16 ? 1 : least(sets, ceil_div(16, blocks));
        const Int weights = places * depth * width, some = room_to_pack(places);
        const std::size_t bytes =
            static_cast<std::size_t>(weights + some + together * result * width) * sizeof(T);
        const double work = static_cast<double>(images * result) *
                            static_cast<double>(depth * places) * static_cast<double>(channels) /
                            static_cast<double>(blocks * parts);
        std::atomic<bool> failed{false};
        parallel_for(
            blocks * parts, work > 5e5 ? 1 : static_cast<Int>(5e5 / work) + 1,
            [&](Int begin, Int end) {
                Scratch memory(1, bytes);
                if (memory.get() == nullptr) return failed.store(true);
                T* packed = static_cast<T*>(memory.get());
                T* sums = packed + weights + some;
                Int ready = -1;
                for (Int item = begin; item < end; ++item) {
                    const Int row = item / parts * width, part = item % parts;
                    const Int rows = least(width, channels - row);
                    if (item / parts != ready)
                        pack(rows, w + row * row_step, packed + weights, packed);
                    ready = item / parts;
                    for (Int set = sets * part / parts; set < sets * (part + 1) / parts; ++set) {
                        const Int image = set * together, n = least(together, images - image);
                        std::memset(static_cast<void*>(sums), 0,
                                    static_cast<std::size_t>(n * result * width) * sizeof(T));
                        for (Int p = 0; p < places; ++p)
                            k.pair_rows(n * count[p], depth, turned + image * source * padded,
                                        source_at + p * each, packed + p * depth * width, sums,
                                        result_at + p * each);
                        for (Int i = 0; i < n; ++i)
                            k.turn_back(
                                rows, result, sums + i * result * width, width,
                                to + (((first + image + i) * groups + group) * channels + row) *
                                         result,
                                result);
                    }
                }
            });
        return !failed.load();
    }
};

// Whether lanes of channels are well used.
bool fills_lanes(Int channels, Int width) { return channels * 10 >= up_to(channels, width) * 7; }

template <class T>
ConvResult by_rows(const ConvShape& s, bool by_y, const T* from, const T* w, T* to) {
    const conv_functions<T>& k = conv_of<T>();
    const Int lanes = k.lanes(), width = 2 * lanes;
    const Sizes n(s);
    Rows<T> r;
    r.batch = s.batch;
    r.groups = s.groups;
    r.depth = by_y ? s.in_channels : s.out_channels;
    r.channels = by_y ? s.out_channels : s.in_channels;
    r.source = by_y ? n.in : n.out;
    r.result = by_y ? n.out : n.in;
    if (r.depth < 16 || !fills_lanes(r.channels, width) || !n.fits || s.batch * n.out < 16)
        return ConvResult::unsuited;
    r.places = n.places;
    r.together = n.together;
    r.row_step = by_y ? s.in_channels * n.places : n.places;
    r.depth_step = by_y ? n.places : s.in_channels * n.places;
    r.each = n.together * n.out;
    const Int padded = up_to(r.depth, lanes), bytes = r.source * padded * Int{sizeof(T)};
    const Int images = least(s.batch, up_to(most(BLOCK_BYTES / bytes, 1), n.together));
    if (images > MAX_ELEMENTS / (r.source * padded)) return ConvResult::unsuited;
    // The weights times the zeros around x, which are not zero if a weight is infinite.
    const Int weights = s.out_channels * s.in_channels * n.places;
    if (by_y && !update_of<T>().finite(s.groups * weights, w)) return ConvResult::unsuited;
    const Scratch memory(0, static_cast<std::size_t>(Pairs::room(n)) * sizeof(Int) +
                                static_cast<std::size_t>(images * r.source * padded) * sizeof(T));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Int* numbers = static_cast<Int*>(memory.get());
    const Pairs pairs(s, n, by_y ? width : padded, by_y ? padded : width, numbers);
    r.source_at = by_y ? pairs.elements : pairs.outputs;
    r.result_at = by_y ? pairs.outputs : pairs.elements;
    r.count = pairs.count;
    T* turned = reinterpret_cast<T*>(numbers + Pairs::room(n));
    return r.run(from, w, weights, to, turned, images) ? ConvResult::done : ConvResult::no_memory;
}

// --- weights -------------------------------------------------------------------------------------

constexpr Int TALL = 32;

// Blocks of the weights: `height` channels of y by 2 * lanes of x, and of all places one of `cuts`
// parts, where there are few blocks for the threads to share.
struct Grid {
    Int width, height, down, across, cuts, each, places;

    Grid(const ConvShape& s, Int places, Int lanes)
        : width(2 * lanes), height(TALL), places(places) {
        across = ceil_div(s.in_channels, width);
        cuts = least(ceil_div(16, across * ceil_div(s.out_channels, height)), places);
        while (height > 8 && ceil_div(s.out_channels, height) * across * cuts < 8) height /= 2;
        down = ceil_div(s.out_channels, height);
        each = ceil_div(places, cuts) * height * width;
    }
    Int items() const { return down * across * cuts; }
    Int first_place(Int cut) const { return places * cut / cuts; }
};

// Sums [place][row][2 * lanes] as weights (row, column, place).
template <class T>
void put_weights(Int rows, Int columns, Int places, Int height, Int width, const T* sums, T* some,
                 T* w, Int row_step, Int column_step) {
    const conv_functions<T>& k = conv_of<T>();
    const Int wide = up_to(places, k.lanes());
    for (Int r = 0; r < rows; ++r, w += row_step, sums += width) {
        if (places == 1) {
            for (Int c = 0; c < columns; ++c) w[c * column_step] = sums[c];
            continue;
        }
        k.turn_back(width, wide, sums, height * width, some, wide);
        for (Int c = 0; c < columns; ++c)
            std::memcpy(w + c * column_step, some + c * wide,
                        static_cast<std::size_t>(places) * sizeof(T));
    }
}

}  // namespace

template <class T>
ConvResult pairs_by_y(const ConvShape& s, const T* x, const T* w, T* y) {
    return by_rows(s, true, x, w, y);
}

template <class T>
ConvResult pairs_by_x(const ConvShape& s, const T* y, const T* w, T* x) {
    return by_rows(s, false, y, w, x);
}

template <class T>
ConvResult pairs_by_w(const ConvShape& s, const T* x, const T* y, T* w) {
    const conv_functions<T>& k = conv_of<T>();
    const Int lanes = k.lanes(), size = sizeof(T);
    const Sizes n(s);
    const Grid grid(s, n.places, lanes);
    if (s.out_channels < 8 || !fills_lanes(s.in_channels, grid.width) || !n.fits ||
        s.batch * n.out < 16 || n.in > 3 * n.out * n.places)
        return ConvResult::unsuited;
    // Blocks of channels of y, too, so that what is read together lies together.
    const Int y_blocks = ceil_div(s.out_channels, TALL);
    const Int x_each = n.in * grid.across * grid.width, y_each = n.out * y_blocks * TALL;
    const Int images =
        least(s.batch, up_to(most(GRADIENT_BYTES / ((x_each + y_each) * size), 1), n.together));
    if (images > MAX_ELEMENTS / (x_each + y_each)) return ConvResult::unsuited;
    // What y is times the zeros around x, which is not zero if it is infinite.
    if (!update_of<T>().finite(s.batch * s.groups * s.out_channels * n.out, y))
        return ConvResult::unsuited;
    const bool whole = images == s.batch;
    const Int beyond = up_to(n.places, lanes) * grid.height * grid.width;
    const Int some = up_to(n.places, lanes) * grid.width;
    const Int kept_size = whole ? 0 : grid.items() * grid.each + beyond;
    const Scratch memory(
        0, static_cast<std::size_t>(Pairs::room(n)) * sizeof(Int) +
               static_cast<std::size_t>(images * (x_each + y_each) + kept_size) * sizeof(T));
    if (memory.get() == nullptr) return ConvResult::no_memory;
    Int* numbers = static_cast<Int*>(memory.get());
    const Pairs pairs(s, n, TALL, grid.width, numbers);
    T* of_x = reinterpret_cast<T*>(numbers + Pairs::room(n));
    T* of_y = of_x + images * x_each;
    T* kept = of_y + images * y_each;
    const Int block = images * n.in * grid.width;  // of channels of x
    const std::size_t bytes = static_cast<std::size_t>((whole ? beyond : 0) + some) * sizeof(T);
    std::atomic<bool> failed{false};

    const auto turn = [&](Int group, Int first, Int i, Int end) {
        for (; i < end; ++i) {
            const Int image = (first + i) * s.groups + group;
            const T* from = x + image * s.in_channels * n.in;
            for (Int j = 0; j < grid.across; ++j)
                k.turn_pixels(least(grid.width, s.in_channels - j * grid.width), n.in,
                              from + j * grid.width * n.in, n.in,
                              of_x + j * block + i * n.in * grid.width, grid.width);
            from = y + image * s.out_channels * n.out;
            for (Int j = 0; j < y_blocks; ++j)
                k.turn_pixels(least(TALL, s.out_channels - j * TALL), n.out,
                              from + j * TALL * n.out, n.out,
                              of_y + (j * images + i) * n.out * TALL, TALL);
        }
    };
    const auto add_up = [&](Int group, Int first, Int count, Int begin, Int end) {
        Scratch own(1, bytes);
        if (own.get() == nullptr) return failed.store(true);
        T* turned = static_cast<T*>(own.get());
        for (Int item = begin; item < end; ++item) {
            const Int first_place = grid.first_place(item % grid.cuts);
            const Int places = grid.first_place(item % grid.cuts + 1) - first_place;
            const Int j = item / grid.cuts % grid.across;
            const Int row = item / grid.cuts / grid.across * grid.height;
            const Int rows = least(grid.height, s.out_channels - row);
            const T* tall = of_y + row / TALL * images * n.out * TALL + row % TALL;
            T* sums = whole ? turned + some : kept + item * grid.each;
            if (first == 0)
                std::memset(static_cast<void*>(sums), 0,
                            static_cast<std::size_t>(grid.each) * sizeof(T));
            for (Int image = 0; image < count; image += n.together)
                for (Int i = 0, p = first_place; i < places; ++i, ++p)
                    k.pair_sums(rows, least(n.together, count - image) * pairs.count[p],
                                tall + image * n.out * TALL, pairs.outputs + p * pairs.each,
                                of_x + j * block + image * n.in * grid.width,
                                pairs.elements + p * pairs.each,
                                sums + i * grid.height * grid.width);
            if (first + count < s.batch) continue;
            const Int at = (group * s.out_channels + row) * s.in_channels + j * grid.width;
            put_weights(rows, least(grid.width, s.in_channels - j * grid.width), places,
                        grid.height, grid.width, sums, turned, w + at * n.places + first_place,
                        s.in_channels * n.places, n.places);
        }
    };
    for (Int group = 0; group < s.groups; ++group)
        for (Int first = 0; first < s.batch; first += images) {
            const Int count = least(images, s.batch - first);
            parallel_for(count, ceil_div(1 << 16, x_each + y_each),
                         [&](Int begin, Int end) { turn(group, first, begin, end); });
            const double work = static_cast<double>(count * n.out) * static_cast<double>(grid.each);
            parallel_for(grid.items(), work > 5e5 ? 1 : static_cast<Int>(5e5 / work) + 1,
                         [&](Int begin, Int end) { add_up(group, first, count, begin, end); });
            if (failed.load()) return ConvResult::no_memory;
        }
    return ConvResult::done;
}

#define CHAINRULE_EACH(T)                                                     \
    template ConvResult pairs_by_y(const ConvShape&, const T*, const T*, T*); \
    template ConvResult pairs_by_x(const ConvShape&, const T*, const T*, T*); \
    template ConvResult pairs_by_w(const ConvShape&, const T*, const T*, T*);
CHAINRULE_EACH(float)
CHAINRULE_EACH(double)
#undef CHAINRULE_EACH

}  // namespace chainrule
