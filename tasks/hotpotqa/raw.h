#ifndef ETC_TASKS_HOTPOTQA_RAW_H_
#define ETC_TASKS_HOTPOTQA_RAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/hotpotqa/record.h"

namespace etc {

// A list of supporting facts as gold data and predictions have it: [["title",
// 0], ...]. `where` is its name in messages.
//   kInvalidArgument  it is anything else
absl::StatusOr<std::vector<HotpotqaFact>> HotpotqaFactsFromJson(
    const nlohmann::json& json, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_RAW_H_
