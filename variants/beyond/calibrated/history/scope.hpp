// What one scope has learned: contexts and their successors, and the text itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/history/indexed_text.hpp"
#include "beyond/calibrated/history/node_table.hpp"
#include "beyond/calibrated/history/suffix_hashes.hpp"

namespace ladder::calibrated {

// The nodes of a place's contexts, from the shortest up to the first that is missing. Only the longest speak
// and count: what they know, shorter ones know less well.
struct FoundNodes {
    static constexpr std::size_t speaking = 3;
    std::array<NodeNumber, n_orders> nodes;
    std::size_t size = 0;

    [[nodiscard]] std::size_t begin() const noexcept { return size > speaking ? size - speaking : 0; }
};

// How much a scope takes for its tokens.
struct ScopeShape {
    std::uint32_t capacity;    // tokens of text
    std::size_t load_16ths;    // of the nodes' places
    std::size_t new_contexts;  // added for a token at most, the shortest first
};

class Scope {
public:
    explicit Scope(const ScopeShape& shape)
        : nodes(shape.load_16ths), text(shape.capacity), new_contexts_(shape.new_contexts) {}

    NodeTable nodes;
    IndexedText text;

    [[nodiscard]] FoundNodes find(const SuffixHashes& at) const noexcept {
        FoundNodes found;
        while (found.size < at.known) {
            const NodeNumber node = nodes.find(at.keys[found.size]);
            if (node == no_node) {
                break;
            }
            found.nodes[found.size++] = node;
        }
        return found;
    }

    // A shared table is larger than the processor's caches: its misses come all at once, while the own one is
    // searched.
    void prefetch(const SuffixHashes& at) const noexcept {
        for (const ContextKey& key : at.keys) {
            nodes.prefetch(key);
        }
    }

    // `token` followed: counts it in the contexts found before and adds the next ones. Nodes may have moved
    // since.
    void count(const SuffixHashes& at, const FoundNodes& found, Token token) {
        for (std::size_t i = found.begin(); i < found.size; ++i) {
            NodeNumber node = found.nodes[i];
            if (!nodes.holds(node, at.keys[i])) [[unlikely]] {
                node = nodes.find(at.keys[i]);
            }
            if (node != no_node) [[likely]] {
                nodes.count(node, token);
            }
        }
        const std::size_t end = std::min(at.known, found.size + new_contexts_);
        for (std::size_t i = found.size; i < end; ++i) {
            if (const NodeNumber node = nodes.find(at.keys[i]); node != no_node) {
                nodes.count(node, token);
            } else {
                nodes.insert(at.keys[i], token);
            }
        }
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return nodes.bytes() + text.bytes(); }

    template <class Archive>
    void archive(Archive& archive) {
        nodes.archive(archive);
        text.archive(archive);
    }

private:
    std::size_t new_contexts_;
};

}  // namespace ladder::calibrated
