// Odd records of tasks/wikihop.

#include "tests/tasks/odd_records.h"

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

json WikihopOddRecord(OddRecords* odd) {
  std::vector<std::string> candidates = odd->Texts(4);
  candidates.push_back(odd->Fragment());
  json record = {{"id", odd->Text()},
                 {"query", odd->Fragment() + " " + odd->Text()},
                 {"candidates", candidates},
                 {"supports", odd->Texts(4)}};
  if (!odd->OneIn(4)) {
    record["answer"] = odd->Of(candidates);
  }
  return record;
}

json WikihopOddOptions(OddRecords* odd) {
  return {{"add_final_layer", odd->OneIn(2)},
          {"enable_l2g_linking", !odd->OneIn(4)},
          {"max_num_sentences", odd->Below(6)},
          {"mention_alignment", odd->OneIn(2) ? "pieces" : "characters"}};
}

void WikihopOddFit(OddRecords* odd, RunConfig* config) {
  if (odd->OneIn(2)) {  // documents alone are cut
    config->data.max_long_length += 30;
    config->data.max_global_length += 30;
  }
}

[[maybe_unused]] const bool wikihop_is_registered =
    OddTask::Register("wikihop", {.record = WikihopOddRecord,
                                  .options = WikihopOddOptions,
                                  .fit = WikihopOddFit,
                                  .answers = {"answer"}});

}  // namespace
}  // namespace etc
