#include "tasks/hotpotqa/task.h"

#include "absl/strings/str_cat.h"

namespace etc {

void Hotpotqa::ReadOptions(JsonObjectReader& reader, Options* options) const {
  reader.Optional("official_compatibility", &options->official_compatibility);
  std::string encoding = "span";
  reader.Optional("answer_encoding", &encoding);
  reader.Optional("supporting_fact_threshold",
                  &options->supporting_fact_threshold);
  reader.Optional("search_threshold", &options->search_threshold);
  reader.Optional("max_answer_length", &options->max_answer_length);
  reader.Optional("flat_sequence", &options->flat_sequence);
  if (encoding == "bio") {
    options->answer_encoding = HotpotqaAnswerEncoding::kBio;
  } else if (encoding != "span") {
    reader.Fail("answer_encoding",
                absl::StrCat("should be \"span\" or \"bio\", but is \"",
                             encoding, "\""));
  }
  if (options->supporting_fact_threshold < 0 ||
      options->supporting_fact_threshold > 1) {
    reader.Fail("supporting_fact_threshold",
                absl::StrCat("should be in [0, 1], but is ",
                             options->supporting_fact_threshold));
  }
  CheckAtLeast(reader, "max_answer_length", options->max_answer_length, 1);
}

std::optional<HotpotqaGold> Hotpotqa::GoldOf(const Record& record) const {
  if (!record.answer.has_value()) {
    return std::nullopt;
  }
  return Gold{.answer = *record.answer, .facts = record.supporting_facts};
}

}  // namespace etc
