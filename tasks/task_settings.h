#ifndef ETC_TASKS_TASK_SETTINGS_H_
#define ETC_TASKS_TASK_SETTINGS_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attention/pattern_builders.h"
#include "base/json_reader.h"
#include "etc/config.h"
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

// The masks and relative ids of the model.
PatternOptions PatternOptionsOf(const EtcConfig& model);

// Notes the mistake "<field> should be at least 1, but is 0" in `reader`.
template <typename Number>
void CheckAtLeast(JsonObjectReader& reader, const std::string& field,
                  Number value, std::type_identity_t<Number> least) {
  if (!(value >= least)) {
    reader.Fail(field,
                absl::StrCat("should be at least ", least, ", but is ", value));
  }
}

// Copies the settings into a part of a task's options, if it has fields of
// their names, and so the option `official_compatibility`.
template <typename Part>
void CopySettings(const TaskSettings& settings, bool official_compatibility,
                  Part* part) {
  if constexpr (requires { part->max_long_length; }) {
    part->max_long_length = settings.max_long_length;
  }
  if constexpr (requires { part->max_global_length; }) {
    part->max_global_length = settings.max_global_length;
  }
  if constexpr (requires { part->tokenizer_kind; }) {
    part->tokenizer_kind = settings.tokenizer_kind;
  }
  if constexpr (requires { part->split_sentences; }) {
    part->split_sentences = settings.split_sentences;
  }
  if constexpr (requires { part->pattern; }) {
    part->pattern = PatternOptionsOf(settings.model);
  }
  if constexpr (requires { part->official_compatibility; }) {
    part->official_compatibility = official_compatibility;
  }
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_SETTINGS_H_
