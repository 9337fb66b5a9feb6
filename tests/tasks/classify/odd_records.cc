// Odd records of tasks/classify.

#include "tests/tasks/odd_records.h"

#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

json ClassifyOddRecord(OddRecords* odd) {
  json record = {{"text", odd->Text()}};
  if (odd->OneIn(2)) {
    record["id"] = odd->Text();
  }
  if (odd->OneIn(2)) {
    record["text_b"] = odd->Text();
  }
  if (!odd->OneIn(4)) {
    record["label"] = odd->OneIn(8)   ? json(odd->Fragment())
                      : odd->OneIn(6) ? json(odd->Below(5))
                      : odd->OneIn(2) ? json("yes")
                                      : json("no");
  }
  return record;
}

json ClassifyOddOptions(OddRecords* odd) {
  if (odd->OneIn(4)) {
    return {{"type", "number"}};
  }
  json options = {{"type", odd->OneIn(2) ? "one" : "several"},
                  {"labels", odd->OneIn(2) ? json{"yes", "no"}
                                           : json{"no", "\u2581", "yes"}}};
  if (options["type"] == "several") {
    options["threshold"] = 0.1 + 0.2 * static_cast<double>(odd->Below(5));
  }
  return options;
}

void ClassifyOddFit(OddRecords*, RunConfig* config) {
  config->data.max_long_length += 2;  // at least 3, for [CLS] and two [SEP]
}

[[maybe_unused]] const bool classify_is_registered =
    OddTask::Register("classify", {.record = ClassifyOddRecord,
                                   .options = ClassifyOddOptions,
                                   .fit = ClassifyOddFit,
                                   .answers = {"label"}});

}  // namespace
}  // namespace etc
