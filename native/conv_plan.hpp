// Products from a slab, as convolution and the gradient by its input need them: the results in
// passes (sets of results that are sums over the same places of the kernel), cut into parts that
// are shared among the threads. Each result is summed by one thread in one order, whatever the
// parts.
#pragma once

#include <atomic>

#include "conv_slab.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "update.hpp"

namespace chainrule {
namespace conv_plan {

using namespace conv_slab;

// A slab that is larger than this is made in parts, if it can be, to stay in the cache.
constexpr Int SLAB_BYTES = 384 * 1024;
// Slabs of several images that are computed together.
constexpr Int TOGETHER_BYTES = 512 * 1024;
// Fewer multiplications than this are not worth a second thread.
constexpr Int WORK = 1 << 19;
// Elements that a load may reach beyond the slab.
constexpr Int BEYOND = 64;
constexpr int MAX_TILE = 8;

// Results that lie `step` apart in the destination, one for each of `count` places from `base` on.
struct Line {
    Int base, count, start, step;
};

// A set of results that are sums over the same places of the kernel.
struct Pass {
    Int terms, first_offset, first_weight;  // where its offsets and packed weights begin
    int residue[3];
};

// What a convolution and its transpose have in common: results from a slab of the other array.
template <class T>
struct Plan {
    Int batch, groups;
    Int source_channels, result_channels;  // of one group
    Int source_size, result_size;          // elements of a channel
    Int result[3];
    Slab slab;
    int cut;  // the axis along which the result is made in parts, each so long:
    Int part;
    Int parts, group_parts, groups_per_part;
    bool by_channels;  // lanes are channels; then several images are computed together
    bool few;          // so few vectors of positions that registers are idle
    Int images;
    Int passes;
    Int offsets, weights;  // how many there are, of one group
    const Pass* pass;
    const Int* offset;
    const T* packed;
    // For results near an edge, which few places of the kernel reach: for each residue along `cut`,
    // the places in the slab of its part of the kernel, the outermost in the order of the terms. Or
    // null.
    const Int *band_first, *band_place;
};

// Some of the terms of a pass, those that reach the results at hand.
struct Terms {
    Int skipped, count;
};

static inline Int product(const Int* n) { return n[0] * n[1] * n[2]; }

// The width of the next panel if so many channels are left.
template <class T>
int panel_width(const conv_functions<T>& k, Int left) {
    return left > k.lanes() ? 2 * k.lanes() : k.lanes();
}

// How many rows of the packed weights belong together, if so many are left.
template <class T>
int next_rows(const conv_functions<T>& k, const Plan<T>& p, Int left) {
    return p.by_channels ? panel_width(k, left) : k.tile_rows(left);
}

// All rows of the packed weights.
template <class T>
Int padded_rows(const conv_functions<T>& k, const Plan<T>& p) {
    Int row = 0;
    while (row < p.result_channels) row += next_rows(k, p, p.result_channels - row);
    return row;
}

// How the vectors of a line pattern lie: row by row, or over the gaps between rows.
struct Layout {
    bool flat, direct;    // direct: the results are written to where they belong
    Int vectors, length;  // length: of a row in the buffer
};

static inline Layout layout_of(const Slab& slab, const Line* line, int lanes) {
    const Int rows = line[0].count * line[1].count;
    const Int row_vectors = rows * ceil_div(line[2].count, lanes);
    const Int length =
        (line[0].count - 1) * slab.pitch[0] + (line[1].count - 1) * slab.pitch[1] + line[2].count;
    const Int flat_vectors = ceil_div(length, lanes);
    const bool in_order = line[2].step == 1 && line[1].step == 1 && line[0].step == 1;
    const bool gapless = length == rows * line[2].count;
    Layout l;
    l.flat = gapless || flat_vectors * 11 < row_vectors * 10;
    l.direct = in_order && (gapless || !l.flat);
    if (!l.flat && !l.direct) l.flat = true;  // the buffer is laid out like the slab
    l.vectors = l.flat ? flat_vectors : row_vectors;
    l.length = flat_vectors * lanes;
    return l;
}

// Where the vectors are read and written; positions of a direct layout count from line[].start.
template <class T>
void positions(const Plan<T>& p, const Line* line, const Layout& l, int lanes, Int* at_x,
               Int* at_y) {
    const Slab& s = p.slab;
    const Int base = line[0].base * s.pitch[0] + line[1].base * s.pitch[1] + line[2].base;
    if (l.flat) {
        for (Int v = 0; v < l.vectors; ++v) {
            at_x[v] = base + v * lanes;
            at_y[v] = v * lanes;
        }
        return;
    }
    for (Int i = 0; i < line[0].count; ++i)
        for (Int j = 0; j < line[1].count; ++j)
            for (Int k = 0; k < line[2].count; k += lanes) {
                *at_x++ = base + i * s.pitch[0] + j * s.pitch[1] + k;
                *at_y++ = (i * p.result[1] + j) * p.result[2] + k;
            }
}

// Brings the results of a tile from the buffer to where they belong.
template <class T>
void spread(const Plan<T>& p, const Line* line, const Layout& l, Int rows, const T* buffer,
            T* out) {
    const Int step = line[2].step, n = line[2].count;
    for (Int r = 0; r < rows; ++r, buffer += l.length, out += p.result_size)
        for (Int i = 0; i < line[0].count; ++i)
            for (Int j = 0; j < line[1].count; ++j) {
                const T* from = buffer + i * p.slab.pitch[0] + j * p.slab.pitch[1];
                T* to = out +
                        ((line[0].start + i * line[0].step) * p.result[1] + line[1].start +
                         j * line[1].step) *
                            p.result[2] +
                        line[2].start;
                if (step == 1)
                    for (Int k = 0; k < n; ++k) to[k] = from[k];
                else
                    for (Int k = 0; k < n; ++k) to[k * step] = from[k];
            }
}

// The results of one pass that no place of the kernel reaches.
template <class T>
void clear(const Plan<T>& p, const Line* line, Int rows, T* out) {
    for (Int r = 0; r < rows; ++r, out += p.result_size)
        for (Int i = 0; i < line[0].count; ++i)
            for (Int j = 0; j < line[1].count; ++j) {
                T* to = out +
                        ((line[0].start + i * line[0].step) * p.result[1] + line[1].start +
                         j * line[1].step) *
                            p.result[2] +
                        line[2].start;
                for (Int k = 0; k < line[2].count; ++k) to[k * line[2].step] = 0;
            }
}

template <class T>
struct Workspace {
    T *slab, *buffer;
    Int *at_x, *at_y;
    Int laid_out = -1;  // the images whose positions are there, -1 if none
};

// All result channels of one group for the results of one pass.
template <class T>
void run_pass(const Plan<T>& p, const Pass& pass, const Line* line, Terms terms, Int group,
              Workspace<T>& space, T* out) {
    if (line[0].count < 1 || line[1].count < 1 || line[2].count < 1) return;
    if (terms.count == 0) return clear(p, line, p.result_channels, out);
    const conv_functions<T>& k = conv_of<T>();
    const Layout l = layout_of(p.slab, line, k.lanes());
    if (space.laid_out != 1) positions(p, line, l, k.lanes(), space.at_x, space.at_y);
    space.laid_out = p.passes > 1 || p.band_first != nullptr ? -1 : 1;
    const Int start = (line[0].start * p.result[1] + line[1].start) * p.result[2] + line[2].start;
    ConvPanel<T> panel;
    panel.terms = terms.count;
    panel.vectors = l.vectors;
    panel.offset = p.offset + pass.first_offset + terms.skipped;
    panel.x = space.slab;
    panel.at_x = space.at_x;
    panel.at_y = space.at_y;
    const T* packed = p.packed + group * p.weights + pass.first_weight;
    panel.limit =
        l.direct ? (line[0].count * line[1].count - 1) * p.result[2] + line[2].count : l.length;
    panel.y_step = l.direct ? p.result_size : l.length;
    for (Int row = 0; row < p.result_channels;) {
        const int tile = k.tile_rows(p.result_channels - row);
        panel.rows = least(tile, p.result_channels - row);
        T* here = out + row * p.result_size;
        panel.y = l.direct ? here + start : space.buffer;
        panel.w = packed + row * pass.terms + terms.skipped * tile;
        k.panel(tile, panel);
        if (!l.direct) spread(p, line, l, panel.rows, space.buffer, here);
        row += tile;
    }
}

template <class T>
void positions_by_channels(const Plan<T>& p, const Line* line, Int images, Int* at_x, Int* at_y) {
    const Int step = p.groups * p.result_channels * p.result_size;
    for (Int n = 0; n < images; ++n)
        for (Int i = 0; i < line[0].count; ++i)
            for (Int j = 0; j < line[1].count; ++j) {
                const Int from = n * p.slab.channel * p.source_channels + line[2].base +
                                 (line[0].base + i) * p.slab.pitch[0] +
                                 (line[1].base + j) * p.slab.pitch[1];
                const Int to = n * step + line[2].start +
                               ((line[0].start + i * line[0].step) * p.result[1] + line[1].start +
                                j * line[1].step) *
                                   p.result[2];
                for (Int l = 0; l < line[2].count; ++l) {
                    *at_x++ = from + l;
                    *at_y++ = to + l * line[2].step;
                }
            }
}

// The same with the lanes on channels, for several images.
template <class T>
void run_pass_by_channels(const Plan<T>& p, const Pass& pass, const Line* line, Terms terms,
                          Int images, Int group, Workspace<T>& space, T* out) {
    if (line[0].count < 1 || line[1].count < 1 || line[2].count < 1) return;
    const Int step = p.groups * p.result_channels * p.result_size;
    if (terms.count == 0) {
        for (Int n = 0; n < images; ++n) clear(p, line, p.result_channels, out + n * step);
        return;
    }
    const conv_functions<T>& k = conv_of<T>();
    const Int each = line[0].count * line[1].count * line[2].count;
    if (space.laid_out < images) positions_by_channels(p, line, images, space.at_x, space.at_y);
    space.laid_out = p.passes > 1 || p.band_first != nullptr ? -1 : images;
    ConvLanes<T> panel;
    panel.rows = images * each;
    panel.terms = terms.count;
    panel.y_step = p.result_size;
    panel.at_row = space.at_x;
    panel.at_term = p.offset + pass.first_offset + terms.skipped;
    panel.at_y = space.at_y;
    panel.x = space.slab;
    const T* packed = p.packed + group * p.weights + pass.first_weight;
    panel.add = false;
    for (Int row = 0; row < p.result_channels;) {
        const int width = panel_width(k, p.result_channels - row);
        panel.channels = least(width, p.result_channels - row);
        panel.y = out + row * p.result_size;
        panel.m = packed + row * pass.terms + terms.skipped * width;
        k.by_channels(width, panel);
        row += width;
    }
}

// Lanes of positions, unless rows are so short that most of them would be idle.
template <class T>
void choose_lanes(Plan<T>& p, const Int* stride) {
    const conv_functions<T>& k = conv_of<T>();
    Line line[3];
    double results = 1;
    for (int a = 0; a < 3; ++a) {
        line[a] = {0, ceil_div(p.result[a], stride[a]), 0, stride[a]};
        results *= static_cast<double>(line[a].count);
    }
    const Layout l = layout_of(p.slab, line, k.lanes());
    const double busy = results / static_cast<double>(l.vectors * k.lanes());
    Int width = 0;
    while (width < p.result_channels) width += panel_width(k, p.result_channels - width);
    const double other = static_cast<double>(p.result_channels) / static_cast<double>(width);
    p.by_channels = other * 0.85 > busy;
    p.few = p.by_channels || l.vectors < 3;
    p.images = 1;
}

// Decides how the result is cut into parts. The results of one pass lie `stride` apart.
template <class T, class Measure>
bool cut_result(Plan<T>& p, Int work, const Int* stride, const Measure& measure) {
    p.cut = p.result[0] > 1 ? 0 : p.result[1] > 1 ? 1 : 2;
    const Int whole = p.result[p.cut];
    p.part = whole;
    if (!measure(p)) return false;
    const Int bytes = p.slab.channel * p.source_channels * static_cast<Int>(sizeof(T));
    choose_lanes(p, stride);
    if (p.by_channels) {
        // As many images together as fit, if that leaves parts for all threads; enough for a tile.
        const Int share = p.batch * p.groups / (2 * num_threads());
        p.images = least(TOGETHER_BYTES / most(bytes, 1), share);
        p.images = most(p.images, ceil_div(24, product(p.result)));
        p.images = least(p.images, p.batch);
    }
    Int parts = ceil_div(bytes, SLAB_BYTES);
    // Few images that are much work: parts for several threads.
    const Int pieces = ceil_div(p.batch, p.images) * p.groups;
    if (pieces < 8) parts = most(parts, least(ceil_div(8, pieces), work / pieces / WORK));
    if (parts > 1) {
        p.part = ceil_div(whole, least(parts, whole));
        if (p.part < whole) {
            if (!measure(p)) return false;
        } else {
            p.part = whole;
        }
    }
    p.parts = ceil_div(whole, p.part);
    const Int each = most(work / pieces / p.parts, 1);
    p.groups_per_part = least(p.groups, most(WORK / each, 1));
    p.group_parts = ceil_div(p.groups, p.groups_per_part);
    return true;
}

// The results along `cut` from `q` on that are reached by the same part of the kernel.
template <class T>
Int next_band(const Plan<T>& p, const Axis& cut, const Pass& pass, const Line& line, Int q,
              Terms* terms) {
    const Int first = p.band_first[pass.residue[p.cut]];
    const Int places = p.band_first[pass.residue[p.cut] + 1] - first;
    const Int* place = p.band_place + first;
    const auto reached = [&](Int at, Int* from, Int* to) {
        *from = 0;
        *to = 0;
        for (Int i = 0; i < places; ++i) {
            const Int here = line.base + at + place[i];
            if (here < cut.phase[0].from || here >= cut.phase[0].to) continue;
            if (*to == 0) *from = i;
            *to = i + 1;
        }
    };
    Int from, to, end = q + 1;
    reached(q, &from, &to);
    for (; end < line.count; ++end) {
        Int a, b;
        reached(end, &a, &b);
        if (a != from || b != to) break;
    }
    const Int each = places > 0 ? pass.terms / places : 0;
    *terms = {from * each, (to - from) * each};
    return end;
}

// One part of the results of some images and groups.
struct Item {
    Int image, images, first_group, groups, from, to;
};

template <class T>
Item item_of(const Plan<T>& p, Int number) {
    const Int part = number % p.parts, rest = number / p.parts;
    const Int image = rest / p.group_parts * p.images;
    const Int first = rest % p.group_parts * p.groups_per_part, from = part * p.part;
    return {image, least(p.images, p.batch - image),
            first, least(p.groups_per_part, p.groups - first),
            from,  least(from + p.part, p.result[p.cut])};
}

template <class T, class Lines>
void run_group(const Plan<T>& p, const Axis* const* axis, const Item& item, Int group,
               const T* source, Workspace<T>& space, const Lines& lines, T* result) {
    const Int step = p.groups * p.source_channels * p.source_size,
              first = item.image * p.groups + group;
    source += first * p.source_channels * p.source_size;
    result += first * p.result_channels * p.result_size;
    for (Int n = 0; n < item.images; ++n)
        fill(p.slab, axis, p.source_channels, source + n * step,
             space.slab + n * p.slab.channel * p.source_channels);
    for (Int i = 0; i < p.passes; ++i) {
        const Pass& pass = p.pass[i];
        Line line[3];
        for (int a = 0; a < 3; ++a)
            line[a] = a == p.cut ? lines(item.from, item.to, a, pass.residue[a])
                                 : lines(0, p.result[a], a, pass.residue[a]);
        const Line whole = line[p.cut];
        for (Int q = 0; q < whole.count;) {
            Terms terms = {0, pass.terms};
            const Int end = p.band_first == nullptr
                                ? whole.count
                                : next_band(p, *axis[p.cut], pass, whole, q, &terms);
            line[p.cut] = {whole.base + q, end - q, whole.start + q * whole.step, whole.step};
            if (p.by_channels)
                run_pass_by_channels(p, pass, line, terms, item.images, group, space, result);
            else
                run_pass(p, pass, line, terms, group, space, result);
            q = end;
        }
    }
}

// The elements that a part needs.
struct Sizes {
    Int slab, buffer, vectors;
};

template <class T>
Sizes sizes_of(const Plan<T>& p) {
    const int lanes = conv_of<T>().lanes();
    Int counts[3] = {p.result[0], p.result[1], p.result[2]};
    counts[p.cut] = p.part;
    const Int slab = p.slab.channel * p.source_channels * p.images + BEYOND;
    if (p.by_channels) return {slab, 0, product(counts) * p.images};
    return {slab, (p.slab.plane / lanes + 2) * lanes * MAX_TILE,
            most(counts[0] * counts[1] * (counts[2] / lanes + 1), p.slab.plane / lanes + 2)};
}

// lines(begin, end, axis, residue) -> Line of the results [begin, end) of a pass; first(begin) ->
// the first element of the source that is in the slab.
template <class T, class Lines, class First>
ConvResult run(const Plan<T>& p, Int work, const T* source, T* result, const Lines& lines,
               const First& first) {
    const Sizes n = sizes_of(p);
    if (n.slab > MAX_ELEMENTS || n.buffer > MAX_ELEMENTS || n.vectors > MAX_ELEMENTS)
        return ConvResult::unsuited;
    const std::size_t slab_bytes = static_cast<std::size_t>(n.slab) * sizeof(T);
    const std::size_t bytes = slab_bytes + static_cast<std::size_t>(n.buffer) * sizeof(T) +
                              static_cast<std::size_t>(n.vectors) * 2 * sizeof(Int);
    const Int items = ceil_div(p.batch, p.images) * p.group_parts * p.parts;
    std::atomic<bool> failed{false};
    parallel_for(items, ceil_div(WORK, most(work / items, 1)), [&](Int begin, Int end) {
        Scratch memory(1, bytes);
        if (memory.get() == nullptr) {
            failed.store(true);
            return;
        }
        Workspace<T> space;
        space.at_x = static_cast<Int*>(memory.get());
        space.at_y = space.at_x + n.vectors;
        space.slab = reinterpret_cast<T*>(space.at_y + n.vectors);
        space.buffer = space.slab + n.slab;
        Axis cut = p.slab.axis[p.cut];
        const Axis* axis[3] = {&p.slab.axis[0], &p.slab.axis[1], &p.slab.axis[2]};
        axis[p.cut] = &cut;
        for (Int i = begin; i < end; ++i) {
            const Item item = item_of(p, i);
            cut.place(first(item.from));
            // What is outside of the source stays zero from one image to the next.
            if (i == begin || p.parts > 1) {
                std::memset(static_cast<void*>(space.slab), 0, slab_bytes);
                space.laid_out = -1;
            }
            for (Int g = item.first_group; g < item.first_group + item.groups; ++g)
                run_group(p, axis, item, g, source, space, lines, result);
        }
    });
    return failed.load() ? ConvResult::no_memory : ConvResult::done;
}

// Where the weights of a pass come from: group, row and term are so far apart; `from` may be null:
// the terms follow each other.
struct Origin {
    Int group, row;
    const Int* from;
};

// For each tile of rows: all its rows for term 0, for term 1, ...; rows of zeros fill up the last.
template <class T>
void pack(const conv_functions<T>& k, const Plan<T>& p, Int terms, const Origin& origin, const T* w,
          T* out) {
    const Int rows = p.result_channels;
    Int tiles = 0;
    for (Int left = rows; left > 0; left -= next_rows(k, p, left)) ++tiles;
    const Int grain = ceil_div((1 << 18) * tiles, most(terms * rows, 1));
    parallel_for(p.groups * tiles, grain, [&](Int begin, Int end) {
        for (Int i = begin; i < end; ++i) {
            const Int g = i / tiles;
            Int row = 0;
            for (Int t = 0; t < i % tiles; ++t) row += next_rows(k, p, rows - row);
            const int tile = next_rows(k, p, rows - row);
            const Int full = least(tile, rows - row);
            const T* source = w + g * origin.group + row * origin.row;
            T* to = out + g * p.weights + row * terms;
            // Some terms at a time, to read along the rows.
            for (Int t0 = 0; t0 < terms; t0 += 16) {
                const Int t1 = least(t0 + 16, terms);
                for (Int r = 0; r < full; ++r)
                    for (Int t = t0; t < t1; ++t)
                        to[t * tile + r] =
                            source[r * origin.row + (origin.from == nullptr ? t : origin.from[t])];
                for (Int r = full; r < tile; ++r)
                    for (Int t = t0; t < t1; ++t) to[t * tile + r] = 0;
            }
        }
    });
}

// Whether it is worth while to leave out what is multiplied by the zeros around the source, along
// an axis with `all` pairs of a result and a place of the kernel; `weights` are those of a group.
static inline bool worth_bands(const ConvShape& s, int axis, double all, Int weights) {
    double pairs = 0;
    for (Int i = 0; i < s.kernel[axis]; ++i) {
        const Int start = i * s.dilation[axis] - s.padding[axis];
        const Int first = most(ceil_div(-start, s.stride[axis]), 0);
        const Int end = least(ceil_div(s.in[axis] - start, s.stride[axis]), s.out[axis]);
        pairs += static_cast<double>(most(end - first, 0));
    }
    return pairs < (weights < 4096 ? 0.9 : 0.985) * all;
}

// The number of multiplications, or as many as can be counted.
static inline Int count_work(const ConvShape& s) {
    double n = 1;
    for (int a = 0; a < 3; ++a)
        n *= static_cast<double>(s.out[a]) * static_cast<double>(s.kernel[a]);
    n *= static_cast<double>(s.batch) * static_cast<double>(s.groups);
    n *= static_cast<double>(s.in_channels) * static_cast<double>(s.out_channels);
    return n < 1e18 ? static_cast<Int>(n) : static_cast<Int>(1e18);
}

}  // namespace conv_plan
}  // namespace chainrule
