// Contexts of all orders in one table: eight nodes to a bucket of two cache lines, growing a bucket at a
// time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/history/growing_array.hpp"
#include "beyond/calibrated/history/node.hpp"
#include "beyond/calibrated/history/suffix_hashes.hpp"

#if defined(__SSE2__) && !defined(LADDER_PORTABLE)
#include <emmintrin.h>
#endif

namespace ladder::calibrated {

// Four nodes as arrays, so that one comparison finds a key among them.
struct alignas(64) Line {
    static constexpr std::size_t width = 4;
    std::array<std::uint32_t, width> keys{};    // 0: no node; nodes come first
    std::array<Token, width> first{};           // A
    std::array<Token, width> second{};          // B
    std::array<std::uint32_t, width> counts{};  // Counts::word

    // Which node has this key, or `width`.
    [[nodiscard]] std::size_t find(ContextKey key) const noexcept {
        std::uint32_t found = 0;  // a bit a node
#if defined(__SSE2__) && !defined(LADDER_PORTABLE)
        const auto load = [](const auto& from) {
            return _mm_load_si128(reinterpret_cast<const __m128i*>(from.data()));
        };
        const __m128i same_key = _mm_cmpeq_epi32(load(keys), _mm_set1_epi32(static_cast<int>(key.key)));
        const __m128i same_extra = _mm_cmpeq_epi32(_mm_srli_epi32(load(counts), Counts::extra_shift),
                                                   _mm_set1_epi32(static_cast<int>(key.extra)));
        found = static_cast<std::uint32_t>(
            _mm_movemask_ps(_mm_castsi128_ps(_mm_and_si128(same_key, same_extra))));
#else
        for (std::size_t i = 0; i < width; ++i) {
            const bool same = keys[i] == key.key && counts[i] >> Counts::extra_shift == key.extra;
            found |= static_cast<std::uint32_t>(same) << i;
        }
#endif
        return static_cast<std::size_t>(std::countr_zero(found | 1U << width));
    }
};
static_assert(sizeof(Line) == 64);

// A node's number: its line and its place there. The node may be given to another context; `holds` tells.
using NodeNumber = std::uint32_t;
inline constexpr NodeNumber no_node = ~NodeNumber{0};

class NodeTable {
public:
    // Grows when more than this many 16ths of its places are taken.
    explicit NodeTable(std::size_t load_16ths) : load_16ths_(load_16ths) { buckets_.push_back({}); }

    [[nodiscard]] NodeNumber find(ContextKey key) const noexcept {
        const std::size_t bucket = bucket_of(key.key);
        const Bucket& lines = buckets_[bucket];
        std::size_t slot = lines.lines[0].find(key);
        if (slot == Line::width) {
            if (lines.lines[0].keys[Line::width - 1] == 0) {
                return no_node;  // nothing has spilled into the second line
            }
            slot += lines.lines[1].find(key);
            if (slot == bucket_width) {
                return no_node;
            }
        }
        return static_cast<NodeNumber>(bucket * bucket_width + slot);
    }
    [[nodiscard]] bool holds(NodeNumber node, ContextKey key) const noexcept {
        const Line& line = line_of(node);
        const std::size_t slot = node % Line::width;
        return line.keys[slot] == key.key && line.counts[slot] >> Counts::extra_shift == key.extra;
    }
    [[nodiscard]] Token first(NodeNumber node) const noexcept {
        return line_of(node).first[node % Line::width];
    }
    [[nodiscard]] Token second(NodeNumber node) const noexcept {
        return line_of(node).second[node % Line::width];
    }
    [[nodiscard]] Counts counts(NodeNumber node) const noexcept {
        return Counts::of(line_of(node).counts[node % Line::width]);
    }

    void prefetch(ContextKey key) const noexcept { __builtin_prefetch(&buckets_[bucket_of(key.key)]); }

    // A new context with its first successor.
    void insert(ContextKey key, Token token) {
        if (place(buckets_[bucket_of(key.key)],
                  {key.key, token, null_token, Counts{1, 0, 1, 0}.word(key.extra)})) {
            ++size_;
        }
        if (size_ * 16 > buckets_.size() * bucket_width * load_16ths_) {
            split();
        }
    }
    void count(NodeNumber node, Token token) noexcept {
        Line& line = line_of(node);
        const std::size_t slot = node % Line::width;
        Counts now = Counts::of(line.counts[slot]);
        count_successor(line.first[slot], line.second[slot], now, token);
        line.counts[slot] = now.word(line.counts[slot] >> Counts::extra_shift);
    }
    void uncount(ContextKey key, Token token) noexcept {
        const NodeNumber node = find(key);
        if (node == no_node) {
            return;
        }
        Line& line = line_of(node);
        const std::size_t slot = node % Line::width;
        Counts now = Counts::of(line.counts[slot]);
        if (uncount_successor(line.first[slot], line.second[slot], now, token)) {
            line.counts[slot] = now.word(key.extra);
        } else {
            remove(buckets_[node / bucket_width], node % bucket_width);
            --size_;
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return buckets_.bytes(); }

    template <class Archive>
    void archive(Archive& archive) {
        archive.array(buckets_);
        if constexpr (Archive::loads) {
            const std::size_t n = buckets_.size();
            archive.require(n != 0 && n <= no_node / bucket_width, "a table has no buckets, or too many");
            mask_ = std::bit_ceil(n) - 1;
            size_ = 0;
            for (std::size_t i = 0; i < n; ++i) {
                archive.require(is_sound(buckets_[i]), "a bucket holds what no counting makes");
                size_ += filled(buckets_[i]);
            }
        }
    }

private:
    static constexpr std::size_t bucket_width = 2 * Line::width;
    struct Bucket {
        std::array<Line, 2> lines{};
    };
    struct Node {
        std::uint32_t key;
        Token first;
        Token second;
        std::uint32_t counts;
    };

    [[nodiscard]] Line& line_of(NodeNumber node) noexcept {
        return buckets_[node / bucket_width].lines[node / Line::width % 2];
    }
    [[nodiscard]] const Line& line_of(NodeNumber node) const noexcept {
        return buckets_[node / bucket_width].lines[node / Line::width % 2];
    }
    // Linear hashing: buckets 0 .. size-1, of which the first ones have been split already in this round.
    [[nodiscard]] std::size_t bucket_of(std::uint32_t key) const noexcept {
        const std::size_t bucket = key & mask_;
        return bucket < buckets_.size() ? bucket : bucket - (mask_ + 1) / 2;
    }
    static Node node_at(const Bucket& bucket, std::size_t i) noexcept {
        const Line& line = bucket.lines[i / Line::width];
        const std::size_t slot = i % Line::width;
        return {line.keys[slot], line.first[slot], line.second[slot], line.counts[slot]};
    }
    static void put(Bucket& bucket, std::size_t i, const Node& node) noexcept {
        Line& line = bucket.lines[i / Line::width];
        const std::size_t slot = i % Line::width;
        line.keys[slot] = node.key;
        line.first[slot] = node.first;
        line.second[slot] = node.second;
        line.counts[slot] = node.counts;
    }
    // Nodes come first, and no later step can leave its tables.
    static bool is_sound(const Bucket& bucket) noexcept {
        const std::size_t n = filled(bucket);
        for (std::size_t i = 0; i < bucket_width; ++i) {
            const Node node = node_at(bucket, i);
            const Counts counts = Counts::of(node.counts);
            const bool counted = counts.a > 0 && counts.n >= counts.a + counts.b && counts.n <= Counts::most;
            if (i < n ? !counted || node.key == 0 || node.first < 0 || node.second < null_token
                      : node.key != 0) {
                return false;
            }
        }
        return true;
    }
    // What a full bucket gives up first: the node seen least often, of equals the longest context.
    static std::uint32_t worth(const Node& node) noexcept {
        return Counts::of(node.counts).n * 8 + (7 - (node.counts >> 29));
    }
    // How many nodes it holds: they come first.
    static std::size_t filled(const Bucket& bucket) noexcept {
        std::size_t n = bucket.lines[0].keys[Line::width - 1] == 0 ? 0 : Line::width;
        const Line& line = bucket.lines[n / Line::width];
        while (n % Line::width < Line::width - 1 && line.keys[n % Line::width] != 0) {
            ++n;
        }
        return n + (line.keys[Line::width - 1] != 0 ? 1 : 0);
    }
    // True if a vacant place was taken.
    static bool place(Bucket& bucket, const Node& node) noexcept {
        const std::size_t n = filled(bucket);
        if (n < bucket_width) {
            put(bucket, n, node);
            return true;
        }
        std::size_t least = 0;
        for (std::size_t i = 1; i < bucket_width; ++i) {
            least = worth(node_at(bucket, i)) < worth(node_at(bucket, least)) ? i : least;
        }
        put(bucket, least, node);
        return false;
    }
    // The last node fills the gap, and what is forgotten is gone, not only marked.
    static void remove(Bucket& bucket, std::size_t gap) noexcept {
        const std::size_t last = filled(bucket) - 1;
        put(bucket, gap, node_at(bucket, last));
        put(bucket, last, {0, 0, 0, 0});
    }

    void split() {
        const std::size_t added = buckets_.size();
        if (added > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        buckets_.push_back({});
        Bucket& to = buckets_[added];
        Bucket& from = buckets_[added - (mask_ + 1) / 2];
        const std::size_t before = filled(from);
        std::size_t kept = 0;
        std::size_t moved = 0;
        for (std::size_t i = 0; i < before; ++i) {
            const Node node = node_at(from, i);
            if ((node.key & mask_) == added) {
                put(to, moved++, node);
            } else {
                put(from, kept++, node);
            }
        }
        for (std::size_t i = kept; i < before; ++i) {
            put(from, i, {0, 0, 0, 0});
        }
    }

    GrowingArray<Bucket> buckets_;
    std::size_t load_16ths_;
    std::size_t mask_ = 0;
    std::size_t size_ = 0;
};

}  // namespace ladder::calibrated
