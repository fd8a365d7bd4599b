// A token file's bytes: what is read, and what is refused with its byte offset.
#include <cstring>
#include <string>
#include <vector>

#include "base/tokens.hpp"
#include "testing.hpp"

namespace {

std::vector<std::byte> bytes_of(const std::vector<std::int32_t>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(std::int32_t));
    if (!values.empty()) {
        std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
}

std::string refusal_of(const std::vector<std::byte>& bytes) {
    try {
        (void)ladder::tokens_from(bytes, "f.tok");
    } catch (const ladder::InputError& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

int main() {
    testing::run("sound tokens are read as they are", [] {
        CHECK(ladder::tokens_from({}, "f.tok").empty());
        CHECK((ladder::tokens_from(bytes_of({0, 7, INT32_MAX}), "f.tok") ==
               std::vector<ladder::Token>{0, 7, INT32_MAX}));
    });
    testing::run("a negative token is refused", [] {
        CHECK(refusal_of(bytes_of({0, -1, 2})) ==
              "f.tok: byte 4: token -1 is negative; give token ids of 0 and more");
        CHECK(refusal_of(bytes_of({INT32_MIN})).starts_with("f.tok: byte 0: token -2147483648"));
    });
    testing::run("half a token is refused", [] {
        std::vector<std::byte> bytes = bytes_of({1, 2});
        bytes.pop_back();
        CHECK(refusal_of(bytes) == "f.tok: byte 4: ends inside a token; give whole int32 tokens");
    });
    return testing::summary();
}
