// What one scope has learned: contexts and their successors, and the text itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "beyond/calibrated/indexed_text.hpp"
#include "beyond/calibrated/node_table.hpp"
#include "beyond/calibrated/suffix_hashes.hpp"

namespace ladder::calibrated {

// The nodes of a place's contexts, from the shortest up to the first that is missing.
struct FoundNodes {
    std::array<NodeRef, n_orders> nodes;
    std::size_t size = 0;
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

    [[nodiscard]] FoundNodes find(const ContextKeys& keys, std::size_t known) noexcept {
        FoundNodes found;
        while (found.size < known) {
            const NodeRef node = nodes.find(keys[found.size]);
            if (!node) {
                break;
            }
            found.nodes[found.size++] = node;
        }
        return found;
    }

    // `token` followed: counts it in the contexts found before and adds the next ones. Nodes may have moved since.
    void count(const ContextKeys& keys, std::size_t known, FoundNodes& found, Token token) {
        for (std::size_t i = 0; i < found.size; ++i) {
            NodeRef node = found.nodes[i];
            if (!node.holds(keys[i])) [[unlikely]] {
                node = nodes.find(keys[i]);
            }
            if (node) {
                NodeTable::count(node, token);
            }
        }
        const std::size_t end = std::min(known, found.size + new_contexts_);
        for (std::size_t i = found.size; i < end; ++i) {
            if (const NodeRef node = nodes.find(keys[i])) {
                NodeTable::count(node, token);
            } else {
                nodes.insert(keys[i], token);
            }
        }
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return nodes.bytes() + text.bytes(); }

private:
    std::size_t new_contexts_;
};

}  // namespace ladder::calibrated
