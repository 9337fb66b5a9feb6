// Turns logits into the answer, the submission and its accuracy.

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/invalid_argument.h"
#include "tasks/prediction_json.h"
#include "tasks/text/text_folding.h"
#include "tasks/wikihop/task.h"

namespace etc {
namespace {

bool SameAnswer(absl::string_view a, absl::string_view b) {
  return LowerCase(StripWhiteSpace(a)) == LowerCase(StripWhiteSpace(b));
}

}  // namespace

std::string Wikihop::Decode(const Output& output, const Context& /*context*/) {
  const Example& example = *output.example;
  const LogitRow candidates = output.logits.candidates;
  TORCH_CHECK(example.candidates.size() <= candidates.size(), "question ",
              example.record_id, " has more candidates than logits");
  const auto best = std::max_element(
      candidates.begin(), candidates.begin() + example.num_candidates());
  return example.candidates[static_cast<size_t>(best - candidates.begin())];
}

std::string Wikihop::GoldOf(const Example& example) {
  return example.candidates[static_cast<size_t>(*example.label)];
}

std::optional<std::string> Wikihop::GoldOf(const Record& record) {
  if (!record.label.has_value()) {
    return std::nullopt;
  }
  return record.candidates[static_cast<size_t>(*record.label)];
}

Wikihop::PredictionsOr Wikihop::ReadPredictions(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json answers, ReadJsonFile(path));
  if (!answers.is_object()) {
    return InvalidArgument(
        path, R"( should be an object, {"<question id>": "<answer>", ...})");
  }
  ById<std::string> predictions;
  JsonObjectReader reader(answers, path);
  for (const auto& [id, answer] : answers.items()) {
    reader.Optional(id, &predictions.emplace_back(id, "").second);
  }
  ETC_RETURN_IF_ERROR(reader.Finish());
  return predictions;
}

std::string Wikihop::FileContents(const Answers& answers) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [id, answer] : answers.predictions) {
    json[id] = answer;
  }
  return AsciiLine(json);
}

Scores Wikihop::Score(const Answers& answers) {
  double answered = 0;
  double correct = 0;
  const std::vector<const Prediction*> predictions =
      PredictionsFor(answers.gold, answers.predictions);
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i] != nullptr) {
      ++answered;
      correct += SameAnswer(*predictions[i], answers.gold[i].second) ? 1 : 0;
    }
  }
  const auto questions = static_cast<int64_t>(predictions.size());
  return {.metrics = {{"accuracy", Share(correct, questions)}},
          .diagnostics = {{"answered", Share(answered, questions)}}};
}

}  // namespace etc
