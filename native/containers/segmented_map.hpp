// A hash map whose values lie densely, in insertion order, in segments that never move.
//
// The design of ankerl::unordered_dense::segmented_map, for machines that do not have it: an array of 8-byte
// buckets (distance and fingerprint, index of the value) probed robin-hood style, beside the values
// themselves. Only what drafting needs is here: nothing is ever erased but everything at once. Names and
// meanings are those of the original, so that one alias (dense_segmented_map.hpp) picks either.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace ladder {

// A vector in segments of at most `SegmentBytes` (a power of two of elements each, at least one): growing it
// moves nothing and needs no second copy, at the price of one more load per access.
template <class T, std::size_t SegmentBytes = 4096>
class SegmentedVector {
    template <bool Const>
    class Cursor;

public:
    using value_type = T;
    using iterator = Cursor<false>;
    using const_iterator = Cursor<true>;

    static constexpr std::size_t segment_size =
        SegmentBytes < sizeof(T) ? 1 : std::bit_floor(SegmentBytes / sizeof(T));

    SegmentedVector() = default;
    SegmentedVector(SegmentedVector&& other) noexcept
        : segments_(std::exchange(other.segments_, {})), size_(std::exchange(other.size_, 0)) {}
    SegmentedVector& operator=(SegmentedVector&& other) noexcept {
        std::swap(segments_, other.segments_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~SegmentedVector() {
        clear();
        for (T* segment : segments_) {
            std::allocator<T>().deallocate(segment, segment_size);
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return *address(i); }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return *address(i); }

    [[nodiscard]] iterator begin() noexcept { return {this, first(), 0}; }
    [[nodiscard]] const_iterator begin() const noexcept { return {this, first(), 0}; }
    [[nodiscard]] iterator end() noexcept { return {this, nullptr, size_}; }
    [[nodiscard]] const_iterator end() const noexcept { return {this, nullptr, size_}; }
    // Where the element at `index` is already known: spares the iterator the way through the segments.
    [[nodiscard]] iterator at(std::size_t index, T& element) noexcept { return {this, &element, index}; }
    [[nodiscard]] const_iterator at(std::size_t index, const T& element) const noexcept {
        return {this, &element, index};
    }

    template <class... Args>
    T& emplace_back(Args&&... args) {
        if (size_ == segments_.size() * segment_size) [[unlikely]] {
            add_segment();
        }
        T* element = std::construct_at(address(size_), std::forward<Args>(args)...);
        ++size_;
        return *element;
    }

    // Keeps the segments: what fills once will fill again.
    void clear() noexcept {
        if constexpr (!std::is_trivially_destructible_v<T>) {
            for (std::size_t i = 0; i < size_; ++i) {
                std::destroy_at(address(i));
            }
        }
        size_ = 0;
    }

    void reserve(std::size_t count) { segments_.reserve((count + segment_size - 1) / segment_size); }

    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        return segments_.size() * segment_size * sizeof(T) + segments_.capacity() * sizeof(T*);
    }

private:
    static constexpr unsigned segment_shift = std::countr_zero(segment_size);

    [[nodiscard]] T* address(std::size_t i) const noexcept {
        return segments_[i >> segment_shift] + (i & (segment_size - 1));
    }
    [[nodiscard]] T* first() const noexcept { return size_ == 0 ? nullptr : segments_[0]; }

    [[gnu::noinline]] void add_segment() {
        segments_.push_back(nullptr);  // first, so that a failure here leaks no segment
        try {
            segments_.back() = std::allocator<T>().allocate(segment_size);
        } catch (...) {
            segments_.pop_back();
            throw;
        }
    }

    std::vector<T*> segments_;
    std::size_t size_ = 0;
};

// Forward iterator. It carries the element's address, so only a step into another segment reads the table of
// segments, and its index, which alone decides equality.
template <class T, std::size_t SegmentBytes>
template <bool Const>
class SegmentedVector<T, SegmentBytes>::Cursor {
public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = std::conditional_t<Const, const T*, T*>;
    using reference = std::conditional_t<Const, const T&, T&>;

    Cursor() = default;
    Cursor(const SegmentedVector* values, pointer element, std::size_t index) noexcept
        : values_(values), element_(element), index_(index) {}
    operator Cursor<true>() const noexcept { return {values_, element_, index_}; }

    [[nodiscard]] reference operator*() const noexcept { return *element_; }
    [[nodiscard]] pointer operator->() const noexcept { return element_; }
    Cursor& operator++() noexcept {
        ++index_;
        if (index_ % segment_size != 0) [[likely]] {
            ++element_;
        } else {
            element_ = index_ < values_->size_ ? values_->address(index_) : nullptr;
        }
        return *this;
    }
    Cursor operator++(int) noexcept {
        Cursor before = *this;
        ++*this;
        return before;
    }
    [[nodiscard]] friend bool operator==(const Cursor& a, const Cursor& b) noexcept {
        return a.index_ == b.index_;
    }

private:
    const SegmentedVector* values_ = nullptr;
    pointer element_ = nullptr;
    std::size_t index_ = 0;
};

// One growing array instead of segments, behind the same interface: growing moves every element, and for that
// moment old and new array lie in memory together.
template <class T>
class ContiguousVector {
public:
    using value_type = T;
    using iterator = typename std::vector<T>::iterator;
    using const_iterator = typename std::vector<T>::const_iterator;

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return values_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return values_[i]; }
    [[nodiscard]] iterator begin() noexcept { return values_.begin(); }
    [[nodiscard]] const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] iterator end() noexcept { return values_.end(); }
    [[nodiscard]] const_iterator end() const noexcept { return values_.end(); }
    [[nodiscard]] iterator at(std::size_t index, T&) noexcept { return begin() + to_difference(index); }
    [[nodiscard]] const_iterator at(std::size_t index, const T&) const noexcept {
        return begin() + to_difference(index);
    }
    template <class... Args>
    T& emplace_back(Args&&... args) {
        return values_.emplace_back(std::forward<Args>(args)...);
    }
    void clear() noexcept { values_.clear(); }
    void reserve(std::size_t count) { values_.reserve(count); }
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return values_.capacity() * sizeof(T); }

private:
    static std::ptrdiff_t to_difference(std::size_t i) noexcept { return static_cast<std::ptrdiff_t>(i); }

    std::vector<T> values_;
};

// The index: robin-hood buckets that know values only by their number. `home` of a key is the top bits of its
// hash; a bucket's `tag` holds the distance from home plus one (0: empty) above the hash's low byte, so that
// one comparison of tags tells "may be it", "go on" and "not here".
struct DenseBucket {
    static constexpr std::uint32_t one_step = 1U << 8;
    static constexpr std::uint32_t fingerprint = one_step - 1;

    std::uint32_t tag;
    std::uint32_t value;
};
static_assert(sizeof(DenseBucket) == 8);

// The map over any value container of the interface above. Values keep their insertion order. Not copyable.
// A pointer to a value stays good until clear() if the container's elements do not move.
template <class Key, class T, class Hash, class KeyEqual, class Values>
class BasicDenseMap {
public:
    using key_type = Key;
    using mapped_type = T;
    using value_type = std::pair<Key, T>;
    using iterator = typename Values::iterator;
    using const_iterator = typename Values::const_iterator;
    static_assert(std::same_as<typename Values::value_type, value_type>);

    BasicDenseMap() = default;
    BasicDenseMap(BasicDenseMap&& other) noexcept { swap(other); }
    BasicDenseMap& operator=(BasicDenseMap&& other) noexcept {
        BasicDenseMap moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~BasicDenseMap() = default;

    [[nodiscard]] iterator begin() noexcept { return values_.begin(); }
    [[nodiscard]] const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] iterator end() noexcept { return values_.end(); }
    [[nodiscard]] const_iterator end() const noexcept { return values_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.size() == 0; }
    [[nodiscard]] std::size_t bucket_count() const noexcept { return owned_ ? mask_ + 1 : 0; }

    [[nodiscard]] iterator find(const Key& key) { return find_in(values_, key); }
    [[nodiscard]] const_iterator find(const Key& key) const { return find_in(values_, key); }
    [[nodiscard]] bool contains(const Key& key) const { return find(key) != end(); }
    T& operator[](const Key& key) { return try_emplace(key).first->second; }

    // Inserts {key, T(args...)} unless the key is there. If a constructor or an allocation throws, nothing
    // changed, but for the case rebuild() names.
    template <class... Args>
    std::pair<iterator, bool> try_emplace(const Key& key, Args&&... args) {
        const std::uint64_t hash = mixed_hash(key);
        Probe probe(*this, hash);
        for (;; probe.step(*this)) {
            const DenseBucket bucket = buckets_[probe.index];
            if (bucket.tag == probe.tag) {
                value_type& value = values_[bucket.value];
                if (KeyEqual{}(value.first, key)) {
                    return {values_.at(bucket.value, value), false};
                }
            } else if (bucket.tag < probe.tag) {
                break;
            }
        }
        if (values_.size() >= capacity_) [[unlikely]] {
            rebuild(shift_ - 1);
            probe = place_for(hash);
        }
        const std::size_t index = values_.size();
        value_type& value = values_.emplace_back(std::piecewise_construct, std::forward_as_tuple(key),
                                                 std::forward_as_tuple(std::forward<Args>(args)...));
        insert_bucket(probe, static_cast<std::uint32_t>(index));
        return {values_.at(index, value), true};
    }

    // Keeps all memory but what the values themselves own: a map that is filled and cleared over and over
    // (the context cache, every chunk) reaches its size once.
    void clear() noexcept {
        values_.clear();
        if (owned_) {
            std::fill_n(owned_.get(), bucket_count(), DenseBucket{});
        }
    }

    // Room for `count` values without another rebuild. Throws std::length_error beyond 2^32 buckets.
    void reserve(std::size_t count) {
        values_.reserve(count);
        if (count > capacity_) {
            unsigned shift = shift_ - 1;
            while (capacity_for(shift) < count) {
                --shift;
            }
            rebuild(shift);
        }
    }

    // Bytes allocated by the map itself; what mapped values own is not in it.
    [[nodiscard]] std::size_t memory_bytes() const noexcept {
        return values_.memory_bytes() + bucket_count() * sizeof(DenseBucket);
    }

    void swap(BasicDenseMap& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(owned_, other.owned_);
        std::swap(buckets_, other.buckets_);
        std::swap(mask_, other.mask_);
        std::swap(capacity_, other.capacity_);
        std::swap(shift_, other.shift_);
    }

private:
    static constexpr unsigned no_shift = 63;     // two buckets, empty for good: find needs no special case
    static constexpr unsigned first_shift = 58;  // 64 buckets, the least that is allocated
    static constexpr unsigned last_shift = 32;   // values are numbered in 32 bits
    static constexpr DenseBucket no_buckets[2] = {};

    // Where a key would lie, and the tag it would have there.
    struct Probe {
        Probe(const BasicDenseMap& map, std::uint64_t hash) noexcept
            : index(hash >> map.shift_),
              tag(DenseBucket::one_step | (static_cast<std::uint32_t>(hash) & DenseBucket::fingerprint)) {}
        void step(const BasicDenseMap& map) noexcept {
            index = (index + 1) & map.mask_;
            tag += DenseBucket::one_step;
        }
        std::size_t index;
        std::uint32_t tag;
    };

    static std::uint64_t mixed_hash(const Key& key) {
        if constexpr (requires { typename Hash::is_avalanching; }) {
            return Hash{}(key);
        } else {
            return multiply_fold(Hash{}(key), 0x9e3779b97f4a7c15ULL);
        }
    }

    static std::size_t capacity_for(unsigned shift) {
        if (shift < last_shift) {
            throw std::length_error("ladder::BasicDenseMap: more than 2^32 buckets");
        }
        return (std::size_t{1} << (64 - shift)) * 4 / 5;
    }

    template <class Self>
    auto find_in(Self& values, const Key& key) const {
        for (Probe probe(*this, mixed_hash(key));; probe.step(*this)) {
            const DenseBucket bucket = buckets_[probe.index];
            if (bucket.tag == probe.tag) {
                auto& value = values[bucket.value];
                if (KeyEqual{}(value.first, key)) [[likely]] {
                    return values.at(bucket.value, value);
                }
            } else if (bucket.tag < probe.tag) {
                return values.end();
            }
        }
    }

    // For a key known to be new: behind all that are at least as far from home.
    Probe place_for(std::uint64_t hash) const noexcept {
        Probe probe(*this, hash);
        while (probe.tag <= buckets_[probe.index].tag) {
            probe.step(*this);
        }
        return probe;
    }

    // Takes the place from whoever is nearer to its home; that one goes on, and so forth to the first empty
    // bucket.
    void insert_bucket(Probe probe, std::uint32_t value) noexcept {
        DenseBucket bucket{probe.tag, value};
        while (owned_[probe.index].tag != 0) {
            std::swap(bucket, owned_[probe.index]);
            bucket.tag += DenseBucket::one_step;
            probe.index = (probe.index + 1) & mask_;
        }
        owned_[probe.index] = bucket;
    }

    // The old buckets go before the new ones come: the values tell all, and the two never lie in memory
    // together.
    [[gnu::noinline]] void rebuild(unsigned shift) {
        shift = std::min(shift, first_shift);
        const std::size_t capacity = capacity_for(shift);
        const unsigned shift_before = shift_;
        const std::size_t capacity_before = capacity_;
        if (allocate(shift, capacity)) {
            fill();
            return;
        }
        if (capacity_before != 0 && allocate(shift_before, capacity_before)) {
            fill();
        } else {
            values_.clear();  // not even the old index fits any more: empty, but whole
        }
        throw std::bad_alloc();
    }

    bool allocate(unsigned shift, std::size_t capacity) noexcept {
        owned_.reset();
        const std::size_t count = std::size_t{1} << (64 - shift);
        owned_.reset(new (std::nothrow) DenseBucket[count]());
        const bool done = owned_ != nullptr;
        buckets_ = done ? owned_.get() : no_buckets;
        mask_ = done ? count - 1 : 1;
        shift_ = done ? shift : no_shift;
        capacity_ = done ? capacity : 0;
        return done;
    }

    // Hashes run ahead of insertions, so that the buckets' cache misses overlap instead of queueing up.
    void fill() {
        constexpr std::size_t ahead = 16;
        std::array<std::uint64_t, ahead> hashes{};
        const std::size_t count = values_.size();
        for (std::size_t i = 0; i < count + ahead; ++i) {
            if (i >= ahead) {
                insert_bucket(place_for(hashes[i % ahead]), static_cast<std::uint32_t>(i - ahead));
            }
            if (i < count) {
                hashes[i % ahead] = mixed_hash(values_[i].first);
                __builtin_prefetch(&buckets_[hashes[i % ahead] >> shift_], 1);
            }
        }
    }

    Values values_;
    std::unique_ptr<DenseBucket[]> owned_;
    const DenseBucket* buckets_ = no_buckets;
    std::size_t mask_ = 1;
    std::size_t capacity_ = 0;  // most values before the next rebuild: 0.8 of the buckets
    unsigned shift_ = no_shift;
};

// Values in segments: growing moves none of them and needs no second copy.
template <class Key, class T, class Hash, class KeyEqual = std::equal_to<Key>,
          std::size_t SegmentBytes = 4096>
using SegmentedMap = BasicDenseMap<Key, T, Hash, KeyEqual, SegmentedVector<std::pair<Key, T>, SegmentBytes>>;

// Values in one growing array.
template <class Key, class T, class Hash, class KeyEqual = std::equal_to<Key>>
using DenseMap = BasicDenseMap<Key, T, Hash, KeyEqual, ContiguousVector<std::pair<Key, T>>>;

}  // namespace ladder
