#ifndef ETC_TASKS_CLASSIFY_EXAMPLE_H_
#define ETC_TASKS_CLASSIFY_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attention/pattern_builders.h"
#include "tasks/data/example.h"
#include "tasks/text/tokenizer.h"

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

// Other fields are ignored. `where` starts each message and ends with the
// number of the record.
//   kInvalidArgument  not JSON, no text, a field of a wrong type
absl::StatusOr<ClassifyRecord> ParseClassifyRecord(absl::string_view json,
                                                   const std::string& where);

// The global token, and the types of tokens.
inline constexpr int32_t kClassifyGlobalToken = 1;
inline constexpr int32_t kClassifyGlobalType = 0;
inline constexpr int32_t kClassifyTextType = 1;   // and [CLS]
inline constexpr int32_t kClassifyTextBType = 2;  // with its [SEP]

struct ClassifyExampleOptions {
  // At least 3.
  int64_t max_long_length = 4096;
  // All that a record may be. At least two.
  std::vector<std::string> labels = {};
  // Ids of [CLS] and [SEP].
  int32_t cls = 101;
  int32_t separator = 102;
  PatternOptions pattern = {};
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

//   kInvalidArgument  a label that is none of `options.labels`
absl::StatusOr<std::shared_ptr<const ClassifyExample>> MakeClassifyExample(
    const ClassifyRecord& record, const Tokenizer& tokenizer,
    const ClassifyExampleOptions& options, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_EXAMPLE_H_
