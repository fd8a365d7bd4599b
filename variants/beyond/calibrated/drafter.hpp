// The calibrated drafter as the replays know drafters. Requests come with their sessions; a text comes in
// chunks, each of which is a session, and the history is what chunks have said.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "beyond/calibrated/engine.hpp"
#include "drafting/drafter.hpp"
#include "formats/static_source.hpp"

namespace ladder {

// A draft ends where the chance that all of it is right falls below `tau` thousandths.
template <int tau>
class Calibrated {
public:
    static constexpr std::string_view rule = "calibrated";
    static constexpr Ties ties = Ties::token;
    static constexpr StaticFormat static_format = StaticFormat::llama;

    Calibrated() { start_over(); }

    // It learns from what it sees alone; a static cache is none of its sources.
    void load(const StaticSource& source) { source.require(static_format); }

    void draft(std::span<const Token> sequence, int n_draft, DraftBuffer& out) {
        follow(sequence);
        engine_->draft(n_draft, out);
    }
    void update(std::span<const Token> sequence) { follow(sequence); }

    // Sessions are the caller's, below `first_chunk`.
    void begin(calibrated::SessionId session) { engine_->begin(session); }
    void learn(std::span<const Token> prompt) { engine_->learn(prompt); }
    void draft(int n_draft, DraftBuffer& out) { engine_->draft(n_draft, out); }
    void accept(Token token) { engine_->accept(token); }
    void close(calibrated::SessionId session) { engine_->close(session); }

    void end_chunk() { discard_context(); }
    void discard_context() {
        engine_->close(chunk_);
        engine_->begin(++chunk_);
        length_ = 0;
    }
    // The calibration stays: it holds no text.
    void discard_dynamic() {
        const calibrated::Calibration calibration = engine_->calibration();
        start_over();
        engine_->calibration() = calibration;
    }

    // As if new: no text, and nothing that was learned from one.
    void start_over() {
        calibrated::Settings settings;
        settings.tau = tau;
        engine_ = std::make_unique<calibrated::Engine>(settings);
        engine_->begin(chunk_);
        length_ = 0;
    }

    [[nodiscard]] std::size_t static_bytes() const { return 0; }
    [[nodiscard]] std::size_t memory_bytes() const { return engine_->bytes(); }

private:
    static constexpr calibrated::SessionId first_chunk = 1ULL << 63;

    // Within a chunk the caller's sequence only grows. Its first token is given, not predicted.
    void follow(std::span<const Token> sequence) {
        if (length_ == 0 && !sequence.empty()) {
            engine_->learn(sequence.first(1));
            length_ = 1;
        }
        for (; length_ < sequence.size(); ++length_) {
            engine_->accept(sequence[length_]);
        }
    }

    std::unique_ptr<calibrated::Engine> engine_;
    calibrated::SessionId chunk_ = first_chunk;
    std::size_t length_ = 0;  // of the chunk's sequence, as far as it is known
};

}  // namespace ladder
