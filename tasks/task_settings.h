#ifndef ETC_TASKS_TASK_SETTINGS_H_
#define ETC_TASKS_TASK_SETTINGS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "tasks/data/hold_out.h"
#include "tasks/task_types.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"
#include "tasks/train/config.h"

namespace etc {

// What a configuration says to a task beside the object named as the task is.
struct TaskSettings {
  EtcConfig model;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // For tasks whose texts are not split into sentences yet.
  SentenceSplitter split_sentences = SplitSentences;
};

// Those of a configuration, with SplitSentences.
TaskSettings TaskSettingsOf(const FinetuneConfig& config);

// The least sizes of the model's tables for a task's ids.
struct TableSizes {
  // Of the token table: more than the largest id of a token that stands for no
  // text, and how messages call these tokens ("the global tokens 1 to 5").
  int64_t tokens = 0;
  const char* token_names = "";
  // Of the table of types (segments).
  int64_t types = 0;
};

// Whether the tables of `model` have a row for every id. `pieces` is the size
// of the vocabulary, 0 where there is none yet; `source` starts each message.
//   kInvalidArgument  they do not
absl::Status CheckTables(const EtcConfig& model, const TableSizes& needed,
                         int64_t pieces, const std::string& source);

// Tokens that an example of a task cannot do without, and what they are for
// ("[CLS] and two [SEP]"); 0 where any number will do.
struct NeededLengths {
  int64_t long_tokens = 0;
  const char* long_use = "";
  int64_t global_tokens = 0;
  const char* global_use = "";
};

// Whether `input` has room for those; `source` starts each message.
//   kInvalidArgument  it has not
absl::Status CheckLengths(const InputOptions& input,
                          const NeededLengths& needed,
                          const std::string& source);

// Which records of data.train are held out, and how long a record may be.
HoldOutOptions HoldOutOptionsOf(const DataConfig& data);
RecordLimits RecordLimitsOf(const DataConfig& data);

// The lengths, the tokenizer, and the masks and relative ids of the model.
InputOptions InputOptionsOf(const TaskSettings& settings);

// Notes the mistake "<field> should be at least 1, but is 0" in `reader`.
template <typename Number>
void CheckAtLeast(JsonObjectReader& reader, const std::string& field,
                  Number value, std::type_identity_t<Number> least) {
  if (!(value >= least)) {
    reader.Fail(field,
                absl::StrCat("should be at least ", least, ", but is ", value));
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_SETTINGS_H_
