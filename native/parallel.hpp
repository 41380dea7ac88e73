// Threads for the kernels: a pool that is safe under fork() and never nests.
//
// OpenMP's pool of GNU hangs in a child process after fork(), which data loaders use; this one is
// made anew there. One job runs at a time: a second Python thread that comes meanwhile computes its
// job alone. A job is cut into as many equal parts as threads are asked for, so that which part a
// number belongs to, and with it the result, depends on that number only, and not on how many
// threads the machine grants or who computes a part.
#pragma once

#include <cstdint>

namespace chainrule {

// Calls work(context, begin, end) for parts of [0, count) on several threads, if there are at least
// two parts of `grain` elements; alone otherwise.
using Work = void (*)(void* context, std::int64_t begin, std::int64_t end);
void run_parallel(std::int64_t count, std::int64_t grain, Work work, void* context);

int num_threads();
void set_num_threads(int count);

// parallel_for(count, grain, [&](int64_t begin, int64_t end) { ... })
template <class F>
static inline void parallel_for(std::int64_t count, std::int64_t grain, const F& body) {
    run_parallel(
        count, grain,
        [](void* context, std::int64_t begin, std::int64_t end) {
            (*static_cast<const F*>(context))(begin, end);
        },
        const_cast<F*>(&body));
}

}  // namespace chainrule
