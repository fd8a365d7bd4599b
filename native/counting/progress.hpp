// How long work says how far it is.
#pragma once

#include <cstdint>
#include <functional>

namespace ladder {

// Called on the calling thread some ten times a second; an exception thrown here cancels the work.
using Progress = std::function<void(const char* phase, std::uint64_t done, std::uint64_t total)>;

// Tells how many bytes of all inputs are read, now and then.
class ReadProgress {
public:
    ReadProgress(const Progress& progress, const char* phase, std::uint64_t total)
        : progress_(progress), phase_(phase), total_(total) {}
    void add(std::uint64_t bytes) {
        done_ += bytes;
        if (progress_ && done_ >= next_) {
            progress_(phase_, done_, total_);
            next_ = done_ + progress_bytes;
        }
    }

private:
    static constexpr std::uint64_t progress_bytes = std::uint64_t{4} << 20;

    const Progress& progress_;
    const char* phase_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    std::uint64_t next_ = 0;
};

}  // namespace ladder
