// Summary files, damaged: look-ups never read outside whatever the file says. The input is a summary file, or
// llama.cpp's file that is converted here and then damaged; its header can be made right again.
//   summary_loader --convert SOURCE TARGET    makes such a file, for the seeds
#include <algorithm>
#include <cstring>
#include <string_view>

#include "beyond/summary_index/static_builder.hpp"
#include "beyond/summary_index/static_file.hpp"
#include "common.hpp"

namespace {

using namespace ladder;

constexpr Token seed_tokens = 16;  // the seeds' bigrams are made of these: all of them are looked up

enum Flag : std::uint8_t { from_llama = 1, right_layout = 8 };  // beside fuzz::Repair's

// Sections that fill the file and do not cross, so that what lies in them meets the look-ups: where one of
// them begins and how the entries are made stays as the file says, if that can be.
void lay_out(summary::Header& header, const std::vector<std::byte>& file) {
    constexpr std::uint64_t min_lines = 5, aligned = summary::section_alignment;
    const std::uint64_t most = (file.size() - std::min(file.size(), summary::tail_bytes)) / aligned * aligned;
    header.lines_offset = aligned;
    header.lists_offset =
        std::clamp(header.lists_offset / aligned * aligned, std::min(2 * aligned, most), most);
    const std::uint64_t room = (std::max(header.lists_offset, aligned) - aligned) / summary::line_bytes;
    header.n_lines = std::clamp(header.n_lines, std::min(min_lines, room), room);
    header.lists_bytes = file.size() - header.lists_offset;
    header.token_limit = std::clamp<std::uint64_t>(header.token_limit, 1, std::uint64_t{1} << 31);
    header.entry_bytes = header.entry_bytes % 2 == 0 ? 8 : 16;
    header.content_xxh64 = xxh64(std::span<const std::byte>(file).subspan(sizeof header));
}

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

std::uint64_t look_up(const summary::StaticFile& cache, Bigram bigram) {
    if (bigram.first < 0 || bigram.second < 0) {
        return 0;  // drafters hold real tokens only
    }
    std::uint64_t sum = 0;
    try {
        cache.prefetch(bigram);
        const summary::StaticEntry entry = cache.find(bigram);
        if (entry.present() && !entry.single()) {
            const summary::SuccessorList list = cache.list(entry);
            sum += list.count_of(bigram.first) + list.count_of(entry.top());
            list.for_each_permuted([&](std::uint64_t token, std::uint64_t count) { sum += token ^ count; });
        }
    } catch (const InputError&) {
        // A list that points outside is found by the look-up; that is its job.
    }
    return sum;
}

void use(std::span<const std::byte> file, std::span<const std::uint8_t> input) {
    const auto cache = summary::StaticFile::from_bytes(file, "<bytes>");
    std::uint64_t sum = 0;
    for (Token first = 0; first < seed_tokens; ++first) {
        for (Token second = 0; second < seed_tokens; ++second) {
            sum += look_up(cache, {first, second});
        }
    }
    for (std::size_t at = 0; at + sizeof(Bigram) <= input.size() && at < 2048; at += 4) {
        Bigram bigram{};
        std::memcpy(&bigram, input.data() + at, sizeof bigram);
        sum += look_up(cache, bigram);
    }
    static volatile std::uint64_t keep;
    keep = sum;
    try {
        cache.verify();
    } catch (const InputError&) {
        // Most damage changes the checksum.
    }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    if (*argc == 4 && std::string_view((*argv)[1]) == "--convert") {
        Source source = Source::from_file((*argv)[2]);
        AtomicFile file((*argv)[3]);
        summary::build_static_file(source, file);
        file.commit();
        std::exit(0);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Reader reader(data, size);
    const std::uint8_t flags = reader.byte();
    try {
        std::vector<std::byte> file = file_from(reader, flags);
        fuzz::make_right<summary::Header>(file, flags, summary_magic, summary::version,
                                          [&](summary::Header& header) {
                                              if ((flags & right_layout) != 0) {
                                                  lay_out(header, file);
                                              }
                                          });
        use(file, reader.rest());
    } catch (const InputError&) {
        // Refused by name: what a damaged file is meant to meet.
    }
    return 0;
}
