#include "parallel.hpp"

#include <pthread.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace chainrule {
namespace {

struct Job {
    Work work;
    void* context;
    std::int64_t count;
    int parts;
};

// Which part a number belongs to follows from the number of parts, not from who computes them.
void do_part(const Job& job, int i) {
    const std::int64_t begin = job.count * i / job.parts;
    const std::int64_t end = job.count * (i + 1) / job.parts;
    if (begin < end) job.work(job.context, begin, end);
}

void do_alone(const Job& job) {
    for (int i = 0; i < job.parts; ++i) do_part(job, i);
}

class Pool {
  public:
    explicit Pool(int workers) : asked_(static_cast<std::size_t>(workers)) { grow(); }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (auto& t : threads_) t.join();
    }

    static constexpr int PART_BITS = 16, MOST = 1 << 12;

    int asked() const { return static_cast<int>(asked_) + 1; }

    // A machine may refuse threads (ulimit -u, a cgroup, a filter of system calls, no memory for a
    // stack): those there are do all parts. Whether it still refuses is asked now and then.
    void run(const Job& job) {
        if (threads_.size() < asked_ && ++jobs_short_ % ASK_AGAIN == 0) grow();
        if (threads_.empty()) {
            do_alone(job);
            return;
        }
        std::uint64_t ticket;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = job;
            ticket = ++last_ticket_;
            left_.store(job.parts, std::memory_order_relaxed);
            next_.store(ticket << PART_BITS, std::memory_order_release);
        }
        wake_.notify_all();
        // All parts that no other thread has begun: on a busy machine they may come late, or never.
        work_on(job, ticket);
        // The other parts end at about the same time: look for a while before going to sleep.
        for (int i = 0; i < 20000; ++i) {
            if (left_.load(std::memory_order_acquire) == 0) return;
            pause();
        }
        while (left_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    }

  private:
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    void grow() {
        try {
            threads_.reserve(asked_);
            while (threads_.size() < asked_) threads_.emplace_back([this] { serve(); });
        } catch (const std::exception&) {  // std::system_error, std::bad_alloc
        }
    }

    // Does parts of a job as long as there are any. Of a job that is over, which a thread that
    // comes late still has, no part can be taken: the ticket in `next_` is that of the latest job.
    void work_on(const Job& job, std::uint64_t ticket) {
        std::uint64_t next = next_.load(std::memory_order_acquire);
        while (next >> PART_BITS == ticket) {
            const int i = static_cast<int>(next & ((1 << PART_BITS) - 1));
            if (i >= job.parts) return;
            if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
            do_part(job, i);
            left_.fetch_sub(1, std::memory_order_acq_rel);
            next = next_.load(std::memory_order_acquire);
        }
    }

    void serve() {
        std::uint64_t seen = 0;
        for (;;) {
            // Kernels follow each other closely: look for the next one before going to sleep.
            for (int i = 0; i < 4000; ++i) {
                if (next_.load(std::memory_order_acquire) >> PART_BITS != seen) break;
                pause();
            }
            Job job;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return closing_ || last_ticket_ != seen; });
                if (closing_) return;
                seen = last_ticket_;
                job = job_;
            }
            work_on(job, seen);
        }
    }

    const std::size_t asked_;
    std::vector<std::thread> threads_;
    static constexpr unsigned ASK_AGAIN = 1024;
    unsigned jobs_short_ = 0;  // those that ran on fewer threads than asked for
    std::mutex mutex_;
    std::condition_variable wake_;
    Job job_{};
    bool closing_ = false;
    std::uint64_t last_ticket_ = 0;       // the number of the latest job
    std::atomic<std::uint64_t> next_{0};  // its number, and that of the next part to be taken
    std::atomic<int> left_{0};            // parts that are not done
};

std::atomic<int> wanted{0};  // 0: as many as there are processors
std::atomic_flag busy = ATOMIC_FLAG_INIT;
Pool* pool = nullptr;  // used while `busy` is held

int processors() {
    static const int count = [] {
#if defined(__linux__)  // where a process may be held to some of them
        cpu_set_t set;
        CPU_ZERO(&set);
        if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
        return static_cast<int>(std::thread::hardware_concurrency());
    }();
    return count > 0 ? count : 1;
}

// The threads of the parent do not exist in the child: forget the pool without touching it.
void in_child() {
    pool = nullptr;
    busy.clear();
}

const int registered = pthread_atfork(nullptr, nullptr, in_child);

}  // namespace

int num_threads() {
    const int count = wanted.load(std::memory_order_relaxed);
    return count > 0 ? count : processors();
}

void set_num_threads(int count) {
    wanted.store(count < 1 ? 1 : count > Pool::MOST ? Pool::MOST : count);
}

void run_parallel(std::int64_t count, std::int64_t grain, Work work, void* context) {
    if (count <= 0) return;
    std::int64_t parts = grain > 0 ? count / grain : count;
    const int threads = num_threads();
    if (parts > threads) parts = threads;
    if (parts < 2) {
        work(context, 0, count);
        return;
    }
    const Job job{work, context, count, static_cast<int>(parts)};
    if (busy.test_and_set(std::memory_order_acquire)) {
        do_alone(job);
        return;
    }
    if (pool != nullptr && pool->asked() != threads) {
        delete pool;
        pool = nullptr;
    }
    if (pool == nullptr) pool = new (std::nothrow) Pool(threads - 1);
    if (pool == nullptr)
        do_alone(job);
    else
        pool->run(job);
    busy.clear(std::memory_order_release);
}

}  // namespace chainrule
