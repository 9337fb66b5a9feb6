#ifndef ETC_TESTS_SUPPORT_JSON_INSTANCE_H_
#define ETC_TESTS_SUPPORT_JSON_INSTANCE_H_

#include <nlohmann/json.hpp>

// Compiled once, in json_instance.cc, for all tests: a fifth of the time that a
// test which reads JSON took to compile. Part of their precompiled headers.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<
    nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::json>;

#endif  // ETC_TESTS_SUPPORT_JSON_INSTANCE_H_
