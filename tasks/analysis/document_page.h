#ifndef ETC_TASKS_ANALYSIS_DOCUMENT_PAGE_H_
#define ETC_TASKS_ANALYSIS_DOCUMENT_PAGE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/run_task.h"

namespace etc {

// One record on one page: its tokens, who sees whom, and where each token's
// attention goes (`realetc document`).
struct DocumentPageOptions {
  // Directory that training wrote: of a checkpoint, or of a grid, run or seed,
  // whose best one is taken.
  std::string checkpoint;
  // Official file, or a pattern of the names of several.
  std::string data;
  // Index of the record, and of the example among those that it becomes.
  int64_t record = 0;
  int64_t example = 0;
  // File of the page.
  std::string output;
  // Replaces `output` if it is there.
  bool overwrite = false;
  // Indices, from 0. Empty heads: all. Empty layers: all, or as many as 24 MB
  // of probabilities have room for, spread evenly with the last one; of a
  // single layer that has no room, the first heads, one at least.
  std::vector<int64_t> layers;
  std::vector<int64_t> heads;
  // As in EvaluateTaskOptions.
  std::string residual_attention;
  std::string device = "auto";
  // `message` is called before the model runs: with the checkpoint that was
  // taken, unless that was named itself, with the device, and last with the
  // size of the page. `stop` ends the opening of the data, and the model's pass
  // at the next layer.
  TaskCallbacks callbacks;
  // Called before each layer and at the end, with the layers that have run and
  // those of all passes. May be empty.
  std::function<void(int64_t done, int64_t all)> progress;
};

// The contents of a page that was written.
struct DocumentPage {
  std::vector<int64_t> layers;
  std::vector<int64_t> heads;
  int64_t bytes = 0;
};

// Writes the page, whole or not at all. Of each token, layer and head it has
// the 16 largest probabilities, in units of 1 / 65535, and the sum of the rest.
//   kNotFound           there is no such checkpoint or data file
//   kAlreadyExists      `output` is there, and not `overwrite`
//   kOutOfRange         there is no such record, example, layer or head
//   kCancelled          `callbacks.stop` became true
//   kInvalidArgument    the data have no records; a mistake in a file
//   kResourceExhausted  out of memory
absl::StatusOr<DocumentPage> WriteDocumentPage(
    const DocumentPageOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_DOCUMENT_PAGE_H_
