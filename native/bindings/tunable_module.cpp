// A drafter whose thresholds are set at run time: for users, never measured as a variant.
#include <string>

#include "bindings/session.hpp"
#include "containers/sorted_ngram_map.hpp"
#include "drafting/lookup_drafter.hpp"
#include "formats/frozen_static_cache.hpp"

namespace ladder {

namespace {

class TunableRule {
public:
    static constexpr std::string_view name = "tunable";

    const Thresholds& context() const { return context_; }
    const Thresholds& dynamic() const { return dynamic_; }
    const Threshold& static_only() const { return static_; }

    Threshold& at(const std::string& source, int n) {
        if (source == "static" && n == static_ngram) {
            return static_;
        }
        if (n < 1 || n > ngram_max || (source != "context" && source != "dynamic")) {
            throw InputError("threshold: '" + source + "' has none for n-grams of " + std::to_string(n) +
                             "; use context or dynamic with 1 to 4, or static with 2");
        }
        return (source == "context" ? context_ : dynamic_)[static_cast<std::size_t>(n - 1)];
    }

private:
    Thresholds context_ = context_thresholds;
    Thresholds dynamic_ = dynamic_thresholds;
    Threshold static_ = static_threshold;
};

using TunableDrafter = LookupDrafter<SortedNgramMap<>, FrozenStaticCache<MapLayout::split>, Ties::token,
                                     Precheck::on, TunableRule>;

void set_threshold(Session<TunableDrafter>& session, const std::string& source, int n, std::int64_t min_total,
                   std::int64_t min_percent) {
    if (min_total < 1 || min_percent < 0 || min_percent > 100) {
        throw InputError("threshold: at least 1 and 0 to 100 % are needed, not " + std::to_string(min_total) +
                         " and " + std::to_string(min_percent) + " %; correct the threshold");
    }
    session.drafter().thresholds().at(source, n) = {min_total, min_percent};
}

}  // namespace

}  // namespace ladder

using namespace nanobind::literals;

NB_MODULE(_tunable, module) {
    using Session = ladder::Session<ladder::TunableDrafter>;
    ladder::translate_input_errors();
    ladder::define_session(module);
    nanobind::class_<Session, ladder::AnySession>(module, "TunableDrafter")
        .def(nanobind::init<>())
        .def("set_threshold", ladder::set_threshold, "source"_a, "n"_a, "min_total"_a, "min_percent"_a);
}
