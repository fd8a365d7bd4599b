// The static cache as a mapped file: one line of 64 bytes answers most look-ups.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/xxh64.hpp"
#include "beyond/summary_index/static_layout.hpp"
#include "formats/file_header.hpp"
#include "formats/file_io.hpp"
#include "formats/mapped_file.hpp"

namespace ladder::summary {

inline constexpr FormatWords words{"summary", "build it again from llama.cpp's file"};

[[noreturn]] inline void refuse(const std::string& name, std::uint64_t offset, const std::string& problem) {
    refuse_damaged(words, name, offset, problem);
}

// The last lines take what spills over and are nobody's own.
[[nodiscard]] inline Layout layout_of(const Header& header) {
    return {header.token_limit, header.n_lines - ((1U << displacement_bits) - 1)};
}

// Everything that look-ups rely on; the content itself is verify()'s business.
[[nodiscard]] inline Header read_header(std::span<const std::byte> bytes, const std::string& name) {
    const Header header = read_file_header<Header>(bytes, name, summary_magic, version, words);
    const bool sections_fit =
        header.lines_offset == section_alignment && header.lists_offset % section_alignment == 0 &&
        header.lines_offset <= header.lists_offset && header.lists_offset <= header.file_bytes &&
        header.n_lines > (1U << displacement_bits) &&
        header.n_lines <= (header.lists_offset - header.lines_offset) / line_bytes &&
        header.lists_bytes == header.file_bytes - header.lists_offset && header.lists_bytes >= tail_bytes;
    if (!sections_fit) {
        refuse(name, offsetof(Header, n_lines), "a section lies outside the file");
    }
    if (header.token_limit == 0 || header.token_limit > (std::uint64_t{1} << 31)) {
        refuse(name, offsetof(Header, token_limit), "its token limit is 0 or beyond 2^31");
    }
    const Layout layout = layout_of(header);
    const bool entries_fit =
        header.entry_bytes == sizeof(NarrowEntry::Word)
            ? NarrowEntry::value_bits(layout) > 0
            : header.entry_bytes == sizeof(WideEntry::Word) && WideEntry::identity_fits(layout);
    if (!entries_fit) {
        refuse(name, offsetof(Header, entry_bytes), "its entries are too small for its tokens");
    }
    return header;
}

// What a line says of a bigram, and the way to its list.
class StaticEntry {
public:
    StaticEntry() = default;
    explicit StaticEntry(Payload payload) : payload_(payload) {}

    [[nodiscard]] bool present() const noexcept { return payload_.kind != Kind::empty; }
    [[nodiscard]] bool single() const noexcept { return payload_.kind == Kind::single; }
    [[nodiscard]] Token top() const noexcept { return payload_.top; }
    [[nodiscard]] std::uint64_t value() const noexcept { return payload_.value; }
    // What static alone drafts: a single successor needs a total of two.
    [[nodiscard]] Token verdict() const noexcept {
        const bool passes =
            payload_.kind == Kind::several_pass || (payload_.kind == Kind::single && payload_.value >= 2);
        return passes ? payload_.top : null_token;
    }

private:
    Payload payload_;
};

// A list in place: counts by token without a search that depends on its length.
class SuccessorList {
public:
    SuccessorList(const Layout& layout, const ListHead& head, const std::byte* pairs)
        : layout_(&layout), head_(head), heavy_(pairs), light_(pairs + head.n_heavy * sizeof(HeavyPair)) {}

    [[nodiscard]] std::uint32_t top_count() const noexcept { return head_.top_count; }

    // 0 if the token never followed.
    [[nodiscard]] std::uint32_t count_of(Token token) const noexcept {
        if (static_cast<std::uint64_t>(token) >> layout_->token_bits != 0) {
            return 0;
        }
        const std::uint64_t wanted = layout_->permuted_token(token);
        if (head_.n_heavy != 0) {
            const std::uint64_t heavy = find(head_.n_heavy, wanted, [&](std::uint32_t i) {
                return std::uint64_t{heavy_pair(i).permuted_token};
            });
            if (heavy < head_.n_heavy &&
                heavy_pair(static_cast<std::uint32_t>(heavy)).permuted_token == wanted) {
                return heavy_pair(static_cast<std::uint32_t>(heavy)).count;
            }
        }
        const std::uint64_t at = find(head_.n_light, wanted,
                                      [&](std::uint32_t i) { return light_pair(i) >> layout_->count_bits; });
        if (at >= head_.n_light) {
            return 0;
        }
        const std::uint64_t pair = light_pair(static_cast<std::uint32_t>(at));
        return pair >> layout_->count_bits == wanted
                   ? static_cast<std::uint32_t>(pair & low_bits(layout_->count_bits))
                   : 0;
    }

    // visit(permuted token, count) for every successor.
    template <class Visit>
    void for_each_permuted(Visit&& visit) const {
        for (std::uint32_t i = 0; i < head_.n_heavy; ++i) {
            visit(std::uint64_t{heavy_pair(i).permuted_token}, std::uint64_t{heavy_pair(i).count});
        }
        for (std::uint32_t i = 0; i < head_.n_light; ++i) {
            visit(light_pair(i) >> layout_->count_bits, light_pair(i) & low_bits(layout_->count_bits));
        }
    }

private:
    [[nodiscard]] HeavyPair heavy_pair(std::uint32_t i) const noexcept {
        return load_unaligned<HeavyPair>(heavy_ + std::size_t{i} * sizeof(HeavyPair));
    }
    [[nodiscard]] std::uint64_t light_pair(std::uint32_t i) const noexcept {
        const auto word = load_unaligned<std::uint64_t>(light_ + std::size_t{i} * layout_->pair_bytes);
        return word & low_bits(8 * layout_->pair_bytes);
    }

    // Where `wanted` lies, or would lie, among `n` ascending values spread evenly over the permuted tokens:
    // the value itself says where to look, and a few steps correct the guess.
    template <class ValueAt>
    [[nodiscard]] std::uint64_t find(std::uint32_t n, std::uint64_t wanted,
                                     ValueAt&& value_at) const noexcept {
        if (n == 0) {
            return 0;
        }
        constexpr std::int64_t walk = 8;
        const std::int64_t last = std::int64_t{n} - 1;
        auto at = static_cast<std::int64_t>(wanted * n >> layout_->token_bits);
        for (int corrections = 0; corrections < 3; ++corrections) {
            const auto distance = static_cast<std::int64_t>(wanted) -
                                  static_cast<std::int64_t>(value_at(static_cast<std::uint32_t>(at)));
            const std::int64_t step = distance * n >> layout_->token_bits;
            if (step >= -walk && step <= walk) {
                break;
            }
            at = std::clamp(at + step, std::int64_t{0}, last);
        }
        while (at < last && value_at(static_cast<std::uint32_t>(at)) < wanted) {
            ++at;
        }
        while (at > 0 && value_at(static_cast<std::uint32_t>(at)) > wanted) {
            --at;
        }
        return static_cast<std::uint64_t>(at);
    }

    const Layout* layout_;
    ListHead head_;
    const std::byte* heavy_;
    const std::byte* light_;
};

// Looks bigrams up in the mapped lines. Narrow or wide entries, the same code.
template <class Entry>
[[nodiscard]] inline Payload find_in_lines(const std::byte* lines, const Layout& layout,
                                           std::uint64_t permuted_key) noexcept;

template <>
[[nodiscard]] inline Payload find_in_lines<NarrowEntry>(const std::byte* lines, const Layout& layout,
                                                        std::uint64_t permuted_key) noexcept {
    const std::byte* line = lines + layout.line_of(permuted_key) * line_bytes;
    const std::uint64_t mask = NarrowEntry::identity_mask(layout);
    for (unsigned displacement = 0; displacement < (1U << displacement_bits); ++displacement) {
        std::uint64_t words[NarrowEntry::per_line];
        std::memcpy(words, line, line_bytes);
        const std::uint64_t wanted = NarrowEntry::identity(layout, permuted_key, displacement);
        std::uint64_t found = 0;
        for (const std::uint64_t word : words) {  // no branch: at most one slot matches
            found |= ((word ^ wanted) & mask) == 0 ? word : 0;
        }
        if ((found & low_bits(kind_bits)) != 0) {
            return NarrowEntry::decode(layout, found);
        }
        if ((words[NarrowEntry::per_line - 1] & low_bits(kind_bits)) == 0) {
            break;  // the line has room, so nothing spilled out of it
        }
        line += line_bytes;
    }
    return {};
}

template <>
[[nodiscard]] inline Payload find_in_lines<WideEntry>(const std::byte* lines, const Layout& layout,
                                                      std::uint64_t permuted_key) noexcept {
    const std::byte* line = lines + layout.line_of(permuted_key) * line_bytes;
    for (unsigned displacement = 0; displacement < (1U << displacement_bits); ++displacement) {
        WideEntry::Word words[WideEntry::per_line];
        std::memcpy(words, line, line_bytes);
        const WideEntry::Word wanted = WideEntry::identity(layout, permuted_key, displacement);
        for (const WideEntry::Word& word : words) {
            if ((word.front & low_bits(kind_bits)) != 0 &&
                word.front >> kind_bits == wanted.front >> kind_bits) {
                return WideEntry::decode(layout, word);
            }
        }
        if ((words[WideEntry::per_line - 1].front & low_bits(kind_bits)) == 0) {
            break;
        }
        line += line_bytes;
    }
    return {};
}

// A summary file in memory or mapped. Default-constructed it is empty.
class StaticFile {
public:
    StaticFile() = default;

    [[nodiscard]] static StaticFile map(const std::string& path) {
        StaticFile file;
        file.mapped_ = MappedFile(path);
        file.open(file.mapped_.bytes(), path);
        return file;
    }
    // Reads the file into huge pages instead of mapping it.
    [[nodiscard]] static StaticFile read(const std::string& path, BufferHook hook) {
        StaticFile file;
        file.buffer_ = read_whole_file(path, hook);
        file.open(file.buffer_.bytes(), path);
        return file;
    }
    [[nodiscard]] static StaticFile from_bytes(std::span<const std::byte> bytes, const std::string& name) {
        StaticFile file;
        file.buffer_ = AlignedBuffer::copy_of(bytes);
        file.open(file.buffer_.bytes(), name);
        return file;
    }

    // Pages of a mapped file that are touched later would be paid for by the drafts that touch them first.
    void prefault() const noexcept { mapped_.prefault(); }

    [[nodiscard]] bool empty() const noexcept { return lines_ == nullptr; }
    [[nodiscard]] const Header& header() const noexcept { return header_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

    // Asks for the bigram's line before it is needed.
    void prefetch(Bigram bigram) const noexcept {
        if (!empty() && in_range(bigram)) {
            __builtin_prefetch(lines_ + layout_.line_of(layout_.permuted(bigram)) * line_bytes);
        }
    }

    [[nodiscard]] StaticEntry find(Bigram bigram) const {
        if (empty() || !in_range(bigram)) {
            return {};
        }
        const std::uint64_t key = layout_.permuted(bigram);
        const Payload payload = narrow_ ? find_in_lines<NarrowEntry>(lines_, layout_, key)
                                        : find_in_lines<WideEntry>(lines_, layout_, key);
        if (payload.kind != Kind::empty && static_cast<std::uint64_t>(payload.top) >= header_.token_limit)
            [[unlikely]] {
            refuse(name_, header_.lines_offset + layout_.line_of(key) * line_bytes,
                   "an entry names token " + std::to_string(payload.top) + ", beyond the file's own limit");
        }
        return StaticEntry(payload);
    }

    // The list of an entry with several successors.
    [[nodiscard]] SuccessorList list(const StaticEntry& entry) const {
        const std::uint64_t offset = entry.value() * list_unit_bytes;
        const std::uint64_t readable = header_.lists_bytes - tail_bytes;
        constexpr std::uint64_t long_head_bytes = 12;
        if (offset > readable || readable - offset < sizeof(std::uint32_t)) [[unlikely]] {
            refuse_list(offset);
        }
        const std::byte* at = lists_ + offset;
        const auto first = load_unaligned<std::uint32_t>(at);
        if ((first & 1) == 0) {
            return list_of({first >> 1 & ListHead::short_light_limit, 0, first >> 16}, offset, sizeof first);
        }
        if (readable - offset < long_head_bytes) [[unlikely]] {
            refuse_list(offset);
        }
        return list_of(
            {first >> 1, load_unaligned<std::uint32_t>(at + 4), load_unaligned<std::uint32_t>(at + 8)},
            offset, long_head_bytes);
    }

    // Checks every byte behind the header.
    void verify() const {
        if (!empty() && xxh64(bytes_.subspan(sizeof(Header))) != header_.content_xxh64) {
            refuse(name_, sizeof(Header), "the content's checksum does not match");
        }
    }

private:
    [[nodiscard]] bool in_range(Bigram bigram) const noexcept {
        return static_cast<std::uint64_t>(bigram.first) < header_.token_limit &&
               static_cast<std::uint64_t>(bigram.second) < header_.token_limit;
    }

    // A list that begins at `offset`, of the lists' bytes that are read.
    [[nodiscard]] SuccessorList list_of(const ListHead& head, std::uint64_t offset,
                                        std::uint64_t head_bytes) const {
        const std::uint64_t pairs_bytes = std::uint64_t{head.n_heavy} * sizeof(HeavyPair) +
                                          std::uint64_t{head.n_light} * layout_.pair_bytes;
        if (header_.lists_bytes - tail_bytes - offset - head_bytes < pairs_bytes) [[unlikely]] {
            refuse_list(offset);
        }
        return {layout_, head, lists_ + offset + head_bytes};
    }

    void open(std::span<const std::byte> bytes, const std::string& name) {
        name_ = name;
        bytes_ = bytes;
        if (bytes.empty()) {
            return;
        }
        header_ = read_header(bytes, name);
        layout_ = layout_of(header_);
        narrow_ = header_.entry_bytes == sizeof(NarrowEntry::Word);
        lines_ = bytes.data() + header_.lines_offset;
        lists_ = bytes.data() + header_.lists_offset;
    }

    [[noreturn]] void refuse_list(std::uint64_t offset) const {
        refuse(name_, header_.lists_offset + offset, "a list of successors lies outside the file");
    }

    MappedFile mapped_;
    AlignedBuffer buffer_;
    std::span<const std::byte> bytes_;
    std::string name_;
    Header header_{};
    Layout layout_;
    bool narrow_ = true;
    const std::byte* lines_ = nullptr;
    const std::byte* lists_ = nullptr;
};

}  // namespace ladder::summary
