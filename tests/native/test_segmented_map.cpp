// The dense maps against std::unordered_map, and the n-gram hashes. Every map that can be had is held to the
// same checks: ours over segments, ours over one array, and both of the original where CMake found it.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "base/types.hpp"
#include "containers/dense_segmented_map.hpp"
#include "testing.hpp"

// Allocation accounting: what is allocated now, and a countdown to a failure.
namespace {
std::size_t allocated_bytes = 0;
long long allocations_until_failure = -1;  // negative: never fails
bool allocations_fail_for_good = false;

constexpr std::size_t header_bytes = 64;

void* allocate(std::size_t bytes) {
    if (allocations_fail_for_good) {
        return nullptr;
    }
    if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) {
        return nullptr;
    }
    void* block =
        std::aligned_alloc(header_bytes, (bytes + 2 * header_bytes - 1) / header_bytes * header_bytes);
    if (block == nullptr) {
        return nullptr;
    }
    *static_cast<std::size_t*>(block) = bytes;
    allocated_bytes += bytes;
    return static_cast<char*>(block) + header_bytes;
}

void release(void* pointer) {
    if (pointer != nullptr) {
        void* block = static_cast<char*>(pointer) - header_bytes;
        allocated_bytes -= *static_cast<std::size_t*>(block);
        std::free(block);
    }
}
}  // namespace

void* operator new(std::size_t bytes) {
    void* pointer = allocate(bytes);
    return pointer != nullptr ? pointer : throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t) {
    return operator new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
    return operator new(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void operator delete(void* pointer) noexcept {
    release(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
    release(pointer);
}
void operator delete(void* pointer, std::align_val_t) noexcept {
    release(pointer);
}
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
    release(pointer);
}
void operator delete[](void* pointer) noexcept {
    release(pointer);
}
void operator delete[](void* pointer, std::size_t) noexcept {
    release(pointer);
}

namespace {

using ladder::AvalanchingNgramHash;
using ladder::Ngram;
using ladder::Token;
using ladder::XorNgramHash;

Ngram ngram(std::uint64_t i) {
    const Token tokens[2] = {static_cast<Token>(i % 1009), static_cast<Token>(i / 1009)};
    return Ngram(tokens);
}

// Hashes from harmless to hopeless. Avalanching ones are taken as they are.
struct SameHash {
    using is_avalanching = void;
    std::uint64_t operator()(const Ngram&) const noexcept { return 42; }
};
struct SameHomeHash {  // one home bucket, up to 256 fingerprints
    using is_avalanching = void;
    std::uint64_t operator()(const Ngram& key) const noexcept { return AvalanchingNgramHash{}(key) & 0xff; }
};
struct LastHomeHash {  // the last buckets: every probe wraps round
    using is_avalanching = void;
    std::uint64_t operator()(const Ngram& key) const noexcept {
        return AvalanchingNgramHash{}(key) | 0xfff0'0000'0000'0000ULL;
    }
};
struct SameFingerprintHash {  // the low eight bits are the same
    using is_avalanching = void;
    std::uint64_t operator()(const Ngram& key) const noexcept { return AvalanchingNgramHash{}(key) << 8; }
};
struct FewBitsHash {  // not declared avalanching: the map has to mix
    std::size_t operator()(const Ngram& key) const noexcept {
        return static_cast<std::size_t>(key.tokens[0]);
    }
};

template <class Key, class T, class Hash>
using OurSegmented = ladder::SegmentedMap<Key, T, Hash>;
template <class Key, class T, class Hash>
using OurTinySegments = ladder::SegmentedMap<Key, T, Hash, std::equal_to<Key>, 64>;
template <class Key, class T, class Hash>
using OurDense = ladder::DenseMap<Key, T, Hash>;
template <class Key, class T, class Hash>
using ChosenSegmented = ladder::DenseSegmentedMap<Key, T, Hash>;
template <class Key, class T, class Hash>
using ChosenDense = ladder::DenseContiguousMap<Key, T, Hash>;

// The map holds exactly `expected`, in the order of `order`, and none of 200 other keys.
template <class Map, class Mapped>
void check_equal(Map& map, const std::unordered_map<std::uint64_t, Mapped>& expected,
                 const std::vector<std::uint64_t>& order) {
    const Map& view = map;
    CHECK(map.size() == order.size());
    CHECK(map.empty() == order.empty());
    std::size_t i = 0;
    bool same = true;
    for (const auto& [key, value] : view) {
        same = same && i < order.size() && key == ngram(order[i]) && value == expected.at(order[i]);
        ++i;
    }
    CHECK(same);
    CHECK(i == order.size());
    bool found = true;
    for (const auto& [number, value] : expected) {
        const auto it = view.find(ngram(number));
        found = found && it != view.end() && it->first == ngram(number) && it->second == value &&
                map.find(ngram(number))->second == value && map.contains(ngram(number));
    }
    CHECK(found);
    bool absent = true;
    for (std::uint64_t miss = 0; miss < 200; ++miss) {
        const std::uint64_t number = 10'000'000 + miss;
        absent = absent && view.find(ngram(number)) == view.end() && !map.contains(ngram(number)) &&
                 map.find(ngram(number)) == map.end();
    }
    CHECK(absent);
}

template <template <class, class, class> class Map, class Hash>
void random_operations(unsigned seed, int steps, std::uint64_t domain, unsigned clear_every) {
    std::mt19937_64 random(seed);
    Map<Ngram, std::int64_t, Hash> map;
    std::unordered_map<std::uint64_t, std::int64_t> expected;
    std::vector<std::uint64_t> order;
    for (int step = 0; step < steps; ++step) {
        const std::uint64_t number = random() % domain;
        const auto value = static_cast<std::int64_t>(random() % 1000);
        const bool is_new = !expected.contains(number);
        switch (random() % 4) {
            case 0: {
                const auto [it, inserted] = map.try_emplace(ngram(number), value);
                CHECK(inserted == is_new);
                CHECK(it->first == ngram(number));
                CHECK(it->second == (is_new ? value : expected.at(number)));
                expected.try_emplace(number, value);
                break;
            }
            case 1:
                map[ngram(number)] += value;
                expected[number] += value;
                break;
            case 2:
                map[ngram(number)] = value;
                expected[number] = value;
                break;
            default: {
                const auto it = map.find(ngram(number));
                CHECK((it == map.end()) == is_new);
                if (it != map.end()) {
                    it->second = value;
                    expected[number] = value;
                }
                continue;
            }
        }
        if (is_new) {
            order.push_back(number);
        }
        if (random() % clear_every == 0) {
            check_equal(map, expected, order);
            map.clear();
            expected.clear();
            order.clear();
            check_equal(map, expected, order);
        }
        if (random() % 997 == 0) {
            map.reserve(random() % (2 * map.size() + 100));
        }
    }
    check_equal(map, expected, order);
}

// Both sides of every doubling, all keys looked up at each.
template <template <class, class, class> class Map>
void growth() {
    Map<Ngram, std::uint64_t, AvalanchingNgramHash> map;
    std::size_t buckets = map.bucket_count();
    int doublings = 0;
    for (std::uint64_t i = 0; i < 30'000; ++i) {
        map[ngram(i)] = i;
        CHECK(map.size() == i + 1);
        CHECK(static_cast<double>(map.size()) <= 0.8 * static_cast<double>(map.bucket_count()));
        if (map.bucket_count() == buckets && i % 4099 != 0) {
            continue;
        }
        doublings += map.bucket_count() != buckets;
        buckets = map.bucket_count();
        bool right = true;
        for (std::uint64_t k = 0; k <= i; ++k) {
            const auto it = map.find(ngram(k));
            right = right && it != map.end() && it->second == k;
        }
        for (std::uint64_t k = i + 1; k < i + 1000; ++k) {
            right = right && map.find(ngram(k)) == map.end();
        }
        CHECK(right);
    }
    CHECK(doublings >= 9);
    CHECK(std::has_single_bit(map.bucket_count()));
}

template <template <class, class, class> class Map>
void values_never_move() {
    Map<Ngram, std::uint64_t, AvalanchingNgramHash> map;
    std::vector<const std::uint64_t*> addresses;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        addresses.push_back(&map.try_emplace(ngram(i), i).first->second);
    }
    std::size_t i = 0;
    bool same = true;
    for (const auto& [key, value] : map) {
        same = same && addresses[i] == &value && value == i;
        ++i;
    }
    CHECK(same);
}

template <template <class, class, class> class Map>
void move_only_values() {
    Map<Ngram, std::unique_ptr<std::uint64_t>, AvalanchingNgramHash> map;
    for (std::uint64_t i = 0; i < 3'000; ++i) {
        CHECK(map.try_emplace(ngram(i), std::make_unique<std::uint64_t>(i)).second);
        auto spare = std::make_unique<std::uint64_t>(7);
        CHECK(!map.try_emplace(ngram(i / 2), std::move(spare)).second);
        CHECK(spare != nullptr);  // not taken when the key is there
    }
    std::uint64_t i = 0;
    for (const auto& [key, value] : map) {
        CHECK(*value == i++);
    }
    map.clear();
    CHECK(map.find(ngram(1)) == map.end());
    CHECK(map[ngram(1)] == nullptr);
}

template <template <class, class, class> class Map>
void moving_the_map() {
    using Counts = Map<Ngram, std::string, AvalanchingNgramHash>;
    Counts first;
    for (std::uint64_t i = 0; i < 500; ++i) {
        first[ngram(i)] = "a string too long for the small buffer " + std::to_string(i);
    }
    Counts second(std::move(first));
    CHECK(second.size() == 500);
    CHECK(second.find(ngram(499))->second.ends_with(" 499"));
    CHECK(first.empty());  // NOLINT(bugprone-use-after-move): promised to be empty
    CHECK(first.find(ngram(499)) == first.end());
    first[ngram(3)] = "again";
    CHECK(first.size() == 1);
    first = std::move(second);
    CHECK(first.size() == 500);
    CHECK(first.begin()->second.ends_with(" 0"));
    second = Counts();
    CHECK(second.empty());
    CHECK(second.begin() == second.end());
}

// A mapped type whose constructor throws on demand and which counts its living.
struct Fragile {
    static inline int alive = 0;
    static inline int until_throw = -1;
    explicit Fragile(int v) : value(v) {
        if (until_throw >= 0 && until_throw-- == 0) {
            throw std::runtime_error("on demand");
        }
        ++alive;
    }
    Fragile(Fragile&& other) noexcept : value(other.value) { ++alive; }
    ~Fragile() { --alive; }
    int value;
};

template <template <class, class, class> class Map>
void throwing_constructor() {
    {
        Map<Ngram, Fragile, AvalanchingNgramHash> map;
        for (int i = 0; i < 2'000; ++i) {  // before each insertion one that fails: at every doubling too
            Fragile::until_throw = 0;
            bool threw = false;
            try {
                map.try_emplace(ngram(static_cast<std::uint64_t>(i)), i);
            } catch (const std::runtime_error&) {
                threw = true;
            }
            Fragile::until_throw = -1;
            CHECK(threw);
            CHECK(map.size() == static_cast<std::size_t>(i));
            CHECK(Fragile::alive == i);
            CHECK(map.find(ngram(static_cast<std::uint64_t>(i))) == map.end());
            CHECK(map.try_emplace(ngram(static_cast<std::uint64_t>(i)), i).second);
        }
        int i = 0;
        for (const auto& [key, fragile] : map) {
            CHECK(fragile.value == i);
            CHECK(map.find(key)->second.value == i);
            ++i;
        }
        CHECK(i == 2'000);
    }
    CHECK(Fragile::alive == 0);
}

// Every allocation fails once, growth at every doubling included: nothing is lost and nothing half inserted.
template <template <class, class, class> class Map>
void failing_allocation() {
    Map<Ngram, std::uint64_t, AvalanchingNgramHash> map;
    int failures = 0;
    for (std::uint64_t i = 0; i < 3'000; ++i) {
        for (long long nth = 0;; ++nth) {
            allocations_until_failure = nth;
            bool failed = false;
            try {
                map.try_emplace(ngram(i), i);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            allocations_until_failure = -1;
            if (!failed) {
                break;
            }
            ++failures;
            CHECK(map.size() == i);
            CHECK(map.find(ngram(i)) == map.end());
            bool right = true;
            for (std::uint64_t k = 0; k < i; ++k) {
                const auto it = map.find(ngram(k));
                right = right && it != map.end() && it->second == k;
            }
            CHECK(right);
        }
    }
    CHECK(map.size() == 3'000);
    CHECK(failures > 10);
}

// When not even the index of the old size can be had again, the values go: an empty map, and a usable one.
void failing_for_good() {
    ladder::SegmentedMap<Ngram, std::uint64_t, AvalanchingNgramHash> map;
    for (std::uint64_t i = 0; i < 819; ++i) {
        map[ngram(i)] = i;  // full: the next value needs 2048 buckets, but no new segment
    }
    bool failed = false;
    allocations_fail_for_good = true;
    try {
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            map[ngram(i)] = i;
        }
    } catch (const std::bad_alloc&) {
        failed = true;
    }
    allocations_fail_for_good = false;
    CHECK(failed);
    CHECK(map.empty());
    CHECK(map.bucket_count() == 0);
    CHECK(map.begin() == map.end());
    CHECK(map.find(ngram(1)) == map.end());
    for (std::uint64_t i = 0; i < 2'000; ++i) {
        map[ngram(i)] = i;
    }
    CHECK(map.size() == 2'000);
    CHECK(map.find(ngram(1'999))->second == 1'999);
}

template <class Map>
void accounted_memory() {
    const std::size_t before = allocated_bytes;
    {
        Map map;
        CHECK(map.memory_bytes() == 0);
        CHECK(allocated_bytes == before);  // an empty map allocates nothing
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            map[ngram(i)] = 1;
            if (i % 97 == 0) {
                CHECK(map.memory_bytes() == allocated_bytes - before);
            }
        }
        const std::size_t full = allocated_bytes;
        map.clear();
        CHECK(allocated_bytes == full);  // kept for the next filling
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            map[ngram(i)] = 1;
        }
        CHECK(allocated_bytes == full);
    }
    CHECK(allocated_bytes == before);
}

// Growth by rebuild never holds two bucket arrays: the peak is the size after growing.
void no_doubling_spike() {
    using Map = ladder::SegmentedMap<Ngram, std::uint64_t, AvalanchingNgramHash>;
    Map map;
    CHECK(ladder::map_memory_bytes(map) == 0);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        map[ngram(i)] = i;
    }
    const double per_value = static_cast<double>(map.memory_bytes()) / 100'000;
    CHECK(per_value < 24 + 8 / 0.4 + 2);  // pair, at worst 2.5 buckets, segment ends and their pointers
}

template <class Map>
void chosen_memory() {
    Map map;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        map[ngram(i)] = 1;
    }
    const auto payload = 10'000 * (sizeof(typename Map::value_type) + 10);
    CHECK(ladder::map_memory_bytes(map) >= payload);
    CHECK(ladder::map_memory_bytes(map) < 3 * payload);
}

struct alignas(64) Wide {
    char bytes[8192];
};

void odd_value_types() {
    using Huge = ladder::SegmentedMap<Ngram, Wide, AvalanchingNgramHash>;  // larger than a segment
    static_assert(ladder::SegmentedVector<std::pair<Ngram, Wide>>::segment_size == 1);
    Huge map;
    for (std::uint64_t i = 0; i < 100; ++i) {
        map[ngram(i)].bytes[8191] = static_cast<char>(i);
    }
    for (std::uint64_t i = 0; i < 100; ++i) {
        CHECK(map.find(ngram(i))->second.bytes[8191] == static_cast<char>(i));
        CHECK(reinterpret_cast<std::uintptr_t>(&map.find(ngram(i))->second) % 64 == 0);
    }
    static_assert(ladder::SegmentedVector<std::pair<Ngram, std::unordered_map<int, int>>>::segment_size ==
                  32);
    static_assert(ladder::SegmentedVector<std::uint64_t>::segment_size == 512);
    static_assert(ladder::SegmentedVector<char[48], 4096>::segment_size == 64);
}

void iterators() {
    using Map = ladder::SegmentedMap<Ngram, int, AvalanchingNgramHash>;
    static_assert(std::forward_iterator<Map::iterator>);
    static_assert(std::forward_iterator<Map::const_iterator>);
    static_assert(std::is_convertible_v<Map::iterator, Map::const_iterator>);
    static_assert(!std::is_convertible_v<Map::const_iterator, Map::iterator>);
    Map map;
    CHECK(map.begin() == map.end());
    constexpr std::size_t segment = ladder::SegmentedVector<Map::value_type>::segment_size;
    static_assert(segment == 128);  // 20 bytes each
    for (std::uint64_t i = 0; i < 3 * segment; ++i) {
        map[ngram(i)] = static_cast<int>(i);
        const auto distance = std::distance(map.begin(), map.end());  // full last segments among them
        CHECK(distance == static_cast<std::ptrdiff_t>(i) + 1);
    }
    auto it = map.find(ngram(127));
    CHECK((it++)->second == 127);
    CHECK(it->second == 128);
    const Map::const_iterator constant = it;
    CHECK(constant == map.find(ngram(128)));
    CHECK(std::as_const(map).find(ngram(383)) != map.end());
    CHECK(++map.find(ngram(383)) == map.end());
}

void too_many_values() {
    ladder::SegmentedMap<Ngram, int, AvalanchingNgramHash> map;
    map[ngram(1)] = 1;
    bool refused = false;
    try {
        map.reserve(std::size_t{1} << 40);
    } catch (const std::length_error&) {
        refused = true;
    } catch (const std::bad_alloc&) {
        refused = true;
    }
    CHECK(refused);
    CHECK(map.find(ngram(1))->second == 1);
}

// Each input bit flips each output bit in half of all keys, whatever the length of the n-gram.
void avalanche() {
    std::mt19937_64 random(5);
    double worst = 0;
    for (int length = 1; length <= 4; ++length) {
        constexpr int rounds = 4000;
        std::vector<int> flips(static_cast<std::size_t>(length) * 17 * 64);
        for (int round = 0; round < rounds; ++round) {
            Ngram key;
            for (int slot = 0; slot < length; ++slot) {
                key.tokens[static_cast<std::size_t>(slot)] = static_cast<Token>(random() % 131'072);
            }
            const std::uint64_t hash = AvalanchingNgramHash{}(key);
            for (int bit = 0; bit < length * 17; ++bit) {
                Ngram other = key;
                other.tokens[static_cast<std::size_t>(bit / 17)] ^= 1 << (bit % 17);
                const std::uint64_t change = hash ^ AvalanchingNgramHash{}(other);
                for (int out = 0; out < 64; ++out) {
                    flips[static_cast<std::size_t>(bit * 64 + out)] += static_cast<int>((change >> out) & 1);
                }
            }
        }
        for (const int count : flips) {
            worst = std::max(worst, std::abs(static_cast<double>(count) / rounds - 0.5));
        }
    }
    std::fprintf(stderr, "avalanche: worst bias %.4f\n", worst);
    CHECK(worst < 0.05);  // 4000 draws: 0.008 is one standard deviation, 4352 x 4 pairs reach some four
}

// The bits the map uses, top and bottom, on n-grams as text has them: dense small ids, shared prefixes.
void hash_spreads() {
    for (const unsigned shift : {0U, 48U, 56U}) {
        std::vector<int> load(std::size_t{1} << (shift == 48 ? 16 : 8));
        const auto expected = 1'000'000.0 / static_cast<double>(load.size());
        for (std::uint64_t i = 0; i < 1'000'000; ++i) {
            const std::uint64_t hash = AvalanchingNgramHash{}(ngram(i));
            ++load[(hash >> shift) & (load.size() - 1)];
        }
        double chi2 = 0;
        for (const int n : load) {
            chi2 += (n - expected) * (n - expected) / expected;
        }
        const auto freedom = static_cast<double>(load.size() - 1);
        CHECK(std::abs(chi2 - freedom) < 6 * std::sqrt(2 * freedom));
    }
    std::set<std::uint64_t> distinct;
    for (std::uint64_t i = 0; i < 200'000; ++i) {
        distinct.insert(AvalanchingNgramHash{}(ngram(i)));
    }
    CHECK(distinct.size() == 200'000);
}

// Values from the definition in drafting.md, worked out in exact integers elsewhere.
void xor_hash() {
    const auto hash = [](std::initializer_list<Token> tokens) {
        return XorNgramHash{}(Ngram(std::span<const Token>(tokens.begin(), tokens.size())));
    };
    CHECK(hash({}) == 0);  // four equal terms
    CHECK(hash({0, 0, 0, 0}) == 0);
    CHECK(hash({5, 5}) == 0);             // two pairs of equal terms
    CHECK(hash({1, 2}) == hash({2, 1}));  // order is lost: upstream's weakness
    CHECK(hash({1}) == 18446744073709551614ULL);
    CHECK(hash({1, 2}) == 11698534113733411903ULL);
    CHECK(hash({1000, 131071, 7}) == 8053608310736672411ULL);
    CHECK(hash({1000, 131071, 7, 2147483647}) == 3414124346994054811ULL);
}

template <template <class, class, class> class Map>
void common_checks(const std::string& name) {
    const auto run = [&](const char* what, auto body) { testing::run((name + ": " + what).c_str(), body); };
    run("random operations", [] {
        for (unsigned seed = 1; seed <= 6; ++seed) {
            random_operations<Map, AvalanchingNgramHash>(seed, 20'000, std::uint64_t{300} << (2 * seed),
                                                         4'000);
        }
    });
    run("random operations, llama.cpp's hash",
        [] { random_operations<Map, XorNgramHash>(11, 20'000, 5'000, 9'000); });
    run("random operations, a hash the map must mix",
        [] { random_operations<Map, FewBitsHash>(12, 20'000, 3'000, 9'000); });
    run("all keys share one hash", [] { random_operations<Map, SameHash>(13, 3'000, 700, 1'000); });
    run("all keys share one home", [] { random_operations<Map, SameHomeHash>(14, 5'000, 1'500, 3'000); });
    run("all keys live at the end", [] { random_operations<Map, LastHomeHash>(15, 8'000, 3'000, 5'000); });
    run("all keys share one fingerprint",
        [] { random_operations<Map, SameFingerprintHash>(16, 20'000, 9'000, 15'000); });
    run("growth at every doubling", growth<Map>);
    run("move-only values", move_only_values<Map>);
    run("moving the map", moving_the_map<Map>);
    run("a throwing constructor changes nothing", throwing_constructor<Map>);
}

}  // namespace

int main() {
    common_checks<OurSegmented>("SegmentedMap");
    common_checks<OurTinySegments>("SegmentedMap, 64-byte segments");
    common_checks<OurDense>("DenseMap");
    const std::string source = ladder::dense_map_source;
    if (source != "ladder") {
        common_checks<ChosenSegmented>("segmented_map of " + source);
        common_checks<ChosenDense>("map of " + source);
    }
    testing::run("SegmentedMap: values never move", values_never_move<OurSegmented>);
    testing::run("chosen segmented map: values never move", values_never_move<ChosenSegmented>);
    testing::run("SegmentedMap: a failing allocation changes nothing", failing_allocation<OurSegmented>);
    testing::run("SegmentedMap, 64-byte segments: a failing allocation changes nothing",
                 failing_allocation<OurTinySegments>);
    testing::run("DenseMap: a failing allocation changes nothing", failing_allocation<OurDense>);
    testing::run("SegmentedMap: no memory left at all", failing_for_good);
    testing::run("SegmentedMap: memory is accounted",
                 accounted_memory<OurSegmented<Ngram, int, AvalanchingNgramHash>>);
    testing::run("DenseMap: memory is accounted",
                 accounted_memory<OurDense<Ngram, int, AvalanchingNgramHash>>);
    testing::run("SegmentedMap: no doubling spike", no_doubling_spike);
    testing::run("chosen segmented map: memory",
                 chosen_memory<ChosenSegmented<Ngram, int, AvalanchingNgramHash>>);
    testing::run("chosen dense map: memory", chosen_memory<ChosenDense<Ngram, int, AvalanchingNgramHash>>);
    testing::run("SegmentedMap: odd value types", odd_value_types);
    testing::run("SegmentedMap: iterators", iterators);
    testing::run("SegmentedMap: too many values are refused", too_many_values);
    testing::run("AvalanchingNgramHash: avalanche", avalanche);
    testing::run("AvalanchingNgramHash: spreads", hash_spreads);
    testing::run("XorNgramHash: as drafting.md has it", xor_hash);
    return testing::summary();
}
