// Odd records of tasks/tokens.

#include "tests/tasks/odd_records.h"

#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

json TokensOddSpan(OddRecords* odd) {
  const int64_t start = odd->Below(6) - (odd->OneIn(10) ? 1 : 0);
  json span = {{"start", start},
               {"end", start + 1 + odd->Below(2)},
               {"label", odd->OneIn(8) ? odd->Fragment() : "yes"}};
  if (odd->OneIn(10)) {
    span["text"] = odd->Fragment();
  }
  return span;
}

json TokensOddRecord(OddRecords* odd) {
  json record = json::object();
  if (odd->OneIn(2)) {
    record["id"] = odd->Text();
  }
  if (odd->OneIn(2)) {
    record["text"] = odd->Text();
    if (odd->OneIn(2)) {
      record["spans"] = json::array();
      for (int64_t i = odd->Below(2); i > 0; --i) {
        record["spans"].push_back(TokensOddSpan(odd));
      }
    }
    return record;
  }
  record["sentences"] = json::array();
  record["tags"] = json::array();
  for (int64_t i = odd->Below(4); i > 0; --i) {
    const std::vector<std::string> words = odd->Texts(4);
    json tags = json::array();
    for (size_t word = 0; word < words.size(); ++word) {
      tags.push_back(odd->OneIn(10) ? "I-yes" : odd->OneIn(2) ? "B-no" : "O");
    }
    record["sentences"].push_back(words);
    record["tags"].push_back(tags);
  }
  if (odd->OneIn(3)) {
    record.erase("tags");
  }
  return record;
}

json TokensOddOptions(OddRecords* odd) {
  return {{"tags", odd->OneIn(2) ? "iob2" : "conlleval"},
          {"labels", {"yes", "no", "\u2581"}}};
}

void TokensOddFit(OddRecords*, RunConfig* config) {
  config->data.max_long_length += 2;  // at least 3, for [CLS] and two [SEP]
}

[[maybe_unused]] const bool tokens_is_registered =
    OddTask::Register("tokens", {.record = TokensOddRecord,
                                 .options = TokensOddOptions,
                                 .fit = TokensOddFit,
                                 .answers = {"spans", "tags"}});

}  // namespace
}  // namespace etc
