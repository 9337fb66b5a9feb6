#ifndef ETC_TASKS_GLUE_BENCHMARK_H_
#define ETC_TASKS_GLUE_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace etc {

// The nine tasks of GLUE and its diagnostic set (doc/glue.md 1, 2.1, 3).

// Metrics of a data set, the main one first (doc/glue.md 7).
enum class GlueMetrics {
  kAccuracy,       // accuracy
  kAccuracyAndF1,  // combined (their mean), accuracy, f1
  kCorrelations,   // combined (their mean), pearson, spearman
  kMatthews,       // matthews, accuracy
};

// Indices of a row's columns, from 0; -1 for none.
struct GlueColumns {
  // Number of columns of a row; a second number that is as good, or 0.
  int64_t count = 0;
  int64_t other_count = 0;
  int64_t text_a = -1;
  int64_t text_b = -1;
  // kLastColumn for the last one.
  int64_t label = -1;
};
inline constexpr int64_t kLastColumn = -2;

struct GlueTask {
  // Name in configurations, "sst2", and another spelling, "sst-2"; empty: none.
  const char* name;
  const char* other_name;
  // Name in texts for people, "SST-2".
  const char* title;
  // Names of columns. text_b is empty for tasks with a single text.
  const char* text_a;
  const char* text_b;
  const char* label;
  // The columns where the header has other names: of files with labels, and of
  // test files, which have none. A count of 0: there are no such files.
  GlueColumns labelled;
  GlueColumns test;
  // Labels by class; empty for STS-B, which has scores.
  std::vector<std::string> labels;
  GlueMetrics metrics;

  bool is_regression() const { return labels.empty(); }
  // "combined", "accuracy" or "matthews".
  const char* main_metric() const;
  // "0 or 1", "a number from 0 to 5".
  std::string ExpectedLabels() const;
};

// The scores of STS-B.
inline constexpr double kMinGlueScore = 0;
inline constexpr double kMaxGlueScore = 5;

// All. They live as long as the program.
const std::vector<GlueTask>& GlueTasks();

// The task of that name, in any case of letters.
//   kNotFound  there is none; the message lists them
absl::StatusOr<const GlueTask*> FindGlueTask(absl::string_view name);

// A score of STS-B: a number from 0 to 5, as people and files write it.
bool ParseGlueScore(absl::string_view text, double* score);

// Returns true if `label` is one of the labels of `task`, or a score.
bool IsGlueLabel(const GlueTask& task, absl::string_view label);

}  // namespace etc

#endif  // ETC_TASKS_GLUE_BENCHMARK_H_
