// From logits to the answer, the submission and its accuracy.

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/prediction_json.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

bool SameAnswer(absl::string_view a, absl::string_view b) {
  return LowerCase(StripWhiteSpace(a)) == LowerCase(StripWhiteSpace(b));
}

}  // namespace

std::string Wikihop::Decode(const Example& example,
                            const Logits<LogitRow>& logits,
                            const Options& /*options*/,
                            const Tokenizer& /*tokenizer*/) {
  const LogitRow candidates = logits.candidates;
  TORCH_CHECK(example.candidates.size() <= candidates.size(), "question ",
              example.record_id, " has more candidates than logits");
  const auto best = std::max_element(
      candidates.begin(), candidates.begin() + example.num_candidates());
  return example.candidates[static_cast<size_t>(best - candidates.begin())];
}

std::string Wikihop::GoldOf(const Example& example) {
  return example.candidates[static_cast<size_t>(*example.label)];
}

absl::StatusOr<std::pair<std::string, std::string>> Wikihop::ParseGold(
    const std::string& text, const std::string& where, ScoringRules /*rules*/) {
  ETC_ASSIGN_OR_RETURN(const WikihopRecord record,
                       ParseWikihopRecord(text, where));
  if (!record.label.has_value()) {
    return AnswerIsMissing(where, "answer");
  }
  return std::pair(record.id,
                   record.candidates[static_cast<size_t>(*record.label)]);
}

absl::StatusOr<ById<std::string>> Wikihop::ReadPredictions(
    const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json answers, ReadJsonFile(path));
  if (!answers.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, R"( should be an object, {"<question id>": "<answer>", ...})"));
  }
  ById<std::string> predictions;
  JsonObjectReader reader(answers, path);
  for (const auto& [id, answer] : answers.items()) {
    reader.Optional(id, &predictions.emplace_back(id, "").second);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  return predictions;
}

std::string Wikihop::FileContents(const ById<Prediction>& predictions,
                                  const ById<Gold>& /*gold*/) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [id, answer] : predictions) {
    json[id] = answer;
  }
  return AsciiLine(json);
}

absl::Status Wikihop::CheckFiles(const ById<Gold>& gold,
                                 const ById<Prediction>& predictions,
                                 const ScoredFiles& files) {
  const auto answers = LastOfEachId(gold);
  for (const auto& [id, answer] : predictions) {
    if (!answers.contains(id)) {
      return absl::InvalidArgumentError(absl::StrCat(
          files.predictions, ": ", id, " is the answer to a question that ",
          files.gold, " does not have"));
    }
  }
  return absl::OkStatus();
}

Scores Wikihop::Score(const ById<Gold>& gold,
                      const ById<Prediction>& predictions,
                      ScoringRules /*rules*/) {
  const std::vector<const Prediction*> answers =
      PredictionsFor(gold, predictions);
  double answered = 0;
  double correct = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    if (answers[i] != nullptr) {
      ++answered;
      correct += SameAnswer(*answers[i], gold[i].second) ? 1 : 0;
    }
  }
  const auto questions = static_cast<int64_t>(gold.size());
  return {.metrics = {{"accuracy", Share(correct, questions)}},
          .diagnostics = {{"answered", Share(answered, questions)}}};
}

}  // namespace etc
