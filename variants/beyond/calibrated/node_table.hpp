// Contexts of all orders in one table: eight nodes to a bucket of two cache lines, growing a bucket at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "beyond/calibrated/node.hpp"
#include "beyond/calibrated/segmented_array.hpp"
#include "beyond/calibrated/suffix_hashes.hpp"

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

// A node's place. It may be given to another context; `holds` tells.
struct NodeRef {
    Line* line = nullptr;
    std::size_t slot = 0;

    [[nodiscard]] explicit operator bool() const noexcept { return line != nullptr; }
    [[nodiscard]] Token first() const noexcept { return line->first[slot]; }
    [[nodiscard]] Token second() const noexcept { return line->second[slot]; }
    [[nodiscard]] Counts counts() const noexcept { return Counts::of(line->counts[slot]); }
    [[nodiscard]] bool holds(ContextKey key) const noexcept {
        return line->keys[slot] == key.key && line->counts[slot] >> Counts::extra_shift == key.extra;
    }
};

class NodeTable {
public:
    // Grows when more than this many 16ths of its places are taken.
    explicit NodeTable(std::size_t load_16ths) : load_16ths_(load_16ths) { buckets_.push_back({}); }

    [[nodiscard]] NodeRef find(ContextKey key) noexcept {
        Bucket& bucket = buckets_[bucket_of(key.key)];
        for (Line& line : bucket.lines) {
            if (const std::size_t slot = line.find(key); slot < Line::width) {
                return {&line, slot};
            }
            if (line.keys[Line::width - 1] == 0) {
                break;  // nothing has spilled into the second line
            }
        }
        return {};
    }
    void prefetch(ContextKey key) const noexcept {
        const Bucket& bucket = buckets_[bucket_of(key.key)];
        __builtin_prefetch(&bucket.lines[0]);
        __builtin_prefetch(&bucket.lines[1]);
    }

    // A new context with its first successor.
    void insert(ContextKey key, Token token) {
        if (place(buckets_[bucket_of(key.key)], {key.key, token, null_token, Counts{1, 0, 1, 0}.word(key.extra)})) {
            ++size_;
        }
        if (size_ * 16 > buckets_.size() * bucket_width * load_16ths_) {
            split();
        }
    }
    static void count(NodeRef node, Token token) noexcept {
        Counts counts = node.counts();
        count_successor(node.line->first[node.slot], node.line->second[node.slot], counts, token);
        store(node, counts);
    }
    void uncount(ContextKey key, Token token) noexcept {
        const NodeRef node = find(key);
        if (!node) {
            return;
        }
        Counts counts = node.counts();
        if (uncount_successor(node.line->first[node.slot], node.line->second[node.slot], counts, token)) {
            store(node, counts);
        } else {
            remove(buckets_[bucket_of(key.key)], node);
            --size_;
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return buckets_.bytes(); }

private:
    static constexpr std::size_t bucket_width = 2 * Line::width;
    struct Bucket {
        std::array<Line, 2> lines{};
        [[nodiscard]] Line& line(std::size_t i) noexcept { return lines[i / Line::width]; }
    };
    struct Node {
        std::uint32_t key;
        Token first;
        Token second;
        std::uint32_t counts;
    };

    // Linear hashing: buckets 0 .. size-1, of which the first ones have been split already in this round.
    [[nodiscard]] std::size_t bucket_of(std::uint32_t key) const noexcept {
        const std::size_t bucket = key & mask_;
        return bucket < buckets_.size() ? bucket : bucket - (mask_ + 1) / 2;
    }
    static Node node_at(Bucket& bucket, std::size_t i) noexcept {
        const Line& line = bucket.line(i);
        const std::size_t slot = i % Line::width;
        return {line.keys[slot], line.first[slot], line.second[slot], line.counts[slot]};
    }
    static void put(Bucket& bucket, std::size_t i, const Node& node) noexcept {
        Line& line = bucket.line(i);
        const std::size_t slot = i % Line::width;
        line.keys[slot] = node.key;
        line.first[slot] = node.first;
        line.second[slot] = node.second;
        line.counts[slot] = node.counts;
    }
    // What a full bucket gives up first: the node seen least often, of equals the longest context.
    static std::uint32_t worth(const Node& node) noexcept {
        return Counts::of(node.counts).n * 8 + (7 - (node.counts >> 29));
    }
    // True if a vacant place was taken.
    static bool place(Bucket& bucket, const Node& node) noexcept {
        std::size_t least = 0;
        std::uint32_t least_worth = ~0U;
        for (std::size_t i = 0; i < bucket_width; ++i) {
            const Node other = node_at(bucket, i);
            if (other.key == 0) {
                put(bucket, i, node);
                return true;
            }
            if (worth(other) < least_worth) {
                least_worth = worth(other);
                least = i;
            }
        }
        put(bucket, least, node);
        return false;
    }
    static void store(NodeRef node, const Counts& counts) noexcept {
        std::uint32_t& word = node.line->counts[node.slot];
        word = counts.word(word >> Counts::extra_shift);
    }
    // The last node fills the gap, and what is forgotten is gone, not only marked.
    static void remove(Bucket& bucket, NodeRef node) noexcept {
        const std::size_t gap = static_cast<std::size_t>(node.line - bucket.lines.data()) * Line::width + node.slot;
        std::size_t last = bucket_width - 1;
        while (node_at(bucket, last).key == 0) {
            --last;
        }
        put(bucket, gap, node_at(bucket, last));
        put(bucket, last, {0, 0, 0, 0});
    }

    void split() {
        const std::size_t added = buckets_.size();
        if (added > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        Bucket& to = buckets_.push_back({});
        Bucket& from = buckets_[added - (mask_ + 1) / 2];
        const Bucket before = std::exchange(from, Bucket{});
        for (std::size_t i = 0; i < bucket_width; ++i) {
            const Node node = node_at(const_cast<Bucket&>(before), i);
            if (node.key != 0) {
                place((node.key & mask_) == added ? to : from, node);
            }
        }
    }

    SegmentedArray<Bucket> buckets_;
    std::size_t load_16ths_;
    std::size_t mask_ = 0;
    std::size_t size_ = 0;
};

}  // namespace ladder::calibrated
