// Depthwise convolution and its gradients: see depthwise.hpp. Threads share images and blocks of
// channels; for the gradient by the weight, blocks of channels alone, each summed in one order.
#include <atomic>
#include <cstring>

#include "conv_slab.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

using namespace conv_slab;

// A frame that takes more than this is no longer in the cache.
constexpr Int FRAME_BYTES = 1 << 20;
// Fewer multiplications than this are not worth a second thread.
constexpr Int WORK = 1 << 17;

// Two dimensions of a depthwise convolution, from a source to results; `at` of a frame.
struct Frames {
    Int lanes, channels, batch, blocks;
    Int source[2], result[2], kernel[2], stride[2], padding[2], dilation[2];
    Int down, across;  // of the frame, which one pixel more follows
    DepthwiseFrame frame;

    bool measure(Int size) {
        blocks = ceil_div(channels, lanes);
        frame.rows = result[0];
        frame.columns = result[1];
        frame.stride[0] = stride[0];
        frame.stride[1] = stride[1];
        down = (result[0] - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1;
        across = (frame.padded() - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1;
        frame.across = across;
        frame.places = kernel[0] * kernel[1];
        return down < MAX_ELEMENTS && across < MAX_ELEMENTS &&
               down * across < FRAME_BYTES / lanes / size && frame.places < 1024;
    }
    Int elements() const { return (down * across + 1) * lanes; }
    Int sources() const { return source[0] * source[1]; }
    Int results() const { return result[0] * result[1]; }

    void find_places(Int* place) {
        frame.place = place;
        for (Int i = 0; i < kernel[0]; ++i)
            for (Int j = 0; j < kernel[1]; ++j)
                *place++ = (i * dilation[0] * across + j * dilation[1]) * lanes;
    }
    // Where the pixels of the source are in the frame; those outside are after its end.
    void find_sources(Int* at) const {
        for (Int i = 0; i < source[0]; ++i)
            for (Int j = 0; j < source[1]; ++j) {
                const Int y = i + padding[0], x = j + padding[1];
                const bool inside = y >= 0 && y < down && x >= 0 && x < across;
                *at++ = (inside ? y * across + x : down * across) * lanes;
            }
    }
    // Where results are in rows of so many.
    void find_results(Int columns, Int* at) const {
        for (Int i = 0; i < result[0]; ++i)
            for (Int j = 0; j < result[1]; ++j) *at++ = (i * columns + j) * lanes;
    }
};

// Rows of several whole vectors are as well read as they are, unless the kernel is large.
bool has_form(const ConvShape& s, Int lanes) {
    const bool whole_rows = s.stride[1] == 1 && s.stride[2] == 1 && s.out[2] % lanes == 0 &&
                            s.out[2] > lanes && s.kernel[1] * s.kernel[2] <= 9;
    return s.in_channels == 1 && s.out_channels == 1 && 2 * s.groups >= lanes && s.in[0] == 1 &&
           s.out[0] == 1 && s.kernel[0] == 1 && s.padding[0] == 0 && !whole_rows;
}

Frames frames_of(const ConvShape& s, Int lanes) {
    Frames f;
    f.lanes = lanes;
    f.channels = s.groups;
    f.batch = s.batch;
    for (int a = 0; a < 2; ++a) {
        f.source[a] = s.in[a + 1];
        f.result[a] = s.out[a + 1];
        f.kernel[a] = s.kernel[a + 1];
        f.stride[a] = s.stride[a + 1];
        f.padding[a] = s.padding[a + 1];
        f.dilation[a] = s.dilation[a + 1];
    }
    return f;
}

// The weights of a block of channels as [place][lanes], from the last place on if turned.
template <class T>
void pack(const Frames& f, Int channel, bool turned, const T* w, T* out) {
    const Int places = f.frame.places;
    for (Int k = 0; k < places; ++k)
        for (Int l = 0; l < f.lanes; ++l)
            *out++ = channel + l < f.channels
                         ? w[(channel + l) * places + (turned ? places - 1 - k : k)]
                         : T(0);
}

// work(memory, image, channel, first): for all images and blocks of channels, with memory for a
// frame that is zero at the `first` call and what the calls leave there afterwards.
template <class T, class Work>
ConvResult share_blocks(const Frames& f, Int more, const Work& work) {
    const Int elements = f.elements(), cost = f.results() * f.frame.places * f.lanes;
    const std::size_t bytes = static_cast<std::size_t>(elements + more) * sizeof(T);
    std::atomic<bool> failed{false};
    parallel_for(f.blocks * f.batch, ceil_div(WORK, cost), [&](Int item, Int end) {
        Scratch memory(1, bytes);
        if (memory.get() == nullptr) return failed.store(true);
        T* frame = static_cast<T*>(memory.get());
        std::memset(memory.get(), 0, static_cast<std::size_t>(elements) * sizeof(T));
        for (; item < end; ++item) work(frame, item % f.batch, item / f.batch * f.lanes);
    });
    return failed.load() ? ConvResult::no_memory : ConvResult::done;
}

// Results from a frame of the source.
template <class T>
ConvResult convolve(Frames& f, bool turned, const T* from, const T* w, T* to) {
    const conv_functions<T>& k = conv_of<T>();
    if (!f.measure(sizeof(T))) return ConvResult::unsuited;
    const Int places = f.frame.places, columns = f.frame.padded();
    Scratch numbers(0, static_cast<std::size_t>(places + f.sources() + f.results()) * sizeof(Int));
    if (numbers.get() == nullptr) return ConvResult::no_memory;
    Int* place = static_cast<Int*>(numbers.get());
    Int *at = place + places, *put = at + f.sources();
    f.find_places(place);
    f.find_sources(at);
    f.find_results(columns, put);
    const Int made = f.result[0] * columns * f.lanes;
    return share_blocks<T>(f, made + places * f.lanes, [&](T* frame, Int image, Int channel) {
        T *results = frame + f.elements(), *weights = results + made;
        const Int count = least(f.lanes, f.channels - channel);
        pack(f, channel, turned, w, weights);
        k.to_frame(count, f.sources(), from + (image * f.channels + channel) * f.sources(),
                   f.sources(), at, frame);
        k.depthwise_results(f.frame, frame, weights, results);
        k.from_frame(count, f.results(), results, put,
                     to + (image * f.channels + channel) * f.results(), f.results());
    });
}

}  // namespace

template <class T>
ConvResult depthwise_by_y(const ConvShape& s, const T* x, const T* w, T* y) {
    const Int lanes = conv_of<T>().lanes();
    if (!has_form(s, lanes)) return ConvResult::unsuited;
    Frames f = frames_of(s, lanes);
    return convolve(f, false, x, w, y);
}

// With stride 1, a convolution with the kernel turned; otherwise y is spread over a frame of x.
template <class T>
ConvResult depthwise_by_x(const ConvShape& s, const T* y, const T* w, T* x) {
    const conv_functions<T>& k = conv_of<T>();
    if (!has_form(s, k.lanes())) return ConvResult::unsuited;
    Frames f = frames_of(s, k.lanes());
    if (s.stride[1] == 1 && s.stride[2] == 1) {
        for (int a = 0; a < 2; ++a) {
            f.source[a] = s.out[a + 1];
            f.result[a] = s.in[a + 1];
            f.padding[a] = (f.kernel[a] - 1) * f.dilation[a] - f.padding[a];
        }
        return convolve(f, true, y, w, x);
    }
    if (!f.measure(sizeof(T))) return ConvResult::unsuited;
    const Int places = f.frame.places;
    Scratch numbers(0, static_cast<std::size_t>(places + f.sources() + f.results()) * sizeof(Int));
    if (numbers.get() == nullptr) return ConvResult::no_memory;
    Int* place = static_cast<Int*>(numbers.get());
    Int *at = place + places, *put = at + f.sources();
    f.find_places(place);
    f.find_sources(at);
    f.find_results(f.result[1], put);
    const Int made = f.results() * f.lanes;
    return share_blocks<T>(f, made + places * f.lanes, [&](T* frame, Int image, Int channel) {
        T *results = frame + f.elements(), *weights = results + made;
        const Int count = least(f.lanes, f.channels - channel);
        pack(f, channel, false, w, weights);
        k.to_frame(count, f.results(), y + (image * f.channels + channel) * f.results(),
                   f.results(), put, results);
        std::memset(frame, 0, static_cast<std::size_t>(f.elements()) * sizeof(T));
        k.depthwise_spread(f.frame, results, weights, frame);
        k.from_frame(count, f.sources(), frame, at,
                     x + (image * f.channels + channel) * f.sources(), f.sources());
    });
}

template <class T>
ConvResult depthwise_by_w(const ConvShape& s, const T* x, const T* y, T* w) {
    const conv_functions<T>& k = conv_of<T>();
    if (!has_form(s, k.lanes())) return ConvResult::unsuited;
    Frames f = frames_of(s, k.lanes());
    if (!f.measure(sizeof(T))) return ConvResult::unsuited;
    const Int places = f.frame.places, made = f.results() * f.lanes;
    Scratch numbers(0, static_cast<std::size_t>(places + f.sources() + f.results()) * sizeof(Int));
    if (numbers.get() == nullptr) return ConvResult::no_memory;
    Int* place = static_cast<Int*>(numbers.get());
    Int *at = place + places, *put = at + f.sources();
    f.find_places(place);
    f.find_sources(at);
    f.find_results(f.result[1], put);
    const std::size_t bytes =
        static_cast<std::size_t>(f.elements() + made + places * f.lanes) * sizeof(T);
    std::atomic<bool> failed{false};
    const Int cost = f.batch * f.results() * places * f.lanes;
    parallel_for(f.blocks, ceil_div(WORK, cost), [&](Int block, Int end) {
        Scratch memory(1, bytes);
        if (memory.get() == nullptr) return failed.store(true);
        T* frame = static_cast<T*>(memory.get());
        T *results = frame + f.elements(), *sums = results + made;
        std::memset(memory.get(), 0, static_cast<std::size_t>(f.elements()) * sizeof(T));
        for (; block < end; ++block) {
            const Int channel = block * f.lanes, count = least(f.lanes, f.channels - channel);
            std::memset(sums, 0, static_cast<std::size_t>(places * f.lanes) * sizeof(T));
            for (Int image = 0; image < f.batch; ++image) {
                const Int first = image * f.channels + channel;
                k.to_frame(count, f.sources(), x + first * f.sources(), f.sources(), at, frame);
                k.to_frame(count, f.results(), y + first * f.results(), f.results(), put, results);
                k.depthwise_sums(f.frame, results, frame, sums);
            }
            for (Int c = 0; c < count; ++c)
                for (Int p = 0; p < places; ++p)
                    w[(channel + c) * places + p] = sums[p * f.lanes + c];
        }
    });
    return failed.load() ? ConvResult::no_memory : ConvResult::done;
}

#define CHAINRULE_EACH(T)                                                         \
    template ConvResult depthwise_by_y(const ConvShape&, const T*, const T*, T*); \
    template ConvResult depthwise_by_x(const ConvShape&, const T*, const T*, T*); \
    template ConvResult depthwise_by_w(const ConvShape&, const T*, const T*, T*);
CHAINRULE_EACH(float)
CHAINRULE_EACH(double)
#undef CHAINRULE_EACH

}  // namespace chainrule
