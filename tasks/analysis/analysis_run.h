#ifndef ETC_TASKS_ANALYSIS_ANALYSIS_RUN_H_
#define ETC_TASKS_ANALYSIS_ANALYSIS_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/analysis/attention_statistics.h"
#include "tasks/analysis/comparison.h"
#include "tasks/run_task.h"

namespace etc {

// Entropy and divergence of a model's attention over a data set
// (`realetc attention`, doc/attention_analysis.md).
struct AttentionAnalysisOptions {
  // Weights. For `data` a directory that training wrote: of a checkpoint, or of
  // a grid, run or seed, whose best one is taken. For `text` of any origin
  // (LoadEncoder).
  std::string checkpoint;
  // Exactly one is given: an official file of the checkpoint's task, or a
  // pattern of the names of several; a file of plain text.
  std::string data;
  std::string text;
  // A text is a line; or with true all lines up to one without text.
  bool paragraphs = false;
  // Directory of attention.html, attention.json, the CSV files of
  // tasks/analysis/analysis_files.h and of AnalysisPictures; it may be missing.
  std::string output;
  // Replaces those files if they are there.
  bool overwrite = false;
  // Examples at most, and rows of each stream of an example; 0: all. They are
  // drawn by the seed.
  int64_t max_examples = 0;
  int64_t max_rows = 0;
  uint64_t seed = 1;
  // The square root of each divergence instead of it.
  bool jsd_distance = false;
  // Colours by the normalised entropy.
  bool normalised_colours = false;
  // As in EvaluateTaskOptions.
  std::string residual_attention;
  std::string device = "auto";
  // `message` is called with the weights that were taken and the device.
  TaskCallbacks callbacks;
  // Called after each batch with the records or texts done, and all that are to
  // be. May be empty.
  std::function<void(int64_t done, int64_t all)> progress;
};

// The model that an analysis would run, and the task of its checkpoint; empty
// of plain text.
struct AnalysedModel {
  ModelShape shape;
  std::string task;
};

// Finds the model before it is run, without warnings and without reading its
// weights.
//   kNotFound, kInvalidArgument  as AnalyseAttention
absl::StatusOr<AnalysedModel> FindAnalysedModel(
    const AttentionAnalysisOptions& options);

// Checks the options, and that the files may be written, as AnalyseAttention
// does before all else.
//   kAlreadyExists, kInvalidArgument  as AnalyseAttention
absl::Status CheckAnalysisOptions(const AttentionAnalysisOptions& options);

// AnalyseAttention with options that are checked, and without its files.
absl::StatusOr<AttentionAnalysis> RunAnalysis(
    const AttentionAnalysisOptions& options);

// Writes the files of an analysis, each whole or not at all.
absl::Status WriteAnalysis(const AttentionAnalysis& analysis,
                           const AttentionAnalysisOptions& options);

// Analyses, and writes the files, each whole or not at all.
//   kNotFound           there is no such checkpoint, or file
//   kAlreadyExists      a file is there, and not `overwrite`
//   kInvalidArgument    there are no records or texts; a mistake in a file;
//                       neither or both of `data` and `text`
//   kCancelled          `callbacks.stop` became true
//   kInternal           errors of AttentionPass::Add
//   kResourceExhausted  out of memory
absl::StatusOr<AttentionAnalysis> AnalyseAttention(
    const AttentionAnalysisOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_ANALYSIS_RUN_H_
