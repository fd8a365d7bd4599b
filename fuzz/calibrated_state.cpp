// States of the calibrated drafter, damaged: loading refuses them by name, or what it takes can be used to
// the end without reading or writing outside. A checksum would keep a fuzzer at the door, so all are made
// right again.
#include <cstring>
#include <memory>

#include "beyond/calibrated/engine.hpp"
#include "common.hpp"
#include "formats/sink.hpp"

namespace {

using namespace ladder;
using calibrated::Engine;

enum Flag : std::uint8_t { from_input = 1, right_sections = 2, right_header = 4, flat_costs = 8 };

calibrated::Settings settings() {
    calibrated::Settings settings;
    settings.tau = 0;
    settings.history_bound = 96;
    settings.session_bound = 128;
    return settings;
}

void use(Engine& engine, std::span<const std::uint8_t> input) {
    std::vector<Token> memory(17);
    engine.begin(input.empty() ? 0 : input[0] % 3);
    for (const std::uint8_t byte : input.first(std::min<std::size_t>(input.size(), 256))) {
        DraftBuffer draft(memory.data());
        engine.draft(byte % 17, draft);
        engine.accept(byte % 5);
        if (byte == 255) {
            engine.forget(1);
            engine.begin(2);
        }
    }
}

std::vector<std::byte> state_of(std::span<const std::uint8_t> input) {
    Engine engine(settings());
    use(engine, input);
    MemorySink sink;
    engine.save(sink);
    return sink.take();
}

void make_right(std::vector<std::byte>& file, std::uint8_t flags) {
    using calibrated::StateHeader;
    if (file.size() < sizeof(StateHeader)) {
        return;
    }
    StateHeader header;
    std::memcpy(&header, file.data(), sizeof header);
    header.file_bytes = file.size();
    header.header_xxh64 = header_digest(header);
    if ((flags & right_header) != 0) {
        std::memcpy(file.data(), &header, sizeof header);
    }
    std::size_t at = sizeof header;
    while ((flags & right_sections) != 0 && file.size() - at >= 16) {
        std::uint64_t size = 0;
        std::memcpy(&size, file.data() + at, sizeof size);
        if (size > file.size() - at - 16) {
            return;
        }
        const std::uint64_t digest = xxh64(std::span<const std::byte>(file).subspan(at + 16, size));
        std::memcpy(file.data() + at + 8, &digest, sizeof digest);
        at += 16 + static_cast<std::size_t>(size);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Reader reader(data, size);
    const std::uint8_t flags = reader.byte();
    const fuzz::Damage damage(reader);
    std::vector<std::byte> file =
        (flags & from_input) != 0 ? fuzz::as_bytes(reader.rest()) : state_of(reader.rest());
    damage.apply(file, file.size());
    make_right(file, flags);
    Engine engine(settings());
    try {
        engine.load(file, "<fuzzed>");
    } catch (const InputError&) {
        return 0;  // refused by name: what a damaged file is meant to meet
    }
    if ((flags & flat_costs) != 0) {
        const std::array<std::uint32_t, 9> costs = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        engine.set_costs(costs);
    }
    use(engine, reader.rest());
    return 0;
}
