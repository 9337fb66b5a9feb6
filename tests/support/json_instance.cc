#include "tests/support/json_instance.h"

template class nlohmann::basic_json<>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::json>;
