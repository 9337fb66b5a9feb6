#ifndef ETC_TASKS_ANALYSIS_COMPARISON_H_
#define ETC_TASKS_ANALYSIS_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tasks/analysis/attention_statistics.h"

namespace etc {

// Analyses of several models side by side (`realetc attention --compare`,
// doc/attention_analysis.md).

// The parts of a model that comparisons need to be equal.
struct ModelShape {
  bool is_bert = false;
  int64_t layers = 0;
  int64_t heads = 0;
};
ModelShape ShapeOf(const AttentionAnalysis& analysis);

// Checks that the heads of all models have counterparts in the first. `names`
// are those of files or checkpoints.
//   kInvalidArgument  one is BERT and one ETC; other numbers of layers, or of
//                     heads, whose divergence is between heads of one index
absl::Status CheckComparable(absl::Span<const ModelShape> shapes,
                             absl::Span<const std::string> names);

// The same of two analyses or more, with their files.
//   kInvalidArgument  also if one has divergences and one their square roots
absl::Status CheckComparable(absl::Span<const AttentionAnalysis> analyses,
                             absl::Span<const std::string> names);

// Sentences about what makes the numbers hard to compare: other data, another
// number of rows. Empty: nothing.
std::vector<std::string> ComparisonWarnings(
    absl::Span<const AttentionAnalysis> analyses);

// Names of the columns: the mode of residual attention if that tells them
// apart, with numbers ("2: sum") if not.
std::vector<std::string> ColumnNames(
    absl::Span<const AttentionAnalysis> analyses);

// A number of one layer in each analysis: the mean over heads of a median, or
// of a mean mass. NaN: it has no rows.
struct ComparedLayer {
  std::string name;  // "L-1", "L-1&0"
  std::vector<double> values;
};

// One quantity, from the bottom layer up.
struct ComparedMeasure {
  // "entropy", "entropy_normalised", "jsd", "l2l_mass", ...
  std::string id;
  std::vector<ComparedLayer> layers;
};

struct ComparedPopulation {
  std::string name;
  std::vector<ComparedMeasure> measures;
};

// The quantities of all populations; the analyses must be comparable.
std::vector<ComparedPopulation> Compare(
    absl::Span<const AttentionAnalysis> analyses);

// comparison.json: models, and each quantity with the differences from the
// first model.
std::string ComparisonJson(absl::Span<const AttentionAnalysis> analyses);

// comparison.csv: a line for each quantity, layer and model.
std::string ComparisonCsv(absl::Span<const AttentionAnalysis> analyses);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_COMPARISON_H_
