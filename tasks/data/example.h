#ifndef ETC_TASKS_DATA_EXAMPLE_H_
#define ETC_TASKS_DATA_EXAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attention/pattern.h"

namespace etc {

// Text of a record that its example lacks because the input was full.
struct LostText {
  // The largest of the task's counts of it, and their unit: 102184 "pieces". 0
  // of a task that does not count.
  int64_t count = 0;
  std::string unit;
};

// Text and answers that an example lacks, and why.
struct ExampleNotes {
  // The reason why training leaves the example out although its record is
  // correct ("the answer is not in the input"); empty: it is used.
  std::string left_out;
  // True if it lacks some of the record's text, because the input was full.
  bool is_truncated = false;
  LostText lost_text;
  // The reason why the record has an answer that none of its examples holds;
  // empty: one does. Only the first example of the record says so.
  std::string lost_answer;
};

// One input of a model, without padding. The struct of a task derives from it
// and adds the targets and the data for predictions.
struct Example : ExampleNotes {
  virtual ~Example() = default;

  // Meaning of ids.
  enum class IdKind {
    // Each occurs once in all files.
    kUnique,
    // The record has none: it is its number in its file.
    kNumber,
    // Like kUnique, but a record may be repeated with the same input.
    kOfText,
  };

  // The id of the record that it was made from.
  std::string record_id;
  IdKind id_kind = IdKind::kUnique;
  // [L] and [G]
  std::vector<int32_t> long_token_ids;
  std::vector<int32_t> long_type_ids;
  std::vector<int32_t> global_token_ids;
  std::vector<int32_t> global_type_ids;
  AttentionPattern pattern;
  // True if the record has the answer, which training needs.
  bool has_answer = true;
  // An error of the record for training alone, as the end of a message that
  // begins with its place (".answers should have one answer"); empty: none. To
  // training, the record is a bad one.
  std::string training_error;

  // About the memory that the task's own part takes, in bytes.
  virtual int64_t TaskBytes() const { return 1024; }

  // Tokens that the model computes.
  virtual int64_t num_tokens() const { return long_length() + global_length(); }

  int64_t long_length() const {
    return static_cast<int64_t>(long_token_ids.size());
  }
  int64_t global_length() const {
    return static_cast<int64_t>(global_token_ids.size());
  }
};

// The kind of the global tokens that have an id, for people ("candidate").
struct GlobalTokenName {
  std::string name;
  int32_t id = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_H_
