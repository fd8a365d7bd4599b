// XXH64: the key hash of the const map, and the digest of the frozen file's sections.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ladder {

// Every format here is little-endian and read in place.
static_assert(std::endian::native == std::endian::little,
              "the file formats are read in place: little-endian hosts only");

template <class Word>
[[nodiscard]] inline Word load_unaligned(const std::byte* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

namespace xxh {

inline constexpr std::uint64_t prime1 = 11400714785074694791U;
inline constexpr std::uint64_t prime2 = 14029467366897019727U;
inline constexpr std::uint64_t prime3 = 1609587929392839161U;
inline constexpr std::uint64_t prime4 = 9650029242287828579U;
inline constexpr std::uint64_t prime5 = 2870177450012600261U;
inline constexpr std::size_t stripe_bytes = 32;

[[nodiscard]] constexpr std::uint64_t round(std::uint64_t lane, std::uint64_t word) noexcept {
    return std::rotl(lane + word * prime2, 31) * prime1;
}

[[nodiscard]] constexpr std::uint64_t avalanche(std::uint64_t hash) noexcept {
    hash = (hash ^ (hash >> 33)) * prime2;
    hash = (hash ^ (hash >> 29)) * prime3;
    return hash ^ (hash >> 32);
}

[[nodiscard]] constexpr std::uint64_t add_word(std::uint64_t hash, std::uint64_t word) noexcept {
    return std::rotl(hash ^ round(0, word), 27) * prime1 + prime4;
}

}  // namespace xxh

// XXH64 with seed 0 of eight bytes given as one little-endian word. A bijection: distinct keys never collide.
[[nodiscard]] constexpr std::uint64_t xxh64_word(std::uint64_t word) noexcept {
    return xxh::avalanche(xxh::add_word(xxh::prime5 + sizeof word, word));
}

// XXH64 over bytes that arrive in pieces.
class Xxh64 {
public:
    explicit Xxh64(std::uint64_t seed = 0) noexcept
        : seed_(seed),
          lanes_{seed + xxh::prime1 + xxh::prime2, seed + xxh::prime2, seed, seed - xxh::prime1} {}

    void update(std::span<const std::byte> bytes) noexcept {
        total_bytes_ += bytes.size();
        if (pending_bytes_ > 0) {
            const std::size_t taken = std::min(bytes.size(), xxh::stripe_bytes - pending_bytes_);
            std::copy_n(bytes.data(), taken, pending_.data() + pending_bytes_);
            pending_bytes_ += taken;
            bytes = bytes.subspan(taken);
            if (pending_bytes_ < xxh::stripe_bytes) {
                return;
            }
            stripe(pending_.data());
            pending_bytes_ = 0;
        }
        while (bytes.size() >= xxh::stripe_bytes) {
            stripe(bytes.data());
            bytes = bytes.subspan(xxh::stripe_bytes);
        }
        std::copy_n(bytes.data(), bytes.size(), pending_.data());
        pending_bytes_ = bytes.size();
    }

    [[nodiscard]] std::uint64_t digest() const noexcept {
        std::uint64_t hash = seed_ + xxh::prime5;
        if (total_bytes_ >= xxh::stripe_bytes) {
            hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
                   std::rotl(lanes_[3], 18);
            for (const std::uint64_t lane : lanes_) {
                hash = (hash ^ xxh::round(0, lane)) * xxh::prime1 + xxh::prime4;
            }
        }
        return tail(hash + total_bytes_);
    }

private:
    void stripe(const std::byte* from) noexcept {
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
            lanes_[lane] = xxh::round(lanes_[lane], load_unaligned<std::uint64_t>(from + lane * 8));
        }
    }

    [[nodiscard]] std::uint64_t tail(std::uint64_t hash) const noexcept {
        std::size_t at = 0;
        for (; at + 8 <= pending_bytes_; at += 8) {
            hash = xxh::add_word(hash, load_unaligned<std::uint64_t>(pending_.data() + at));
        }
        if (at + 4 <= pending_bytes_) {
            hash ^= load_unaligned<std::uint32_t>(pending_.data() + at) * xxh::prime1;
            hash = std::rotl(hash, 23) * xxh::prime2 + xxh::prime3;
            at += 4;
        }
        for (; at < pending_bytes_; ++at) {
            hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(pending_[at]) * xxh::prime5), 11) *
                   xxh::prime1;
        }
        return xxh::avalanche(hash);
    }

    std::uint64_t seed_;
    std::array<std::uint64_t, 4> lanes_;
    std::array<std::byte, xxh::stripe_bytes> pending_{};
    std::size_t pending_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
};

[[nodiscard]] inline std::uint64_t xxh64(std::span<const std::byte> bytes, std::uint64_t seed = 0) noexcept {
    Xxh64 hasher(seed);
    hasher.update(bytes);
    return hasher.digest();
}

}  // namespace ladder
