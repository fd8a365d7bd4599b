// The Python face of a variant: the same for all, so that nothing but the drafter differs.
#pragma once

#ifdef LADDER_HOST  // another home for the same folders: a plain program, or the fuzzer
#include LADDER_HOST
#else

#include <memory>
#include <string>
#include <vector>

#include "base/platform.hpp"
#include "bindings/session.hpp"
#include "containers/dense_segmented_map.hpp"
#include "drafting/alternatives.hpp"
#include "drafting/memory_floor.hpp"

namespace ladder {

using MakeSession = std::unique_ptr<AnySession> (*)();
using ModuleAlternative = Alternative<MakeSession>;
using ModuleAlternatives = Alternatives<MakeSession>;

template <Drafter D>
ModuleAlternative alternative(Options options = {}) {
    return alternative_of<D, MakeSession>(
        std::move(options), []() -> std::unique_ptr<AnySession> { return std::make_unique<Session<D>>(); });
}

inline const char* compiler_name() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

inline const char* standard_library_name() {
#if defined(_LIBCPP_VERSION)
    return "libc++";
#elif defined(__GLIBCXX__)
    return "libstdc++";
#else
    return "unknown";
#endif
}

inline nb::dict variant_info(const char* name, const ModuleAlternatives& alternatives) {
    const ModuleAlternative& standard = alternatives.standard();
    nb::dict info;
    info["name"] = name;
    info["rule"] = nb::str(standard.rule.data(), standard.rule.size());
    info["ties"] = name_of(standard.ties);
    info["capabilities"] = nb::cast(standard.capabilities);
    info["static_format"] = format_name(standard.static_format);
    info["compiler"] = compiler_name();
    info["cxx_flags"] = LADDER_CXX_FLAGS;
    info["build_type"] = LADDER_BUILD_TYPE;
    info["standard_library"] = standard_library_name();
    info["unordered_dense"] = dense_map_source;
    info["axes"] = nb::cast(alternatives.axes());
    return info;
}

// Makes the variant's own static file from llama.cpp's; null where llama.cpp's is its own. Returns the time.
inline nb::object convert_static(const ModuleAlternative& variant, const std::string& source,
                                 const std::string& target) {
    if (variant.convert == nullptr) {
        return nb::none();
    }
    const auto start = std::chrono::steady_clock::now();
    {
        const nb::gil_scoped_release unlocked;
        variant.convert(source, target);
    }
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    nb::dict out;
    out["convert_ns"] = elapsed.count();
    return out;
}

inline void define_variant(nb::module_& module, const char* name, std::vector<ModuleAlternative> all) {
    translate_input_errors();
    const auto alternatives = std::make_shared<const ModuleAlternatives>(std::move(all));
    module.def("info", [name, alternatives] { return variant_info(name, *alternatives); });
    module.def(
        "convert_static",
        [alternatives](const std::string& source, const std::string& target) {
            return convert_static(alternatives->standard(), source, target);
        },
        nb::arg("source"), nb::arg("target"));
    module.def("static_format_of",
               [](const std::string& path) { return format_name(detect_static_format(path)); });
    module.def("die_with_parent", die_with_parent);
    module.def(
        "memory_floor",
        [](std::size_t table_bytes, std::uint64_t reads) {
            const nb::gil_scoped_release unlocked;
            const MemoryFloor floor = measure_memory_floor(table_bytes, reads);
            return std::pair(floor.dependent_ns, floor.independent_ns);
        },
        nb::arg("table_bytes"), nb::arg("reads"));
    define_session(module).def(
        nb::new_([alternatives](const Options& options) { return alternatives->choose(options).use(); }),
        nb::arg("options") = Options{});
}

}  // namespace ladder

// The line that makes a folder a module: its name, then its alternatives, the default one first.
#define LADDER_VARIANT_MODULE(variant, ...)                        \
    NB_MODULE(variant, module) {                                   \
        ::ladder::define_variant(module, #variant, {__VA_ARGS__}); \
    }

#endif  // LADDER_HOST
