#include "tasks/hotpotqa/task.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {

void Hotpotqa::ReadOptions(JsonObjectReader& reader, Options* options) {
  std::string encoding = "span";
  HotpotqaDecodingOptions& decoding = options->decoding;
  reader.Optional("answer_encoding", &encoding);
  reader.Optional("supporting_fact_threshold",
                  &decoding.supporting_fact_threshold);
  reader.Optional("search_threshold", &options->search_threshold);
  reader.Optional("max_answer_length", &decoding.max_answer_length);
  reader.Optional("flat_sequence", &options->example.flat_sequence);
  if (encoding == "bio") {
    options->head.answer_encoding = HotpotqaAnswerEncoding::kBio;
    decoding.answer_encoding = HotpotqaAnswerEncoding::kBio;
  } else if (encoding != "span") {
    reader.Fail("answer_encoding",
                absl::StrCat("should be \"span\" or \"bio\", but is \"",
                             encoding, "\""));
  }
  if (decoding.supporting_fact_threshold < 0 ||
      decoding.supporting_fact_threshold > 1) {
    reader.Fail("supporting_fact_threshold",
                absl::StrCat("should be in [0, 1], but is ",
                             decoding.supporting_fact_threshold));
  }
  CheckAtLeast(reader, "max_answer_length", decoding.max_answer_length, 1);
}

HotpotqaPrediction Hotpotqa::Decode(const Example& example,
                                    const Logits<LogitRow>& logits,
                                    const Options& options,
                                    const Tokenizer& tokenizer) {
  Prediction prediction =
      DecodeHotpotqa(example, logits, options.decoding, tokenizer);
  if (options.search_threshold) {
    HotpotqaDecodingOptions decoding = options.decoding;
    for (const double threshold : HotpotqaThresholds()) {
      decoding.supporting_fact_threshold = threshold;
      prediction.by_threshold.push_back(
          DecodeHotpotqa(example, logits, decoding, tokenizer));
    }
  }
  return prediction;
}

absl::StatusOr<std::pair<std::string, HotpotqaGold>> Hotpotqa::ParseGold(
    const std::string& text, const std::string& where, ScoringRules /*rules*/) {
  ETC_ASSIGN_OR_RETURN(Record record, ParseHotpotqaRecord(text, where));
  if (!record.answer.has_value()) {
    return AnswerIsMissing(where, "answer");
  }
  return std::pair(std::move(record.id),
                   Gold{.answer = *std::move(record.answer),
                        .facts = std::move(record.supporting_facts)});
}

}  // namespace etc
