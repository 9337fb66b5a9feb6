#ifndef ETC_TASKS_TOKENS_OPTIONS_H_
#define ETC_TASKS_TOKENS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"
#include "tasks/tokens/tags.h"

namespace etc {

// Format of data files; kByName, which configurations have no name for: by the
// ends of their names.
enum class TokensFormat { kConll, kJson, kByName };

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

template <>
struct ConfigTable<TokensOptions> {
  using O = TokensOptions;
  static void ReadLabels(JsonObjectReader& reader, TokensOptions* options);

  static constexpr absl::string_view kFormats[] = {"conll", "json"};
  static constexpr absl::string_view kTags[] = {"iob2", "conlleval",
                                                "strict_iob2", "strict_iobes"};
  static constexpr auto kFields = std::make_tuple(
      Field("format", &O::format, "`\"conll\"` or `\"json\"`",
            {.one_of = kFormats,
             .reads_files = true,
             .default_text = "by the name"}),
      Field("word_column", &O::word_column,
            "CoNLL: column of the words, from 1 on, or from the last one, -1, "
            "on",
            {.least = -1000,
             .most = 1000,
             .reads_files = true,
             .more_bounds = "not 0"}),
      Field("label_column", &O::label_column, "CoNLL: column of the labels",
            {.least = -1000,
             .most = 1000,
             .reads_files = true,
             .more_bounds = "not 0"}),
      Field("document_column", &O::document_column,
            "CoNLL: column of the document's id; 0: there is none, and "
            "`-DOCSTART-` begins a document, or, where a file has none, each "
            "sentence",
            {.least = -1000, .most = 1000, .reads_files = true}),
      Field("tags", &O::tags,
            "how labels of words are read: `\"iob2\"`, where `I-` without `B-` "
            "is an error, or as `\"conlleval\"` and seqeval do, which take it "
            "for a beginning: IOB1, IOBES; as seqeval's mode strict does: "
            "`\"strict_iob2\"`, `\"strict_iobes\"`",
            {.one_of = kTags, .reads_files = true}),
      Field("labels", ReadLabels, "all labels that a span may have",
            {.decides_outputs = true,
             .default_text = "those of the training data",
             .type_text = "list of texts",
             .more_bounds = "at least one, each once"}));
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
// The tag of each class; none while the labels are not known.
std::vector<std::string> TagsOfClasses(const TokensOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_OPTIONS_H_
