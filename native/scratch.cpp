#include "scratch.hpp"

#include <cstdlib>

namespace chainrule {
namespace {

constexpr std::size_t LINE = 64, KEPT = std::size_t{8} << 20;
constexpr int SLOTS = 2;

struct Kept {
    void* memory = nullptr;
    std::size_t bytes = 0;
    bool used = false;
    ~Kept() { std::free(memory); }
};

thread_local Kept kept[SLOTS];

// std::aligned_alloc is not there on a macOS before 10.15, for which many a Python is built.
void* allocate(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(-1) - LINE) return nullptr;
    void* memory = nullptr;
    const std::size_t whole = (bytes + LINE - 1) / LINE * LINE + LINE;
    return posix_memalign(&memory, LINE, whole) == 0 ? memory : nullptr;
}

}  // namespace

Scratch::Scratch(int slot, std::size_t bytes) : memory_(nullptr), own_(true) {
    Kept& k = kept[slot];
    if (bytes > KEPT || k.used) {
        memory_ = allocate(bytes);
        return;
    }
    if (k.bytes < bytes || k.memory == nullptr) {
        std::free(k.memory);
        k.bytes = k.bytes * 2 > bytes ? (k.bytes * 2 < KEPT ? k.bytes * 2 : KEPT) : bytes;
        k.memory = allocate(k.bytes);
        if (k.memory == nullptr) k.bytes = 0;
    }
    memory_ = k.memory;
    own_ = false;
    k.used = memory_ != nullptr;
    slot_ = slot;
}

Scratch::~Scratch() {
    if (own_)
        std::free(memory_);
    else
        kept[slot_].used = false;
}

}  // namespace chainrule
