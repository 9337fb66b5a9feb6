#ifndef ETC_ETC_WEIGHTS_OUTPUT_LABELS_H_
#define ETC_ETC_WEIGHTS_OUTPUT_LABELS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace etc {

// A match between the outputs of a classifier in a file and the labels of a
// task.
struct OutputMatch {
  // The file's output for each label of the task. Empty: no match, and the
  // classifier must not be taken.
  std::vector<int64_t> rows;
  // Says how they were matched, or why not, for people to read. Empty if there
  // is nothing to say: the same labels in the same order.
  std::string message;
  // True if the order of the outputs is only likely, which deserves a warning.
  bool is_guess = false;
};

// Matches `labels`, those of the task in order of its outputs, with those of a
// classifier of `num_outputs` outputs in a file, `theirs`, which are empty
// where they are not known. By name, first exactly, then without regard to the
// case of ASCII letters; outputs of the file that the task does not have are
// left out. Where one side has no names but indices ("0", "1", ..., or
// unknown), in order, as long as there are equally many.
OutputMatch MatchOutputs(const std::vector<std::string>& labels,
                         const std::vector<std::string>& theirs,
                         int64_t num_outputs);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_OUTPUT_LABELS_H_
