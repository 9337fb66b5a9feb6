// Odd records of tasks/glue.

#include "tests/tasks/odd_records.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

json GlueOddRecord(OddRecords* odd) {
  json record = {{"task", odd->OneIn(20) ? "wnli" : "rte"},
                 {"id", absl::StrCat(odd->Below(5))},
                 {"text", odd->Text()}};
  if (!odd->OneIn(4)) {
    record["text_b"] = odd->Text();
  }
  if (!odd->OneIn(4)) {
    record["label"] = odd->OneIn(8)   ? odd->Fragment()
                      : odd->OneIn(2) ? "entailment"
                                      : "not_entailment";
  }
  return record;
}

json GlueOddOptions(OddRecords* odd) {
  return {{"name", "rte"},
          {"labels", odd->OneIn(2) ? json{"entailment", "not_entailment"}
                                   : json{"not_entailment", "entailment"}}};
}

void GlueOddFit(OddRecords*, RunConfig* config) {
  config->data.max_long_length += 2;  // at least 3, for [CLS] and two [SEP]
}

[[maybe_unused]] const bool glue_is_registered =
    OddTask::Register("glue", {.record = GlueOddRecord,
                               .options = GlueOddOptions,
                               .fit = GlueOddFit,
                               .answers = {"label"}});

}  // namespace
}  // namespace etc
