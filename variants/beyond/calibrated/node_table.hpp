// Contexts of all orders in one table: four nodes to a cache line, growing by one line at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

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
    std::array<std::uint32_t, width> keys{};  // 0: no node
    std::array<Token, width> first;           // A
    std::array<Token, width> second;          // B
    std::array<std::uint32_t, width> counts;  // Counts::word

    // Which node has this key, or `width`.
    [[nodiscard]] std::size_t find(ContextKey key) const noexcept {
        std::uint32_t found = 0;  // a bit a node
#if defined(__SSE2__) && !defined(LADDER_PORTABLE)
        const auto load = [](const auto& from) {
            return _mm_load_si128(reinterpret_cast<const __m128i*>(from.data()));
        };
        const __m128i same_key = _mm_cmpeq_epi32(load(keys), _mm_set1_epi32(static_cast<int>(key.key)));
        const __m128i same_extra = _mm_cmpeq_epi32(_mm_srli_epi32(load(counts), Counts::hash_shift),
                                                   _mm_set1_epi32(static_cast<int>(key.extra)));
        found = static_cast<std::uint32_t>(
            _mm_movemask_ps(_mm_castsi128_ps(_mm_and_si128(same_key, same_extra))));
#else
        for (std::size_t i = 0; i < width; ++i) {
            const bool same = keys[i] == key.key && counts[i] >> Counts::hash_shift == key.extra;
            found |= static_cast<std::uint32_t>(same) << i;
        }
#endif
        return static_cast<std::size_t>(std::countr_zero(found | 1U << width));
    }
};
static_assert(sizeof(Line) == 64);

// A node's place; stays good until the table changes, and tells whether it still is.
struct NodeRef {
    Line* line = nullptr;
    std::size_t slot = 0;

    [[nodiscard]] explicit operator bool() const noexcept { return line != nullptr; }
    [[nodiscard]] Token first() const noexcept { return line->first[slot]; }
    [[nodiscard]] Token second() const noexcept { return line->second[slot]; }
    [[nodiscard]] Counts counts() const noexcept { return Counts::of(line->counts[slot]); }
    [[nodiscard]] bool holds(ContextKey key) const noexcept {
        return line->keys[slot] == key.key && line->counts[slot] >> Counts::hash_shift == key.extra;
    }
};

class NodeTable {
public:
    NodeTable() { lines_.push_back(Line{}); }

    [[nodiscard]] NodeRef find(ContextKey key) noexcept {
        Line& line = lines_[line_of(key.key)];
        const std::size_t slot = line.find(key);
        return slot < Line::width ? NodeRef{&line, slot} : NodeRef{};
    }
    void prefetch(ContextKey key) const noexcept { __builtin_prefetch(&lines_[line_of(key.key)]); }

    // A new context with its first successor. A full line gives up the node seen least often.
    void insert(ContextKey key, Token token) {
        Line& line = lines_[line_of(key.key)];
        const std::size_t slot = place_in(line);
        size_ += line.keys[slot] == 0 ? 1 : 0;
        put(line, slot, key, token);
        if (size_ * 16 > lines_.size() * Line::width * load_16ths) {
            split();
        }
    }
    void count(NodeRef node, Token token) noexcept {
        Counts counts = node.counts();
        count_successor(node.line->first[node.slot], node.line->second[node.slot], counts, token);
        store(node, counts);
    }
    void uncount(NodeRef node, Token token) noexcept {
        Counts counts = node.counts();
        if (uncount_successor(node.line->first[node.slot], node.line->second[node.slot], counts, token)) {
            store(node, counts);
        } else {
            *node.line = without(*node.line, node.slot);
            --size_;
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return lines_.bytes(); }

#ifdef CAL_EXPERIMENT
    std::size_t load_16ths = 11;
#else
    static constexpr std::size_t load_16ths = 11;
#endif
private:

    // Linear hashing: lines 0 .. size-1, of which the first ones have been split already in this round.
    [[nodiscard]] std::size_t line_of(std::uint32_t key) const noexcept {
        const std::size_t line = key & mask_;
        return line < lines_.size() ? line : line - (mask_ + 1) / 2;
    }

    static std::size_t place_in(const Line& line) noexcept {
        std::size_t best = 0;
        std::uint32_t least = ~0U;
        for (std::size_t i = 0; i < Line::width; ++i) {
            const std::uint32_t n = line.keys[i] == 0 ? 0 : Counts::of(line.counts[i]).n;
            if (n < least) {
                least = n;
                best = i;
            }
        }
        return best;
    }
    static void put(Line& line, std::size_t slot, ContextKey key, Token token) noexcept {
        line.keys[slot] = key.key;
        line.first[slot] = token;
        line.second[slot] = null_token;
        line.counts[slot] = Counts{1, 0, 1, 0}.word(key.extra);
    }
    static void store(NodeRef node, const Counts& counts) noexcept {
        std::uint32_t& word = node.line->counts[node.slot];
        word = counts.word(word >> Counts::hash_shift);
    }
    // Zeroed, not only marked: what is forgotten is gone.
    static Line without(Line line, std::size_t slot) noexcept {
        line.keys[slot] = line.counts[slot] = 0;
        line.first[slot] = line.second[slot] = 0;
        return line;
    }

    void split() {
        const std::size_t added = lines_.size();
        if (added > mask_) {
            mask_ = 2 * mask_ + 1;
        }
        Line& to = lines_.push_back(Line{});
        Line& from = lines_[added - (mask_ + 1) / 2];
        for (std::size_t slot = 0; slot < Line::width; ++slot) {
            if (from.keys[slot] != 0 && (from.keys[slot] & mask_) == added) {
                to.keys[slot] = from.keys[slot];
                to.first[slot] = from.first[slot];
                to.second[slot] = from.second[slot];
                to.counts[slot] = from.counts[slot];
                from = without(from, slot);
            }
        }
    }

    SegmentedArray<Line> lines_;
    std::size_t mask_ = 0;
    std::size_t size_ = 0;
};

}  // namespace ladder::calibrated
