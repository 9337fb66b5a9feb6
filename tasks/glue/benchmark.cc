#include "tasks/glue/benchmark.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fields.h"

namespace etc {
namespace {

using enum GlueMetrics;

constexpr GlueColumns kLabelledPair = {
    .count = 4, .text_a = 1, .text_b = 2, .label = kLastColumn};
constexpr GlueColumns kTestPair = {.count = 3, .text_a = 1, .text_b = 2};
constexpr GlueColumns kTestSingle = {.count = 2, .text_a = 1};

// The tasks whose labels are 0 and 1.
std::vector<GlueTask> BinaryTasks() {
  const std::vector<std::string> digits = {"0", "1"};
  return {{"cola",
           "",
           "CoLA",
           "sentence",
           "",
           "label",
           {.count = 4, .text_a = 3, .label = 1},
           kTestSingle,
           digits,
           kMatthews},
          {"sst2",
           "sst-2",
           "SST-2",
           "sentence",
           "",
           "label",
           {.count = 2, .text_a = 0, .label = 1},
           kTestSingle,
           digits,
           kAccuracy},
          {"mrpc",
           "",
           "MRPC",
           "#1 String",
           "#2 String",
           "Quality",
           {.count = 5, .text_a = 3, .text_b = 4, .label = 0},
           {.count = 5, .text_a = 3, .text_b = 4},
           digits,
           kAccuracyAndF1},
          {"qqp",
           "",
           "QQP",
           "question1",
           "question2",
           "is_duplicate",
           {.count = 6, .text_a = 3, .text_b = 4, .label = 5},
           kTestPair,
           digits,
           kAccuracyAndF1},
          {"wnli", "", "WNLI", "sentence1", "sentence2", "label", kLabelledPair,
           kTestPair, digits, kAccuracy}};
}

std::vector<GlueTask> OtherTasks() {
  const std::vector<std::string> three = {"contradiction", "entailment",
                                          "neutral"};
  const std::vector<std::string> two = {"entailment", "not_entailment"};
  return {{"stsb",
           "sts-b",
           "STS-B",
           "sentence1",
           "sentence2",
           "score",
           {.count = 10, .text_a = 7, .text_b = 8, .label = kLastColumn},
           {.count = 9, .text_a = 7, .text_b = 8},
           {},
           kCorrelations},
          {"mnli",
           "",
           "MNLI",
           "sentence1",
           "sentence2",
           "gold_label",
           {.count = 12,
            .other_count = 16,
            .text_a = 8,
            .text_b = 9,
            .label = kLastColumn},
           {.count = 10, .text_a = 8, .text_b = 9},
           three,
           kAccuracy},
          {"qnli", "", "QNLI", "question", "sentence", "label", kLabelledPair,
           kTestPair, two, kAccuracy},
          {"rte", "", "RTE", "sentence1", "sentence2", "label", kLabelledPair,
           kTestPair, two, kAccuracy},
          {"ax", "", "AX", "sentence1", "sentence2", "label", kLabelledPair,
           kTestPair, three, kMatthews}};
}

}  // namespace

const char* GlueTask::main_metric() const {
  switch (metrics) {
    case GlueMetrics::kAccuracy:
      return "accuracy";
    case GlueMetrics::kAccuracyAndF1:
    case GlueMetrics::kCorrelations:
      return "combined";
    case GlueMetrics::kMatthews:
      return "matthews";
  }
  return "";
}

std::string GlueTask::ExpectedLabels() const {
  if (is_regression()) {
    return absl::StrCat("a number from ", kMinGlueScore, " to ", kMaxGlueScore);
  }
  return absl::StrCat(absl::StrJoin(labels.begin(), labels.end() - 1, ", "),
                      " or ", labels.back());
}

const std::vector<GlueTask>& GlueTasks() {
  static const auto* const tasks = [] {
    auto* all = new std::vector<GlueTask>(BinaryTasks());
    for (GlueTask& task : OtherTasks()) {
      all->push_back(std::move(task));
    }
    return all;
  }();
  return *tasks;
}

absl::StatusOr<const GlueTask*> FindGlueTask(absl::string_view name) {
  for (const GlueTask& task : GlueTasks()) {
    if (absl::EqualsIgnoreCase(name, task.name) ||
        (*task.other_name != '\0' &&
         absl::EqualsIgnoreCase(name, task.other_name))) {
      return &task;
    }
  }
  std::vector<absl::string_view> names;
  for (const GlueTask& task : GlueTasks()) {
    names.emplace_back(task.name);
  }
  return absl::NotFoundError(UnknownNameText(name, names));
}

bool ParseGlueScore(absl::string_view text, double* score) {
  return absl::SimpleAtod(text, score) && *score >= kMinGlueScore &&
         *score <= kMaxGlueScore;
}

bool IsGlueLabel(const GlueTask& task, absl::string_view label) {
  double score = 0;
  return task.is_regression()
             ? ParseGlueScore(label, &score)
             : std::find(task.labels.begin(), task.labels.end(), label) !=
                   task.labels.end();
}

}  // namespace etc
