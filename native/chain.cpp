#include "chain.hpp"

#include <algorithm>
#include <cstring>

#include "arguments.hpp"
#include "scratch.hpp"

namespace chainrule {
namespace {

constexpr std::int64_t BLOCK = 1024;  // elements
constexpr int MOST_OPERANDS = 3;
constexpr std::int64_t LINE = 64;  // bytes; a register begins at a line of the cache

// Where a call of a chain finds an operand, or leaves its result.
struct Place {
    enum Kind { memory, number, in_register } kind = memory;
    char* address = nullptr;  // of memory and numbers
    int number_of = -1;       // of a register
};

// What is repeated along the elements is first laid out in a register.
struct Filling {
    ChainOperand from;
    int into;
};

struct Link {
    ElementCall call;
    Place from[MOST_OPERANDS];
    Place to;
    std::vector<Filling> fillings;
};

// --- many elements -------------------------------------------------------------------------------

template <class T>
void fill(const ChainOperand& o, std::int64_t begin, std::int64_t n, T* to) {
    const T* from = static_cast<const T*>(o.place);
    if (o.count == 1) {
        std::fill_n(to, n, *from);
        return;
    }
    std::int64_t at = begin / o.inner % o.count, left = o.inner - begin % o.inner;
    for (std::int64_t i = 0; i < n;) {
        if (o.inner == 1) {
            const std::int64_t some = std::min(n - i, o.count - at);
            std::memcpy(to + i, from + at, static_cast<std::size_t>(some) * sizeof(T));
            i += some;
            at = 0;
        } else {
            const std::int64_t some = std::min(n - i, left);
            std::fill_n(to + i, some, from[at]);
            i += some;
            left = o.inner;
            at = at + 1 == o.count ? 0 : at + 1;
        }
    }
}

struct Blocks {
    std::vector<Link> links;
    std::int64_t size = 0, cost = 0;
    int bytes = 0, registers = 0;

    char* address(const Place& p, std::int64_t begin, char* memory) const {
        if (p.kind == Place::in_register) return memory + p.number_of * (BLOCK * bytes + LINE);
        return p.kind == Place::number ? p.address : p.address + begin * bytes;
    }

    void run_block(std::int64_t begin, std::int64_t n, char* memory) const {
        for (const Link& link : links) {
            const void* from[MOST_OPERANDS];
            for (const Filling& f : link.fillings) {
                char* to = memory + f.into * (BLOCK * bytes + LINE);
                if (bytes == 4)
                    fill(f.from, begin, n, reinterpret_cast<float*>(to));
                else
                    fill(f.from, begin, n, reinterpret_cast<double*>(to));
            }
            for (int k = 0; k < link.call.operands; ++k)
                from[k] = address(link.from[k], begin, memory);
            link.call.apply(link.call, n, from, address(link.to, begin, memory));
        }
    }

    bool run() const {
        const std::int64_t blocks = (size + BLOCK - 1) / BLOCK;
        const std::size_t room = static_cast<std::size_t>(registers) * (BLOCK * bytes + LINE);
        bool enough = true;
        share(blocks, BLOCK * cost, [&](std::int64_t first, std::int64_t last) {
            const Scratch memory(1, room + 1);
            if (memory.get() == nullptr) {
                enough = false;
                return;
            }
            for (std::int64_t b = first; b < last; ++b)
                run_block(b * BLOCK, std::min(BLOCK, size - b * BLOCK),
                          static_cast<char*>(memory.get()));
        });
        return enough;
    }
};

// --- single numbers ------------------------------------------------------------------------------

template <class T>
struct NumberLink {
    NumberCode code;
    const T *a, *b;
    T* to;
    int of_calls;  // which call it is, where the code is none
};

template <class T>
struct Numbers {
    std::vector<NumberLink<T>> links;
    std::vector<ElementCall> calls;
    std::vector<T> frame;  // the temporaries

    void run() const {
        for (const NumberLink<T>& l : links) {
            switch (l.code) {
                case NumberCode::add: *l.to = *l.a + *l.b; break;
                case NumberCode::sub: *l.to = *l.a - *l.b; break;
                case NumberCode::mul: *l.to = *l.a * *l.b; break;
                case NumberCode::div: *l.to = *l.a / *l.b; break;
                case NumberCode::neg: *l.to = -*l.a; break;
                case NumberCode::square: *l.to = *l.a * *l.a; break;
                case NumberCode::copy: *l.to = *l.a; break;
                case NumberCode::none: {
                    const ElementCall& call = calls[static_cast<std::size_t>(l.of_calls)];
                    const void* from[MOST_OPERANDS];
                    for (int k = 0; k < call.operands; ++k) from[k] = call.from[k].place;
                    call.apply(call, 1, from, call.to);
                }
            }
        }
    }
};

// --- building ------------------------------------------------------------------------------------

// The temporary at an address: its number, -1 for other memory, -2 for the middle of one.
int temporary_at(const void* place, const std::vector<Temporary>& temporaries) {
    const char* p = static_cast<const char*>(place);
    for (std::size_t i = 0; i < temporaries.size(); ++i)
        if (p >= temporaries[i].first && p < temporaries[i].end)
            return p == temporaries[i].first ? static_cast<int>(i) : -2;
    return -1;
}

bool fit_together(const std::vector<ElementCall>& calls,
                  const std::vector<Temporary>& temporaries) {
    for (const ElementCall& c : calls) {
        if (c.size != calls[0].size || c.bytes != calls[0].bytes) return false;
        if (temporary_at(c.to, temporaries) == -2) return false;
        for (int k = 0; k < c.operands; ++k) {
            const int which = temporary_at(c.from[k].place, temporaries);
            if (which == -2 || (which >= 0 && c.from[k].count != c.size)) return false;
        }
    }
    return true;
}

template <class T>
std::function<bool()> chain_of_numbers(std::vector<ElementCall> calls,
                                       const std::vector<Temporary>& temporaries) {
    auto chain = std::make_shared<Numbers<T>>();
    chain->frame.resize(temporaries.size());
    const auto moved = [&](const void*& place) {
        const int which = temporary_at(place, temporaries);
        if (which >= 0) place = &chain->frame[static_cast<std::size_t>(which)];
        return true;
    };
    chain->calls = std::move(calls);
    for (std::size_t i = 0; i < chain->calls.size(); ++i) {
        ElementCall& c = chain->calls[i];
        for (int k = 0; k < c.operands; ++k) moved(c.from[k].place);
        const void* to = c.to;
        moved(to);
        c.to = const_cast<void*>(to);
        chain->links.push_back({c.code, static_cast<const T*>(c.from[0].place),
                                static_cast<const T*>(c.from[1].place), static_cast<T*>(c.to),
                                static_cast<int>(i)});
    }
    return [chain] {
        chain->run();
        return true;
    };
}

// Registers that are handed out and taken back.
class Registers {
  public:
    int take() {
        if (free_.empty()) return count_++;
        const int r = free_.back();
        free_.pop_back();
        return r;
    }
    void give_back(int r) { free_.push_back(r); }
    int count() const { return count_; }

  private:
    std::vector<int> free_;
    int count_ = 0;
};

std::function<bool()> chain_of_blocks(std::vector<ElementCall> calls,
                                      const std::vector<Temporary>& temporaries) {
    auto chain = std::make_shared<Blocks>();
    chain->size = calls[0].size;
    chain->bytes = calls[0].bytes;
    std::vector<std::size_t> last(temporaries.size(), 0);  // the call that needs it last
    for (std::size_t i = 0; i < calls.size(); ++i)
        for (int k = 0; k < calls[i].operands; ++k) {
            const int which = temporary_at(calls[i].from[k].place, temporaries);
            if (which >= 0) last[static_cast<std::size_t>(which)] = i;
        }
    Registers registers;
    std::vector<int> held(temporaries.size(), -1);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        Link link{calls[i], {}, {}, {}};
        const ElementCall& c = link.call;
        chain->cost += c.cost;
        for (int k = 0; k < c.operands; ++k) {
            const int which = temporary_at(c.from[k].place, temporaries);
            char* place = static_cast<char*>(const_cast<void*>(c.from[k].place));
            if (which >= 0) {
                link.from[k] = {Place::in_register, nullptr, held[static_cast<std::size_t>(which)]};
            } else if (c.from[k].count == c.size) {
                link.from[k] = {Place::memory, place, -1};
            } else if (c.from[k].count == 1 && c.takes_number[k]) {
                link.from[k] = {Place::number, place, -1};
            } else {
                link.fillings.push_back({c.from[k], registers.take()});
                link.from[k] = {Place::in_register, nullptr, link.fillings.back().into};
            }
        }
        const int which = temporary_at(c.to, temporaries);
        link.to = {Place::memory, static_cast<char*>(c.to), -1};
        if (which >= 0) {
            const int r = held[static_cast<std::size_t>(which)] = registers.take();
            link.to = {Place::in_register, nullptr, r};
        }
        for (const Filling& f : link.fillings) registers.give_back(f.into);
        for (std::size_t t = 0; t < temporaries.size(); ++t)
            if (held[t] >= 0 && last[t] <= i) {
                registers.give_back(held[t]);
                held[t] = -1;
            }
        chain->links.push_back(std::move(link));
    }
    chain->registers = registers.count();
    return [chain] { return chain->run(); };
}

}  // namespace

std::function<bool()> chained(std::vector<ElementCall> calls,
                              const std::vector<Temporary>& temporaries) {
    if (calls.empty() || !fit_together(calls, temporaries)) return nullptr;
    if (calls[0].size != 1) return chain_of_blocks(std::move(calls), temporaries);
    return calls[0].bytes == 4 ? chain_of_numbers<float>(std::move(calls), temporaries)
                               : chain_of_numbers<double>(std::move(calls), temporaries);
}

}  // namespace chainrule
