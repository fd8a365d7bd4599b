// Summary files, damaged: look-ups never read outside whatever the file says. The input is a summary file, or
// llama.cpp's file that is converted here and then damaged; its header can be made right again.
#include <cstring>

#include "common.hpp"
#include "summary_index/static_builder.hpp"
#include "summary_index/static_file.hpp"

namespace {

using namespace ladder;

enum Flag : std::uint8_t { from_llama = 1 };  // beside fuzz::Repair's

std::vector<std::byte> file_from(fuzz::Reader& reader, std::uint8_t flags) {
    if ((flags & from_llama) == 0) {
        return fuzz::as_bytes(reader.rest());
    }
    const fuzz::Damage damage(reader);
    const std::vector<std::byte> llama = fuzz::as_bytes(reader.rest());
    Source source = Source::from_bytes(llama);
    MemorySink sink;
    summary::build_static_file(source, sink);
    std::vector<std::byte> file = sink.take();
    damage.apply(file, sizeof(summary::Header));
    return file;
}

void use(std::span<const std::byte> file, std::span<const std::uint8_t> input) {
    const auto cache = summary::StaticFile::from_bytes(file, "<bytes>");
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at + sizeof(Bigram) <= input.size() && at < 2048; at += 4) {
        Bigram bigram{};
        std::memcpy(&bigram, input.data() + at, sizeof bigram);
        if (bigram.first < 0 || bigram.second < 0) {
            continue;  // drafters hold real tokens only
        }
        try {
            cache.prefetch(bigram);
            const summary::StaticEntry entry = cache.find(bigram);
            if (entry.present() && !entry.single()) {
                const summary::SuccessorList list = cache.list(entry);
                sum += list.count_of(bigram.first) + list.count_of(entry.top());
                list.for_each_permuted(
                    [&](std::uint64_t token, std::uint64_t count) { sum += token ^ count; });
            }
        } catch (const InputError&) {
            // A list that points outside is found by the look-up; that is its job.
        }
    }
    static volatile std::uint64_t keep;
    keep = sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Reader reader(data, size);
    const std::uint8_t flags = reader.byte();
    try {
        std::vector<std::byte> file = file_from(reader, flags);
        fuzz::make_right<summary::Header>(file, flags, summary_magic, summary::version,
                                          [](summary::Header&) {});
        use(file, reader.rest());
    } catch (const InputError&) {
        // Refused by name: what a damaged file is meant to meet.
    }
    return 0;
}
