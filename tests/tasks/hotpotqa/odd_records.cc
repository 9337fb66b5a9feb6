// Odd records of tasks/hotpotqa.

#include "tests/tasks/odd_records.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

json HotpotqaOddRecord(OddRecords* odd) {
  json context = json::array();
  json facts = json::array();
  std::vector<std::string> answers = {"yes", "no", odd->Text(),
                                      odd->Fragment()};
  for (int64_t p = odd->Below(5); p > 0; --p) {
    const std::string title = odd->Text();
    std::vector<std::string> sentences = odd->Texts(5);
    if (odd->OneIn(2)) {  // which rarely fits, while those behind it do
      sentences.insert(sentences.begin(), absl::StrJoin(odd->Texts(12), " "));
    }
    context.push_back({title, sentences});
    if (odd->OneIn(2)) {
      facts.push_back({title, odd->Below(6)});
    }
    answers.push_back(title);
    answers.insert(answers.end(), sentences.begin(), sentences.end());
    answers.push_back(odd->Of(OddRecordWords()));
  }
  json record = {{"_id", odd->Text()},
                 {"question", odd->Text()},
                 {"context", context},
                 {"supporting_facts", facts}};
  if (!odd->OneIn(6)) {
    record["answer"] = odd->Of(answers);
  }
  return record;
}

json HotpotqaOddOptions(OddRecords* odd) {
  return {{"answer_encoding", odd->OneIn(2) ? "span" : "bio"},
          {"search_threshold", odd->OneIn(4)},
          {"supporting_fact_threshold", 0.25 * odd->Below(5)},
          {"max_answer_length", 1 + odd->Below(30)},
          {"flat_sequence", odd->OneIn(4)},
          {"official_compatibility", odd->OneIn(2)}};
}

[[maybe_unused]] const bool hotpotqa_is_registered =
    OddTask::Register("hotpotqa", {.record = HotpotqaOddRecord,
                                   .options = HotpotqaOddOptions,
                                   .answers = {"answer", "supporting_facts"}});

}  // namespace
}  // namespace etc
