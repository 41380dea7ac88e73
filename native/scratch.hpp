// Memory for the length of one call. What a thread used is kept for its next call, unless it is
// large: given back, its place would soon hold small arrays, and the next call would take another.
#pragma once

#include <cstddef>

namespace chainrule {

// `slot` tells apart what one thread holds at the same time: 0 for what all parts of a job share,
// 1 for what one part needs.
class Scratch {
  public:
    Scratch(int slot, std::size_t bytes);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // Null if there is no memory. Starts at a cache line.
    void* get() const { return memory_; }

  private:
    void* memory_;
    int slot_ = 0;
    bool own_;
};

}  // namespace chainrule
