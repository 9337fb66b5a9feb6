#ifndef ETC_TASKS_DATA_EXAMPLE_H_
#define ETC_TASKS_DATA_EXAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attention/pattern.h"

namespace etc {

// One input of a model, without padding. The struct of a task derives from it
// and adds the targets and what its predictions need.
struct Example {
  virtual ~Example() = default;

  // How ids tell records apart.
  enum class IdKind {
    // Each occurs once in all files.
    kUnique,
    // The record has none: it is its number in its file.
    kNumber,
    // As kUnique, but a record may come again with the same input.
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
  // Whether the record has the answer: what training needs.
  bool has_answer = true;
  // Why training leaves the example out although nothing is wrong with its
  // record ("the answer is not in the input"); empty: it does not.
  std::string left_out;
  // What is wrong with the record for training alone, as the end of a message
  // that begins with its place (".answers should have one answer"); empty:
  // nothing. To training, the record is a bad one.
  std::string training_error;

  // About the memory that the task's own part takes, in bytes.
  virtual int64_t TaskBytes() const { return 1024; }

  int64_t long_length() const {
    return static_cast<int64_t>(long_token_ids.size());
  }
  int64_t global_length() const {
    return static_cast<int64_t>(global_token_ids.size());
  }
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_H_
