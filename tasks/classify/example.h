#ifndef ETC_TASKS_CLASSIFY_EXAMPLE_H_
#define ETC_TASKS_CLASSIFY_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/data/example.h"
#include "tasks/task_types.h"

namespace etc {

// One line of a data file: {"id": "7", "text": "...", "text_b": "...",
// "label": "yes"}.
struct ClassifyRecord {
  // Absent in the file: the number of the record in it.
  std::string id;
  std::string text;
  std::optional<std::string> text_b;
  // Absent in data to predict for.
  std::optional<std::string> label;
};

inline constexpr int32_t kClassifyGlobalToken = 1;
// The type of text_b with its [SEP].
inline constexpr int32_t kClassifyTextBType = 2;

// The object "classify" of a fine-tuning configuration: {"labels": ["yes",
// "no"]}.
struct ClassifyOptions {
  InputOptions input = {};
  // All that a record may be. At least two.
  std::vector<std::string> labels = {};
  // Ids of [CLS] and [SEP].
  int32_t cls = 101;
  int32_t separator = 102;
};

// A text, or two, as the model reads them:
//
//   long:    [CLS], pieces of text, [SEP], and pieces of text_b, [SEP]
//   global:  one token, which all long tokens belong to, so that it sees all of
//            them in every layer, under the hard g2l mask as well
//
// What does not fit is cut from the end of the longer text.
struct ClassifyExample : Example {
  // Index of the label, and the label; -1 and empty if the record has none.
  int64_t label = -1;
  std::string label_name;
  int64_t dropped_pieces = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_EXAMPLE_H_
