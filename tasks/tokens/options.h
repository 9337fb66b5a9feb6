#ifndef ETC_TASKS_TOKENS_OPTIONS_H_
#define ETC_TASKS_TOKENS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"
#include "tasks/tokens/tags.h"

namespace etc {

// Format of data files; kByName: by the ends of their names.
enum class TokensFormat { kByName, kJson, kConll };

// The object "tokens" of a configuration.
struct TokensOptions {
  InputOptions input = {};
  // Ids of [CLS] and [SEP].
  TextMarks marks = {};

  TokensFormat format = TokensFormat::kByName;
  // Columns of CoNLL, from 1 on, or from -1 on from the last one to the left;
  // 0: there is none.
  int64_t word_column = 1;
  int64_t label_column = -1;
  int64_t document_column = 0;
  TagReading tags = TagReading::kIob2;
  // Labels that a span may have, each once; empty: not known yet.
  std::vector<std::string> labels = {};

  // Classes of a word: 0 outside of spans, 1 + 2 i at the beginning of a span
  // with label i, 2 + 2 i in the rest of it. Those of one label while the
  // labels are not known.
  int64_t num_classes() const {
    return labels.empty() ? 3 : 1 + 2 * static_cast<int64_t>(labels.size());
  }
};

inline constexpr int64_t kOutsideClass = 0;
inline constexpr int64_t BeginClass(int64_t label) { return 1 + 2 * label; }
inline constexpr int64_t InsideClass(int64_t label) { return 2 + 2 * label; }
inline constexpr int64_t LabelOfClass(int64_t class_of_word) {
  return (class_of_word - 1) / 2;
}
inline constexpr bool IsInsideClass(int64_t class_of_word) {
  return class_of_word > 0 && class_of_word % 2 == 0;
}

// "O", "B-PER" or "I-PER".
std::string TagOfClass(int64_t class_of_word, const TokensOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_OPTIONS_H_
