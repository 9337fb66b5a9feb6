#include "tasks/glue/task.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/glue/official_files.h"
#include "tasks/inputs/description.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/label_metrics.h"

namespace etc {
namespace {

// Gold and predictions as the metrics read them.
struct GlueAnswers {
  std::vector<std::string> labels;
  std::vector<std::string> predicted_labels;
  std::vector<double> scores;
  std::vector<double> predicted_scores;
};

// Answers of the rows from the files of a set; of all rows, if that is empty.
GlueAnswers AnswersOf(const Glue::Answers& answers, const std::string& set) {
  const auto predictions = PredictionsFor(answers.gold, answers.predictions);
  GlueAnswers chosen;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const GlueGold& gold = answers.gold[i].second;
    if (!set.empty() && gold.set != set) {
      continue;
    }
    // A missing prediction is wrong.
    const GluePrediction prediction =
        predictions[i] == nullptr ? GluePrediction() : *predictions[i];
    chosen.labels.push_back(gold.label);
    chosen.predicted_labels.push_back(prediction.label);
    chosen.scores.push_back(gold.score);
    chosen.predicted_scores.push_back(prediction.score);
  }
  return chosen;
}

// The mean of two metrics goes before them.
Metrics WithMean(Metrics pair) {
  pair.insert(pair.begin(),
              {"combined", (pair[0].second + pair[1].second) / 2});
  return pair;
}

Metrics MetricsOf(const GlueTask& task, const Glue::Answers& answers) {
  const GlueAnswers all = AnswersOf(answers, "");
  const double accuracy = LabelAccuracy(all.labels, all.predicted_labels);
  switch (task.metrics) {
    case GlueMetrics::kAccuracyAndF1:
      // Class 1 is positive.
      return WithMean(
          {{"accuracy", accuracy},
           {"f1", LabelF1(all.labels, all.predicted_labels, task.labels[1])}});
    case GlueMetrics::kCorrelations:
      return WithMean(
          {{"pearson", PearsonCorrelation(all.scores, all.predicted_scores)},
           {"spearman",
            SpearmanCorrelation(all.scores, all.predicted_scores)}});
    case GlueMetrics::kMatthews:
      return {
          {"matthews", MatthewsCorrelation(all.labels, all.predicted_labels)},
          {"accuracy", accuracy}};
    case GlueMetrics::kAccuracy:
      break;
  }
  Metrics metrics = {{"accuracy", accuracy}};
  for (const char* set : {"matched", "mismatched"}) {
    const GlueAnswers some = AnswersOf(answers, set);
    if (!some.labels.empty()) {
      metrics.emplace_back(absl::StrCat("accuracy_", set),
                           LabelAccuracy(some.labels, some.predicted_labels));
    }
  }
  return metrics;
}

std::string DroppedPieces(int64_t dropped) {
  return absl::StrCat(dropped, " pieces cut from the end of the longer text");
}

}  // namespace

BenchmarkInfo Glue::info() const {
  return {.name = "glue",
          .description =
              "GLUE: the class or the score of a text or two; the "
              "configuration says which task",
          .prediction_unit = "line",
          .serves_bert = true,
          .has_own_files = true,
          .holds_out_records = true};
}

void ConfigTable<GlueOptions>::ReadName(JsonObjectReader& reader,
                                        GlueOptions* options) {
  std::string name;
  reader.Required("name", &name);
  const auto task = FindGlueTask(name);
  if (!task.ok()) {
    reader.Fail("name", task.status().message());
    return;
  }
  options->task = *task;
  options->labels = (*task)->labels;
}

void ConfigTable<GlueOptions>::ReadLabels(JsonObjectReader& reader,
                                          GlueOptions* options) {
  reader.OneOrMore("labels", &options->labels);
  const GlueTask* const task = options->task;
  if (task == nullptr ||
      std::is_permutation(options->labels.begin(), options->labels.end(),
                          task->labels.begin(), task->labels.end())) {
    return;
  }
  reader.Fail(
      "labels",
      task->is_regression()
          ? "should not be given: STS-B has scores"
          : absl::StrCat("should be the labels of ", task->title,
                         " in any order, each once: ", task->ExpectedLabels()));
}

absl::StatusOr<std::vector<FileRecord>> Glue::ReadFile(
    const std::string& path, const RecordLimits& limits) const {
  if (options().task == nullptr) {
    return InvalidArgument(
        path,
        " can only be read when it is known which task of GLUE it is "
        "of: give a configuration whose glue.name says so (--config)");
  }
  return ReadGlueFile(path, *options().task, limits);
}

std::string Glue::Describe(const Example& example) const {
  GlobalTokenTable table = {.token = [&](size_t i) {
    return tokenizer().Piece(example.long_token_ids[i]);
  }};
  if (!options().input.has_long_tokens) {
    table.kind = [&](size_t g) {
      return tokenizer().Piece(example.global_token_ids[g]);
    };
    for (const int32_t id : example.global_token_ids) {
      table.kind_width = std::max(
          table.kind_width, static_cast<int>(tokenizer().Piece(id).size()));
    }
  }
  return DescribeExample(
      example,
      {.title =
           absl::StrCat(options().task->title, ", row ", example.record_id),
       .answer_name = options().task->is_regression() ? "score" : "label",
       .answer = example.gold.label,
       .size = absl::StrCat(
           DescribeLengths(example), "; ",
           DescribeTruncation(example.dropped_pieces, DroppedPieces))},
      table);
}

GluePrediction Glue::Decode(Outputs outputs) const {
  const LogitRow logits = outputs.front().logits.classes;
  if (options().task->is_regression()) {
    return {.score = static_cast<double>(logits[0])};
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  return {.label =
              options().labels.at(static_cast<size_t>(best - logits.begin()))};
}

Scores Glue::Score(const Answers& answers) const {
  std::set<std::pair<std::string, double>> distinct;
  for (const auto& [id, prediction] : answers.predictions) {
    const bool is_regression = options().task->is_regression();
    distinct.emplace(is_regression ? "" : prediction.label,
                     is_regression ? prediction.score : 0);
  }
  return {.metrics = MetricsOf(*options().task, answers),
          .diagnostics = {
              {"distinct_predictions", static_cast<double>(distinct.size())}}};
}

std::pair<std::string, double> Glue::RecordScore(const Answers& answers) const {
  const GlueGold& gold = answers.gold.front().second;
  const GluePrediction& prediction = answers.predictions.front().second;
  if (!options().task->is_regression()) {
    return {"accuracy", gold.label == prediction.label ? 1.0 : 0.0};
  }
  // The first of both if the second is no number.
  return {"absolute_error", std::min(kMaxGlueScore - kMinGlueScore,
                                     std::abs(gold.score - prediction.score))};
}

}  // namespace etc
