// What happens when a mapped file is cut shorter under a running drafter: the system answers the next read
// with SIGBUS, which ends the process without a word. Here the word is said: which file it was.
// POSIX only (Linux and macOS).
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

namespace ladder {

struct MappedRange {
    std::atomic<std::uintptr_t> begin = 0;  // 0: free
    std::atomic<std::uintptr_t> end = 0;
    std::size_t length = 0;
    std::array<char, 1024> line{};
};

// The mapped files of this module, each with its sentence ready: a signal handler may allocate nothing.
class VanishedPages {
public:
    // Remembers a mapping; the slot to forget it by. Beyond `n_slots` mappings none is remembered.
    static std::size_t remember(const void* address, std::size_t size_bytes, const std::string& path) {
        const std::lock_guard lock(mutex_);
        static const bool installed = install();
        static_cast<void>(installed);
        for (std::size_t i = 0; i < n_slots; ++i) {
            MappedRange& slot = slots_[i];
            if (slot.begin.load() != 0) {
                continue;
            }
            const std::string line =
                path + ": became shorter while it was in use; let nothing write to it, and run again\n";
            slot.length = std::min(line.size(), slot.line.size());
            std::memcpy(slot.line.data(), line.data(), slot.length);
            slot.end.store(reinterpret_cast<std::uintptr_t>(address) + size_bytes);
            slot.begin.store(reinterpret_cast<std::uintptr_t>(address));
            return i;
        }
        return n_slots;
    }

    static void forget(std::size_t index) noexcept {
        if (index < n_slots) {
            slots_[index].begin.store(0);
        }
    }

    static constexpr std::size_t n_slots = 16;

private:
    static bool install() {
        struct sigaction action{};
        action.sa_sigaction = tell;
        action.sa_flags = SA_SIGINFO;
        ::sigemptyset(&action.sa_mask);
        return ::sigaction(SIGBUS, &action, &before_) == 0;
    }

    // Says the line, and hands over to who was here before: the read is tried again and fails again.
    static void tell(int number, siginfo_t* info, void*) {
        const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
        for (const MappedRange& slot : slots_) {
            const std::uintptr_t begin = slot.begin.load();
            if (begin != 0 && begin <= at && at < slot.end.load()) {
                static_cast<void>(!::write(STDERR_FILENO, slot.line.data(), slot.length));
                break;
            }
        }
        ::sigaction(number, &before_, nullptr);
    }

    static inline std::mutex mutex_;
    static inline std::array<MappedRange, n_slots> slots_;
    static inline struct sigaction before_{};
};

}  // namespace ladder
