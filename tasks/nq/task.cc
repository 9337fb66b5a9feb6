#include "tasks/nq/task.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/gzip_file.h"
#include "base/status_macros.h"
#include "tasks/task/official_json.h"

namespace etc {

void Nq::CheckOptions(JsonObjectReader& reader, Options* options) const {
  if (!reader.Has("mask_long_output")) {
    options->mask_long_output = !options->official_compatibility;
  }
  constexpr double kUnanswerableFactor = 4;
  if (!reader.Has("include_unknown_rate_for_unanswerable")) {
    options->include_unknown_rate_for_unanswerable =
        kUnanswerableFactor * options->include_unknown_rate;
  }
}

NeededLengths Nq::Lengths(const Options& options) const {
  const int64_t question = options.max_question_length;
  return {.long_tokens = question + kNqNumSpecialTokens + options.stride,
          .long_use = "the question, [CLS], two [SEP] and a stride",
          .global_tokens = question + 2,
          .global_use = "[CLS], the question and its [SEP]"};
}

absl::Status Nq::UseVocabulary(const Tokenizer& tokenizer,
                               Options* options) const {
  ETC_ASSIGN_OR_RETURN(options->tokens,
                       NqTokensOf(options->input.tokenizer_kind, tokenizer));
  return absl::OkStatus();
}

std::optional<Nq::Gold> Nq::GoldOf(const Record& record) const {
  return record.annotations.empty() ? std::nullopt
                                    : std::optional<Gold>(record.annotations);
}

Nq::PredictionsOr Nq::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(std::string text, ReadUnpackedFile(path));
  if (ArePredictedLines(text, "example_id")) {
    text = absl::StrCat(
        "{\"predictions\":[",
        absl::StrJoin(absl::StrSplit(text, '\n', absl::SkipWhitespace()),
                      ",\n"),
        "]}");
  }
  ETC_ASSIGN_OR_RETURN(std::vector<NqPrediction> predictions,
                       NqPredictionsFromJson(text, path));
  ById<NqPrediction> by_id;
  for (NqPrediction& prediction : predictions) {
    by_id.emplace_back(absl::StrCat(prediction.example_id),
                       std::move(prediction));
  }
  return by_id;
}

std::string Nq::PredictionJson(const std::string& /*id*/,
                               const Prediction& prediction) const {
  return NqPredictionToJson(prediction);
}

std::string Nq::FileContents(const Answers& answers) const {
  std::vector<NqPrediction> all;
  for (const auto& [id, prediction] : answers.predictions) {
    all.push_back(prediction);
  }
  return NqPredictionsToJson(all);
}

}  // namespace etc
