// Makes the summary file from llama.cpp's.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "beyond/summary_index/static_file.hpp"
#include "drafting/llama_rule.hpp"
#include "formats/sink.hpp"
#include "formats/sorted_cache.hpp"

namespace ladder::summary {

// Lists end to end, in units of four bytes.
class ListWriter {
public:
    explicit ListWriter(const Layout& layout) : layout_(layout) {}

    // `successors` in any order. Returns the offset in list units.
    std::uint64_t add(std::span<const Successor> successors, std::uint32_t top_count) {
        light_.clear();
        heavy_.clear();
        for (const auto& [token, count] : successors) {
            const std::uint64_t permuted = layout_.permuted_token(token);
            if (static_cast<std::uint64_t>(count) <= layout_.light_limit()) {
                light_.push_back(permuted << layout_.count_bits | static_cast<std::uint64_t>(count));
            } else {
                heavy_.push_back({static_cast<std::uint32_t>(permuted), static_cast<std::uint32_t>(count)});
            }
        }
        std::sort(light_.begin(), light_.end());
        std::sort(heavy_.begin(), heavy_.end(),
                  [](const HeavyPair& a, const HeavyPair& b) { return a.permuted_token < b.permuted_token; });
        const std::uint64_t offset = bytes_.size() / list_unit_bytes;
        put_head({static_cast<std::uint32_t>(light_.size()), static_cast<std::uint32_t>(heavy_.size()),
                  top_count});
        for (const HeavyPair& pair : heavy_) {
            put(&pair, sizeof pair);
        }
        for (const std::uint64_t pair : light_) {
            put(&pair, layout_.pair_bytes);
        }
        bytes_.resize((bytes_.size() + list_unit_bytes - 1) / list_unit_bytes * list_unit_bytes);
        return offset;
    }

    std::vector<std::byte> finish() {
        bytes_.resize(bytes_.size() + tail_bytes);
        return std::move(bytes_);
    }

private:
    void put(const void* value, std::size_t size) {
        const auto* first = static_cast<const std::byte*>(value);
        bytes_.insert(bytes_.end(), first, first + size);
    }
    void put_head(const ListHead& head) {
        if (head.is_short()) {
            const std::uint32_t word = head.n_light << 1 | head.top_count << 16;
            put(&word, sizeof word);
            return;
        }
        const std::uint32_t words[] = {head.n_light << 1 | 1, head.n_heavy, head.top_count};
        put(words, sizeof words);
    }

    const Layout& layout_;
    std::vector<std::byte> bytes_;
    std::vector<std::uint64_t> light_;
    std::vector<HeavyPair> heavy_;
};

struct KeyedPayload {
    std::uint64_t permuted_key;
    Payload payload;
};

// Puts every payload into its own line or one of the three behind it; false if a line's neighbours are full.
// `keyed` must be sorted by permuted key, which is also the order of the lines.
template <class Entry>
[[nodiscard]] bool fill_lines(const std::vector<KeyedPayload>& keyed, const Layout& layout,
                              std::vector<typename Entry::Word>& words) {
    constexpr unsigned displacements = 1U << displacement_bits;
    words.assign((layout.n_lines + displacements - 1) * Entry::per_line, {});
    std::vector<std::uint8_t> used(layout.n_lines + displacements - 1, 0);
    for (const KeyedPayload& item : keyed) {
        const std::uint64_t home = layout.line_of(item.permuted_key);
        unsigned displacement = 0;
        while (displacement < displacements && used[home + displacement] == Entry::per_line) {
            ++displacement;
        }
        if (displacement == displacements) {
            return false;
        }
        const std::uint64_t line = home + displacement;
        words[line * Entry::per_line + used[line]++] =
            Entry::encode(layout, Entry::identity(layout, item.permuted_key, displacement), item.payload);
    }
    return true;
}

class StaticBuilder {
public:
    StaticBuilder(Source& source, std::uint64_t vocabulary_size) : cache_(source, vocabulary_size) {
        header_.magic = summary_magic;
        header_.version = version;
        header_.vocabulary_size = vocabulary_size;
        header_.token_limit = std::max<std::uint64_t>(1, cache_.token_limit());
        header_.n_bigrams = cache_.n_bigrams();
        header_.n_successors = cache_.n_successors();
    }

    void write(Sink& sink) {
        const double entries = static_cast<double>(header_.n_bigrams);
        const bool narrow = narrow_fits(lines_for(entries, NarrowEntry::per_line));
        header_.entry_bytes = narrow ? sizeof(NarrowEntry::Word) : sizeof(WideEntry::Word);
        std::uint64_t n_lines = lines_for(entries, narrow ? NarrowEntry::per_line : WideEntry::per_line);
        make_payloads(Layout(header_.token_limit, n_lines));
        while (!(narrow ? try_write<NarrowEntry>(sink, n_lines) : try_write<WideEntry>(sink, n_lines))) {
            n_lines += n_lines / 16 + 1;
        }
    }

private:
    // Fuller lines make a smaller file and more look-ups that must read a second line.
    static constexpr double fill = 0.72;
    static constexpr std::uint64_t min_lines = 8;  // so that a wide entry's identity fits whatever the tokens

    static std::uint64_t lines_for(double entries, std::size_t per_line) {
        return std::max(min_lines, static_cast<std::uint64_t>(
                                       std::ceil(entries / (fill * static_cast<double>(per_line)))));
    }

    // Whether offsets and counts fit what a narrow entry has left. The lists' size is bounded from above.
    bool narrow_fits(std::uint64_t n_lines) const {
        const Layout layout(header_.token_limit, n_lines);
        const std::uint64_t max_units =
            (header_.n_successors * sizeof(HeavyPair) + header_.n_bigrams * 16) / list_unit_bytes;
        constexpr unsigned min_value_bits = 8;
        const unsigned bits = NarrowEntry::value_bits(layout);
        return bits >= min_value_bits && max_units <= low_bits(bits);
    }

    void make_payloads(const Layout& layout) {
        const std::uint64_t value_limit = header_.entry_bytes == sizeof(NarrowEntry::Word)
                                              ? low_bits(NarrowEntry::value_bits(layout))
                                              : low_bits(WideEntry::value_bits(layout));
        ListWriter lists(layout);
        keyed_.reserve(cache_.n_bigrams());
        cache_.for_each([&](Bigram bigram, std::span<const Successor> successors) {
            keyed_.push_back({layout.permuted(bigram), payload_of(successors, lists, value_limit)});
        });
        lists_ = lists.finish();
        LADDER_CHECK(lists_.size() / list_unit_bytes <= value_limit);  // every list's place fits its entry
        std::sort(keyed_.begin(), keyed_.end(), [](const KeyedPayload& a, const KeyedPayload& b) {
            return a.permuted_key < b.permuted_key;
        });
    }

    static Payload payload_of(std::span<const Successor> successors, ListWriter& lists,
                              std::uint64_t value_limit) {
        std::int64_t total = 0;
        Successor top{null_token, 0};
        for (const Successor& successor :
             successors) {  // ascending tokens: the first of equals is the smallest
            total += successor.count;
            if (successor.count > top.count) {
                top = successor;
            }
        }
        if (successors.size() == 1 && static_cast<std::uint64_t>(top.count) <= value_limit) {
            return {Kind::single, top.token, static_cast<std::uint64_t>(top.count)};
        }
        const Kind kind = static_threshold.passes(total, top.count) ? Kind::several_pass : Kind::several_fail;
        return {kind, top.token, lists.add(successors, static_cast<std::uint32_t>(top.count))};
    }

    template <class Entry>
    bool try_write(Sink& sink, std::uint64_t n_lines) {
        const Layout layout(header_.token_limit, n_lines);
        std::vector<typename Entry::Word> words;
        if (!fill_lines<Entry>(keyed_, layout, words)) {
            return false;
        }
        const std::span<const std::byte> lines = std::as_bytes(std::span(words));
        header_.n_lines = lines.size() / line_bytes;
        header_.lines_offset = section_alignment;
        header_.lists_offset = (section_alignment + lines.size() + section_alignment - 1) /
                               section_alignment * section_alignment;
        header_.lists_bytes = lists_.size();
        header_.file_bytes = header_.lists_offset + header_.lists_bytes;
        const std::vector<std::byte> gap(section_alignment - sizeof(Header));
        const std::vector<std::byte> padding(header_.lists_offset - header_.lines_offset - lines.size());
        Xxh64 digest;
        for (const std::span<const std::byte> part :
             {std::span<const std::byte>(gap), lines, std::span<const std::byte>(padding),
              std::span<const std::byte>(lists_)}) {
            digest.update(part);
        }
        header_.content_xxh64 = digest.digest();
        header_.header_xxh64 = header_digest(header_);
        sink.write(std::as_bytes(std::span(&header_, 1)));
        sink.write(gap);
        sink.write(lines);
        sink.write(padding);
        sink.write(lists_);
        return true;
    }

    SortedCache cache_;
    Header header_{};
    std::vector<KeyedPayload> keyed_;
    std::vector<std::byte> lists_;
};

// Equal content gives equal bytes, whatever the order in the source.
inline void build_static_file(Source& source, Sink& sink, std::uint64_t vocabulary_size = 0) {
    StaticBuilder builder(source, vocabulary_size);
    builder.write(sink);
}

}  // namespace ladder::summary
