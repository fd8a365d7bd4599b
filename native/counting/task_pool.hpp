// Threads that work on numbered tasks while the calling thread looks on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ladder {

// Tasks 0..n-1 on `jobs` threads, started in order. The calling thread looks in between.
class TaskPool {
public:
    TaskPool(unsigned jobs, std::size_t n_tasks)
        : jobs_(static_cast<unsigned>(std::clamp<std::size_t>(n_tasks, 1, std::max(1U, jobs)))),
          finished_(n_tasks, 0) {}

    // task(worker, index) on the threads; watch(first unfinished task) here, each time that may have changed
    // and ten times a second. The first exception from either stops the rest and is thrown again.
    template <class Task, class Watch>
    void run(Task&& task, Watch&& watch) {
        Joiner threads(*this);
        for (unsigned worker = 0; worker < jobs_; ++worker) {
            threads.start([this, &task, worker] { work(task, worker); });
        }
        std::size_t prefix = 0;
        while (prefix < finished_.size()) {
            const std::size_t seen = prefix;
            {
                std::unique_lock lock(mutex_);
                changed_.wait_for(lock, std::chrono::milliseconds(100),
                                  [&] { return finished_[seen] != 0 || failure_ != nullptr; });
                if (failure_ != nullptr) {
                    std::rethrow_exception(failure_);
                }
                while (prefix < finished_.size() && finished_[prefix] != 0) {
                    ++prefix;
                }
            }
            watch(prefix);
        }
    }

    [[nodiscard]] unsigned jobs() const noexcept { return jobs_; }

private:
    // Threads never outlive what they work on.
    class Joiner {
    public:
        explicit Joiner(TaskPool& pool) noexcept : pool_(pool) {}
        Joiner(const Joiner&) = delete;
        Joiner& operator=(const Joiner&) = delete;
        ~Joiner() {
            pool_.stop_ = true;
            for (std::thread& thread : threads_) {
                thread.join();
            }
        }
        template <class Body>
        void start(Body&& body) {
            threads_.emplace_back(std::forward<Body>(body));
        }

    private:
        TaskPool& pool_;
        std::vector<std::thread> threads_;
    };

    template <class Task>
    void work(Task& task, unsigned worker) {
        try {
            for (std::size_t index = next_++; index < finished_.size() && !stop_; index = next_++) {
                task(worker, index);
                const std::lock_guard lock(mutex_);
                finished_[index] = 1;
                changed_.notify_one();
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (failure_ == nullptr) {
                failure_ = std::current_exception();
            }
            stop_ = true;
            changed_.notify_one();
        }
    }

    unsigned jobs_;
    std::vector<char> finished_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::exception_ptr failure_;
};

}  // namespace ladder
