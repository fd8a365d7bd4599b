// Micro-benchmark of the maps: one map, one mapped type, one process, one line of JSON. Not run by the tests.
//
//   bench_segmented_map MAP MAPPED [COUNT]
//   MAP: ladder (SegmentedMap), ladder_dense (DenseMap), std, and, where CMake found it, ankerl, ankerl_dense
//   MAPPED: int, vector, unordered_map, filled (an unordered_map of one successor, as a loaded cache has)
//
// Times are CPU nanoseconds per operation. To compare, interleave processes on an idle core and take medians:
//   for i in 1 2 3 4 5 6 7; do for map in ankerl ladder; do taskset -c 1 bench_segmented_map $map vector;
//   done; done
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "base/types.hpp"
#include "containers/dense_segmented_map.hpp"

namespace {

using ladder::Ngram;
using ladder::Token;

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The i-th of 2^34 distinct bigrams of 17-bit tokens, in an order without pattern (an odd factor is a
// bijection).
Ngram bigram(std::uint64_t i) {
    const std::uint64_t x = (i * 0x9e3779b97f4a7c15ULL) & ((1ULL << 34) - 1);
    const Token tokens[2] = {static_cast<Token>(x & 0x1ffff), static_cast<Token>(x >> 17)};
    return Ngram(tokens);
}

long status_kib(std::string_view field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field)) {
            return std::atol(line.c_str() + field.size() + 1);
        }
    }
    return -1;
}

template <class Mapped>
std::uint64_t weight(const Mapped& mapped) {
    if constexpr (std::is_integral_v<Mapped>) {
        return static_cast<std::uint64_t>(mapped);
    } else {
        return mapped.size();
    }
}

template <class Map, bool Fill>
int measure(const char* name, const char* mapped, std::uint64_t count) {
    Map map;
    std::uint64_t sum = 0;
    const double start = cpu_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
        auto& value = map[bigram(i)];
        if constexpr (Fill) {
            value[static_cast<int>(i)] = 1;
        }
    }
    const double inserted = cpu_ns();
    // A large odd stride visits every key once, far from the one before (count is no multiple of it).
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        at = (at + 2654435761ULL) % count;
        const auto it = map.find(bigram(at));
        sum += it != map.end() ? 1 + weight(it->second) : 0;
    }
    const double hit = cpu_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
        sum += map.find(bigram(count + i)) != map.end();
    }
    const double missed = cpu_ns();
    for (const auto& [key, value] : map) {
        sum += static_cast<std::uint64_t>(key.tokens[0]) + weight(value);
    }
    const double iterated = cpu_ns();
    for (std::uint64_t i = 0; i < count; ++i) {
        at = (at + 2654435761ULL) % count;
        sum += map.try_emplace(bigram(at)).second;
    }
    const double again = cpu_ns();
    const long peak_kib = status_kib("VmHWM:");
    map.clear();
    const double cleared = cpu_ns();
    const auto n = static_cast<double>(count);
    std::printf(
        "{\"map\": \"%s\", \"mapped\": \"%s\", \"count\": %llu, \"insert_ns\": %.2f, \"hit_ns\": %.2f, "
        "\"miss_ns\": %.2f, \"iterate_ns\": %.3f, \"emplace_present_ns\": %.2f, \"clear_ns\": %.3f, "
        "\"peak_rss_kib\": %ld, \"sum\": %llu}\n",
        name, mapped, static_cast<unsigned long long>(count), (inserted - start) / n, (hit - inserted) / n,
        (missed - hit) / n, (iterated - missed) / n, (again - iterated) / n, (cleared - again) / n, peak_kib,
        static_cast<unsigned long long>(sum));
    return 0;
}

template <class Mapped, bool Fill>
int choose_map(const std::string& name, const char* mapped, std::uint64_t count) {
    using Hash = ladder::AvalanchingNgramHash;
    if (name == "ladder") {
        return measure<ladder::SegmentedMap<Ngram, Mapped, Hash>, Fill>("ladder", mapped, count);
    }
    if (name == "ladder_dense") {
        return measure<ladder::DenseMap<Ngram, Mapped, Hash>, Fill>("ladder_dense", mapped, count);
    }
    if (name == "std") {
        return measure<std::unordered_map<Ngram, Mapped, Hash>, Fill>("std", mapped, count);
    }
#ifdef LADDER_UNORDERED_DENSE
    if (name == "ankerl") {
        return measure<ladder::DenseSegmentedMap<Ngram, Mapped, Hash>, Fill>("ankerl", mapped, count);
    }
    if (name == "ankerl_dense") {
        return measure<ladder::DenseContiguousMap<Ngram, Mapped, Hash>, Fill>("ankerl_dense", mapped, count);
    }
#endif
    std::fprintf(stderr, "no such map: %s\n", name.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: bench_segmented_map MAP MAPPED [COUNT]\n");
        return 2;
    }
    const std::string map = argv[1];
    const std::string mapped = argv[2];
    const std::uint64_t count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 10'000'000;
    if (mapped == "int") {
        return choose_map<int, false>(map, "int", count);
    }
    if (mapped == "vector") {
        return choose_map<std::vector<ladder::Successor>, false>(map, "vector", count);
    }
    if (mapped == "unordered_map") {
        return choose_map<std::unordered_map<int, int>, false>(map, "unordered_map", count);
    }
    if (mapped == "filled") {
        return choose_map<std::unordered_map<int, int>, true>(map, "filled", count);
    }
    std::fprintf(stderr, "no such mapped type: %s\n", mapped.c_str());
    return 2;
}
