#include "parallel.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
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

class Pool {
  public:
    explicit Pool(int workers) {
        for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { serve(i + 1); });
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            closing_ = true;
        }
        wake_.notify_all();
        for (auto& t : threads_) t.join();
    }

    int size() const { return static_cast<int>(threads_.size()) + 1; }

    void run(const Job& job) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = job;
            left_.store(job.parts - 1, std::memory_order_relaxed);
            ticket_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        part(job, 0);
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

    static void part(const Job& job, int i) {
        const std::int64_t begin = job.count * i / job.parts;
        const std::int64_t end = job.count * (i + 1) / job.parts;
        if (begin < end) job.work(job.context, begin, end);
    }

    void serve(int number) {
        unsigned seen = 0;
        for (;;) {
            // Kernels follow each other closely: look for the next one before going to sleep.
            for (int i = 0; i < 4000 && ticket_.load(std::memory_order_acquire) == seen; ++i) pause();
            Job job;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] {
                    return closing_ || ticket_.load(std::memory_order_relaxed) != seen;
                });
                if (closing_) return;
                seen = ticket_.load(std::memory_order_relaxed);
                job = job_;
            }
            if (number < job.parts) {
                part(job, number);
                left_.fetch_sub(1, std::memory_order_acq_rel);
            }
        }
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_;
    Job job_{};
    bool closing_ = false;
    std::atomic<unsigned> ticket_{0};
    std::atomic<int> left_{0};
};

std::atomic<int> wanted{0};  // 0: as many as there are processors
std::atomic_flag busy = ATOMIC_FLAG_INIT;
Pool* pool = nullptr;  // used while `busy` is held

int processors() {
    static const int count = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
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

void set_num_threads(int count) { wanted.store(count > 0 ? count : 1); }

void run_parallel(std::int64_t count, std::int64_t grain, Work work, void* context) {
    if (count <= 0) return;
    std::int64_t parts = grain > 0 ? count / grain : count;
    const int threads = num_threads();
    if (parts > threads) parts = threads;
    if (parts < 2 || busy.test_and_set(std::memory_order_acquire)) {
        work(context, 0, count);
        return;
    }
    if (pool != nullptr && pool->size() != threads) {
        delete pool;
        pool = nullptr;
    }
    if (pool == nullptr) pool = new Pool(threads - 1);
    pool->run({work, context, count, static_cast<int>(parts)});
    busy.clear(std::memory_order_release);
}

}  // namespace chainrule
