#include "tasks/analysis/comparison_run.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "tasks/analysis/analysis_reader.h"
#include "tasks/analysis/comparison.h"
#include "tasks/analysis/comparison_html.h"

namespace etc {
namespace {

constexpr std::array kComparisonFiles = {"comparison.html", "comparison.json",
                                         "comparison.csv"};

bool RunsModels(const AttentionComparisonOptions& options) {
  return !options.each.data.empty() || !options.each.text.empty();
}

// The options of the analysis of input `i`.
AttentionAnalysisOptions OptionsOf(const AttentionComparisonOptions& options,
                                   size_t i) {
  AttentionAnalysisOptions each = options.each;
  each.checkpoint = options.inputs[i];
  each.output = absl::StrCat(options.each.output, "/", i + 1);
  return each;
}

absl::Status CheckComparisonOutput(const AttentionComparisonOptions& options) {
  if (options.each.output.empty()) {
    return InvalidArgument("--output should name a directory, but is empty");
  }
  for (const char* name : kComparisonFiles) {
    ETC_RETURN_IF_ERROR(CheckMayReplace(
        absl::StrCat(options.each.output, "/", name), options.each.overwrite));
  }
  ETC_RETURN_IF_ERROR(CheckWritableDirectory(options.each.output));
  for (size_t i = 0; RunsModels(options) && i < options.inputs.size(); ++i) {
    ETC_RETURN_IF_ERROR(CheckAnalysisOptions(OptionsOf(options, i)));
  }
  return absl::OkStatus();
}

absl::Status CheckModels(const AttentionComparisonOptions& options) {
  std::vector<ModelShape> shapes;
  std::string task;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const AnalysedModel model,
                         FindAnalysedModel(OptionsOf(options, i)));
    shapes.push_back(model.shape);
    task = i == 0 ? model.task : task;
    if (model.task != task) {
      return InvalidArgument(options.inputs[i], " is of the task ", model.task,
                             ", but ", options.inputs[0], " of ", task,
                             ": they read no data in common");
    }
  }
  return CheckComparable(shapes, options.inputs);
}

// Analyses all models, and writes the files of each when the last one is done.
absl::Status WriteAnalyses(const AttentionComparisonOptions& options) {
  ETC_RETURN_IF_ERROR(CheckModels(options));
  std::vector<AttentionAnalysis> analyses;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(AttentionAnalysis analysis,
                         RunAnalysis(OptionsOf(options, i)));
    analyses.push_back(std::move(analysis));
  }
  for (size_t i = 0; i < analyses.size(); ++i) {
    ETC_RETURN_IF_ERROR(WriteAnalysis(analyses[i], OptionsOf(options, i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AttentionAnalysis>> AnalysesOf(
    const AttentionComparisonOptions& options) {
  if (RunsModels(options)) {
    ETC_RETURN_IF_ERROR(WriteAnalyses(options));
  }
  std::vector<AttentionAnalysis> analyses;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    // Numbers of the file, so that a comparison of the files gives the same.
    ETC_ASSIGN_OR_RETURN(
        AttentionAnalysis analysis,
        ReadAnalysis(RunsModels(options) ? OptionsOf(options, i).output
                                         : options.inputs[i]));
    analyses.push_back(std::move(analysis));
  }
  ETC_RETURN_IF_ERROR(CheckComparable(analyses, options.inputs));
  return analyses;
}

}  // namespace

absl::StatusOr<std::vector<AttentionAnalysis>> CompareAttention(
    const AttentionComparisonOptions& options) {
  if (options.inputs.size() < 2) {
    return InvalidArgument("--compare should have two inputs or more, but has ",
                           options.inputs.size());
  }
  ETC_RETURN_IF_ERROR(CheckComparisonOutput(options));
  ETC_ASSIGN_OR_RETURN(std::vector<AttentionAnalysis> analyses,
                       AnalysesOf(options));
  ETC_RETURN_IF_ERROR(CreateDirectories(options.each.output));
  const std::array<std::string, kComparisonFiles.size()> contents = {
      ComparisonHtml(analyses), ComparisonJson(analyses),
      ComparisonCsv(analyses)};
  for (size_t i = 0; i < contents.size(); ++i) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(
        absl::StrCat(options.each.output, "/", kComparisonFiles[i]),
        contents[i]));
  }
  return analyses;
}

}  // namespace etc
