// Odd records of tasks/nq.

#include "tests/tasks/odd_records.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {
namespace {

using nlohmann::json;

// Tokens [start, end) of a document, or none if it has none.
json Span(OddRecords* odd, int64_t tokens) {
  const int64_t start = tokens > 0 ? odd->Below(tokens) : -1;
  const int64_t end = tokens > 0 ? start + 1 + odd->Below(tokens - start) : -1;
  return {{"start_token", start}, {"end_token", end}};
}

json Annotation(OddRecords* odd, int64_t tokens) {
  json shorts = json::array();
  for (int64_t i = odd->Below(3); i > 0 && tokens > 0; --i) {
    shorts.push_back(Span(odd, tokens));
  }
  return {{"long_answer", Span(odd, odd->OneIn(3) ? 0 : tokens)},
          {"short_answers", shorts},
          {"yes_no_answer", odd->OneIn(4) ? "YES" : "NONE"}};
}

// Adds the field with the text of a document of so many tokens.
void AddDocument(OddRecords* odd, int64_t tokens, json* record) {
  if (odd->OneIn(3)) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < tokens; ++i) {
      texts.push_back(odd->Fragment());
    }
    (*record)["document_text"] = absl::StrJoin(texts, " ");
    return;
  }
  json list = json::array();
  for (int64_t i = 0; i < tokens; ++i) {
    list.push_back({{"token", odd->OneIn(5) ? odd->Text() : odd->Fragment()},
                    {"html_token", odd->OneIn(4)}});
  }
  (*record)["document_tokens"] = list;
}

json NqOddRecord(OddRecords* odd) {
  const int64_t tokens = odd->Below(30);
  json record = {{"example_id", odd->Below(1000)},
                 {"question_text", odd->Text()}};
  AddDocument(odd, tokens, &record);
  json candidates = json::array();
  for (int64_t i = odd->Below(5); i > 0 && tokens > 0; --i) {
    json candidate = Span(odd, tokens);
    candidate["top_level"] = !odd->OneIn(4);
    candidates.push_back(candidate);
  }
  record["long_answer_candidates"] = candidates;
  json annotations = json::array();
  for (int64_t i = odd->Below(4); i > 0; --i) {
    annotations.push_back(Annotation(odd, tokens));
  }
  record["annotations"] = annotations;
  return record;
}

json NqOddOptions(OddRecords* odd) {
  const char* const methods[] = {"joint", "disjoint", "joint_exhaustive"};
  return {{"stride", 1 + odd->Below(8)},
          {"question_len", odd->Below(4)},
          {"predict_la_when_no_sa", odd->OneIn(2)},
          {"fixed_blocks", odd->OneIn(4)},
          {"fixed_block_size", 1 + odd->Below(8)},
          {"mask_long_output", odd->OneIn(2)},
          {"span_selection_method", methods[odd->Below(3)]},
          {"consider_answer_type", !odd->OneIn(4)},
          {"max_short_answer_len", 1 + odd->Below(32)},
          {"official_compatibility", odd->OneIn(2)}};
}

// The lengths have to be larger than a question's and a stride.
void NqOddFit(OddRecords*, RunConfig* config) {
  const auto question = config->task_options["question_len"].get<int64_t>();
  config->data.max_long_length +=
      question + config->task_options["stride"].get<int64_t>() + 2;
  config->data.max_global_length += question + 1;
}

[[maybe_unused]] const bool nq_is_registered =
    OddTask::Register("nq", {.record = NqOddRecord,
                             .options = NqOddOptions,
                             .fit = NqOddFit,
                             .answers = {"annotations"}});

}  // namespace
}  // namespace etc
