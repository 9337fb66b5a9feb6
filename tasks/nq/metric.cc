#include "tasks/nq/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_file.h"
#include "tasks/nq/answers_json.h"
#include "tasks/nq/predictions_file.h"
#include "tasks/nq/verdict.h"

namespace etc {
namespace {

using NamedScores = std::vector<std::pair<std::string, double>>;

void Append(const std::string& prefix, const NqThresholdScores& best,
            NamedScores* scores) {
  scores->emplace_back(prefix + "f1", best.f1);
  scores->emplace_back(prefix + "precision", best.precision);
  scores->emplace_back(prefix + "recall", best.recall);
  scores->emplace_back(prefix + "threshold", best.threshold);
  for (size_t i = 0; i < kNqPrecisions.size(); ++i) {
    scores->emplace_back(
        absl::StrCat(prefix, "recall_at_precision_", kNqPrecisions[i]),
        best.recall_at_precision[i]);
  }
}

// Of a record only what is scored: the rest may be absent.
absl::StatusOr<std::pair<int64_t, std::vector<NqAnnotation>>> ParseGold(
    const std::string& text, const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  std::pair<int64_t, std::vector<NqAnnotation>> gold;
  JsonObjectReader reader(json, where);
  ReadNqExampleId(reader, &gold.first);
  const auto* annotations = reader.Raw("annotations", /*required=*/true);
  if (annotations != nullptr &&
      (!annotations->is_array() || annotations->empty())) {
    reader.Fail("annotations", "should be a list of at least one annotation");
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  for (size_t i = 0; i < annotations->size(); ++i) {
    ETC_ASSIGN_OR_RETURN(
        gold.second.emplace_back(),
        NqAnnotationFromJson(
            (*annotations)[i], /*required=*/true,
            absl::StrCat(reader.Where("annotations"), "[", i, "]")));
  }
  return gold;
}

using Gold = std::map<int64_t, std::vector<NqAnnotation>>;

absl::StatusOr<Gold> ReadGold(const std::string& pattern) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles({pattern}));
  Gold gold;
  for (const std::string& path : paths) {
    ETC_ASSIGN_OR_RETURN(const RecordFile file, RecordFile::Open(path));
    for (int64_t i = 0; i < file.size(); ++i) {
      ETC_ASSIGN_OR_RETURN(const std::string text, file.Read(i));
      ETC_ASSIGN_OR_RETURN(auto document, ParseGold(text, file.Where(i)));
      gold.insert_or_assign(document.first, std::move(document.second));
    }
  }
  return gold;
}

}  // namespace

void NqScorer::AddGold(int64_t example_id,
                       std::vector<NqAnnotation> annotations) {
  gold_[example_id] = std::move(annotations);
}

void NqScorer::AddPrediction(NqPrediction prediction) {
  const int64_t id = prediction.example_id;
  predicted_[id] = std::move(prediction);
}

NamedScores NqScorer::Scores() const {
  NamedScores scores;
  if (gold_.empty()) {
    return scores;
  }
  // How many annotators must agree that there is an answer.
  const auto needed = [&](int64_t threshold, int64_t annotators) {
    return options_.official_compatibility
               ? threshold
               : std::min(threshold, std::max<int64_t>(annotators, 1));
  };
  std::vector<NqVerdict> long_verdicts;
  std::vector<NqVerdict> short_verdicts;
  for (const auto& [id, gold] : gold_) {
    const auto found = predicted_.find(id);
    const NqPrediction prediction =
        found == predicted_.end() ? NqPrediction{} : found->second;
    const auto annotators = static_cast<int64_t>(gold.size());
    long_verdicts.push_back(
        JudgeLongAnswer(gold, prediction,
                        needed(options_.long_non_null_threshold, annotators)));
    short_verdicts.push_back(JudgeShortAnswers(
        gold, prediction,
        needed(options_.short_non_null_threshold, annotators)));
  }
  const NqThresholdScores long_best = BestThreshold(std::move(long_verdicts));
  const NqThresholdScores short_best = BestThreshold(std::move(short_verdicts));
  scores.emplace_back("average_f1", (long_best.f1 + short_best.f1) / 2);
  Append("long_", long_best, &scores);
  Append("short_", short_best, &scores);
  return scores;
}

std::optional<int64_t> NqScorer::WithoutPrediction() const {
  for (const auto& [id, annotations] : gold_) {
    if (!predicted_.contains(id)) {
      return id;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> NqScorer::WithoutGold() const {
  for (const auto& [id, prediction] : predicted_) {
    if (!gold_.contains(id)) {
      return id;
    }
  }
  return std::nullopt;
}

absl::StatusOr<NamedScores> ScoreNqFiles(const std::string& gold_path,
                                         const std::string& predictions_path,
                                         const NqScorerOptions& options) {
  // The small file first: its mistakes should not take long to be seen.
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadFile(predictions_path));
  ETC_ASSIGN_OR_RETURN(auto predictions,
                       NqPredictionsFromJson(text, predictions_path));
  ETC_ASSIGN_OR_RETURN(Gold gold, ReadGold(gold_path));
  NqScorer scorer(options);
  for (NqPrediction& prediction : predictions) {
    scorer.AddPrediction(std::move(prediction));
  }
  for (auto& [id, annotations] : gold) {
    scorer.AddGold(id, std::move(annotations));
  }
  if (const auto id = scorer.WithoutPrediction()) {
    return absl::InvalidArgumentError(absl::StrCat(
        predictions_path, " should have a prediction for each document of ",
        gold_path, ", but has none for ", *id));
  }
  if (const auto id = scorer.WithoutGold()) {
    return absl::InvalidArgumentError(
        absl::StrCat(predictions_path, " has a prediction for ", *id,
                     ", which is no document of ", gold_path));
  }
  return scorer.Scores();
}

}  // namespace etc
