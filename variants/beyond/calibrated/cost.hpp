// How long a draft pays, where verifying a token has a price.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "beyond/calibrated/prediction/logistic.hpp"

namespace ladder::calibrated {

// C(1), C(2), ...: what a pass over so many tokens costs, in any unit. A pass that drafts k tokens costs C(1
// + k) and is expected to give one token and the sum of the running products; it pays by how much that is
// more than what its time would give at the running rate. With C flat everything pays, with C steep nothing
// does.
class Cost {
public:
    static constexpr std::uint32_t most_cost = 1U << 24;

    void set(std::span<const std::uint32_t> costs) {
        LADDER_CHECK(std::all_of(costs.begin(), costs.end(), [](auto c) { return c > 0 && c <= most_cost; }));
        costs_.assign(costs.begin(), costs.end());
        tokens_ = costs_.empty() ? 0 : 1;
        spent_ = costs_.empty() ? 0 : costs_[0];
    }
    [[nodiscard]] bool known() const noexcept { return !costs_.empty(); }
    // The longest draft that has a cost.
    [[nodiscard]] int most_drafted() const noexcept { return static_cast<int>(costs_.size()) - 1; }

    // What `drafted` tokens cost more than none, in tokens of 2^16 at the running rate.
    [[nodiscard]] std::int64_t price(int drafted) const noexcept {
        const std::int64_t more = std::int64_t{costs_[static_cast<std::size_t>(drafted)]} - costs_[0];
        return more * (tokens_ << probability_bits) / spent_;
    }
    // A pass is over: it drafted so many tokens and gave so many.
    void passed(int drafted, std::int64_t tokens) noexcept {
        constexpr std::int64_t memory = 256;  // passes over one token
        tokens_ += tokens;
        spent_ += costs_[static_cast<std::size_t>(drafted)];
        if (spent_ > memory * costs_[0]) {
            tokens_ = (tokens_ + 1) / 2;
            spent_ = (spent_ + 1) / 2;
        }
    }

private:
    std::vector<std::uint32_t> costs_;
    std::int64_t tokens_ = 0;
    std::int64_t spent_ = 0;
};

// The best length of a draft that is made step by step.
class BestLength {
public:
    // One more step with this running product, of 2^16. False if none of the `left` steps after it can pay.
    bool add(std::int64_t product, std::int64_t price, int left) noexcept {
        ++steps_;
        sum_ += product;
        const std::int64_t gain = sum_ - price;
        const std::int64_t to_beat = best_gain_;
        if (gain > best_gain_) {
            best_gain_ = gain;
            best_ = steps_;
        }
        return gain > to_beat || gain + product * left > to_beat;
    }
    [[nodiscard]] int best() const noexcept { return best_; }

private:
    int steps_ = 0;
    int best_ = 0;
    std::int64_t sum_ = 0;
    std::int64_t best_gain_ = 0;
};

}  // namespace ladder::calibrated
