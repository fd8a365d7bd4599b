// Frozen files, damaged: find() never reads outside whatever the file says, and a file that verifies holds
// only valid successors. The input is a frozen file, or llama.cpp's file that is frozen here and then
// damaged: checksums would keep a fuzzer at the door for ever, so they can be made right again.
#include <cstring>

#include "common.hpp"
#include "formats/freeze.hpp"
#include "formats/frozen_file.hpp"

namespace {

using namespace ladder;

enum Flag : std::uint8_t { from_llama = 1, paired = 8, right_successors = 16 };  // beside fuzz::Repair's

std::vector<std::byte> file_from(fuzz::Reader& reader, std::uint8_t flags) {
    if ((flags & from_llama) == 0) {
        return fuzz::as_bytes(reader.rest());
    }
    const fuzz::Damage damage(reader);
    const MapLayout layout = (flags & paired) != 0 ? MapLayout::paired : MapLayout::split;
    std::vector<std::byte> file = freeze_bytes(fuzz::as_bytes(reader.rest()), layout);
    damage.apply(file, sizeof(frozen::Header));
    return file;
}

void make_right(std::vector<std::byte>& file, std::uint8_t flags) {
    const auto right_digest = [&](frozen::Header& header) {
        if ((flags & right_successors) != 0 && header.successors_offset <= file.size() &&
            header.n_successors <= (file.size() - header.successors_offset) / sizeof(Successor)) {
            const auto offset = static_cast<std::size_t>(header.successors_offset);
            const auto size = static_cast<std::size_t>(header.n_successors) * sizeof(Successor);
            header.successors_xxh64 = xxh64(std::span(file).subspan(offset, size));
        }
    };
    fuzz::make_right<frozen::Header>(file, flags, frozen_magic, frozen::version, right_digest);
}

template <MapLayout layout>
void use(std::span<const std::byte> file, std::span<const std::uint8_t> input) {
    const auto frozen = BasicFrozenFile<layout>::from_bytes(file);
    bool verified = true;
    try {
        frozen.verify();
    } catch (const InputError&) {
        verified = false;
    }
    std::int64_t sum = 0;
    for (std::size_t at = 0; at + sizeof(Bigram) <= input.size() && at < 2048; at += 4) {
        Bigram bigram{};
        std::memcpy(&bigram, input.data() + at, sizeof bigram);
        try {
            for (const Successor& successor : frozen.find(bigram)) {
                sum += successor.count;
                if (verified && (successor.token < 0 || successor.count <= 0)) {
                    fuzz::finding("a verified file holds an invalid successor");
                }
            }
        } catch (const InputError&) {
            // A value that points outside is found by the look-up; that is its job.
        }
    }
    static volatile std::int64_t keep;
    keep = sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Reader reader(data, size);
    const std::uint8_t flags = reader.byte();
    try {
        std::vector<std::byte> file = file_from(reader, flags);
        make_right(file, flags);
        if ((flags & paired) != 0) {
            use<MapLayout::paired>(file, reader.rest());
        } else {
            use<MapLayout::split>(file, reader.rest());
        }
    } catch (const InputError&) {
        // Refused by name: what a damaged file is meant to meet.
    }
    return 0;
}
