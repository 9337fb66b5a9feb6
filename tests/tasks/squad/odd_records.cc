// Odd records of tasks/squad.

#include "tests/tasks/odd_records.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

json SquadOddRecord(OddRecords* odd) {
  const std::string context =
      odd->OneIn(8) ? odd->Text() : absl::StrJoin(odd->Texts(6), " ");
  json answers = json::array();
  for (int64_t i = odd->OneIn(4) ? odd->Below(3) : 1; i > 0; --i) {
    answers.push_back({{"text", odd->OneIn(2) ? odd->Fragment() : odd->Text()},
                       {"answer_start", odd->Below(20) - 2}});
  }
  json record = {
      {"id", odd->Text()}, {"question", odd->Text()}, {"context", context}};
  if (!odd->OneIn(6)) {
    record["answers"] = answers;
  }
  if (odd->OneIn(2)) {
    record["is_impossible"] = odd->OneIn(3);
  }
  return record;
}

json SquadOddOptions(OddRecords* odd) {
  return {{"version", odd->OneIn(2) ? "1.1" : "2.0"},
          {"doc_stride", 1 + odd->Below(8)},
          {"max_query_length", odd->Below(4)},
          {"n_best_size", 1 + odd->Below(20)},
          {"max_answer_length", 1 + odd->Below(30)},
          {"several_answers", odd->OneIn(2) ? "error" : "first"}};
}

// The lengths have to be larger than a question's.
void SquadOddFit(OddRecords* odd, RunConfig* config) {
  const auto question = config->task_options["max_query_length"].get<int64_t>();
  config->model.has_long_tokens = !odd->OneIn(3);
  config->data.max_long_length += question + 3;
  config->data.max_global_length += question + 3;
}

[[maybe_unused]] const bool squad_is_registered =
    OddTask::Register("squad", {.record = SquadOddRecord,
                                .options = SquadOddOptions,
                                .fit = SquadOddFit,
                                .answers = {"answers", "is_impossible"}});

}  // namespace
}  // namespace etc
