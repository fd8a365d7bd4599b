// The calibrated drafter by hand: commands from standard input, one a line, drafts to standard output.
//   new TAU SHARE HISTORY_BOUND SESSION_BOUND
//   begin S | close S | forget S | learn T T ... | accept T T ... | draft N | save | set_costs C C ...
#include <cstddef>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "beyond/calibrated/engine.hpp"
#include "formats/sink.hpp"

namespace {

using namespace ladder;
using calibrated::Engine;
using calibrated::Settings;

std::vector<std::int64_t> numbers_of(std::istringstream& line) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t number = 0; line >> number;) {
        numbers.push_back(number);
    }
    return numbers;
}

std::unique_ptr<Engine> make(const std::vector<std::int64_t>& numbers) {
    Settings settings;
    settings.tau = static_cast<std::int32_t>(numbers.at(0));
    settings.share = numbers.at(1) != 0;
    settings.history_bound = static_cast<std::uint32_t>(numbers.at(2));
    settings.session_bound = static_cast<std::uint32_t>(numbers.at(3));
    return std::make_unique<Engine>(settings);
}

void draft(Engine& engine, int n_draft) {
    std::vector<Token> memory(static_cast<std::size_t>(n_draft) + 1);
    DraftBuffer drafted(memory.data());
    engine.draft(n_draft, drafted);
    for (const Token token : drafted) {
        std::cout << token << ' ';
    }
    std::cout << '\n';
}

void run(std::unique_ptr<Engine>& engine, const std::string& command, std::vector<std::int64_t> numbers) {
    const auto session = [&] { return static_cast<calibrated::SessionId>(numbers.at(0)); };
    if (command == "new") {
        engine = make(numbers);
    } else if (command == "begin") {
        engine->begin(session());
    } else if (command == "close") {
        engine->close(session());
    } else if (command == "forget") {
        engine->forget(session());
    } else if (command == "learn") {
        const std::vector<Token> tokens(numbers.begin(), numbers.end());
        engine->learn(tokens);
    } else if (command == "accept") {
        for (const std::int64_t token : numbers) {
            engine->accept(static_cast<Token>(token));
        }
    } else if (command == "draft") {
        draft(*engine, static_cast<int>(numbers.at(0)));
    } else if (command == "set_costs") {
        engine->set_costs(std::vector<std::uint32_t>(numbers.begin(), numbers.end()));
    } else if (command == "save") {
        MemorySink sink;
        engine->save(sink);
        engine->load(sink.take(), "<memory>");
    } else {
        throw std::runtime_error("unknown command " + command);
    }
}

}  // namespace

int main() {
    std::unique_ptr<Engine> engine;
    for (std::string text; std::getline(std::cin, text);) {
        std::istringstream line(text);
        std::string command;
        line >> command;
        run(engine, command, numbers_of(line));
    }
}
