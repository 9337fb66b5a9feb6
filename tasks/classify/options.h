#ifndef ETC_TASKS_CLASSIFY_OPTIONS_H_
#define ETC_TASKS_CLASSIFY_OPTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/json_reader.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/config/config.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {

// Kind of answer: one of several labels, any of them, or a number.
enum class ClassifyType { kOne, kSeveral, kNumber };

// Format of data files; kByName: by the ends of their names.
enum class ClassifyFormat { kByName, kJson, kCsv, kTsv };

// The object "classify" of a configuration.
struct ClassifyOptions {
  InputOptions input = {};
  SentenceSplitter split_sentences = SplitSentences;
  // Ids of [CLS] and [SEP].
  TextMarks marks = {};

  ClassifyFormat format = ClassifyFormat::kByName;
  // The character between the fields of a CSV file; absent: a comma.
  std::optional<char> delimiter = std::nullopt;
  // Names of columns or JSON fields: of the texts, which are read one after the
  // other; of the second text of pairs (absent: "text_b", if there is one); of
  // the id (absent: "id", if there is one); of the answer.
  std::vector<std::string> text = {"text"};
  std::optional<std::string> text_b = std::nullopt;
  std::optional<std::string> id = std::nullopt;
  std::string label = "label";

  ClassifyType type = ClassifyType::kOne;
  // Labels that a document may have, each once; empty: not known yet.
  std::vector<std::string> labels = {};
  // Stands between the labels of a document where they are one string.
  std::string label_separator = ";";
  // Factor of the loss of a document, by its label; 1 for others.
  std::map<std::string, double> class_weights = {};
  // True if these are to be larger for labels of fewer documents.
  bool balances_classes = false;
  // Least probability of a label that is predicted beside others.
  double threshold = 0.5;
  // Numbers are learnt as (number - mean) / deviation. Absent: those of the
  // training data.
  std::optional<double> mean = std::nullopt;
  std::optional<double> deviation = std::nullopt;

  std::string text_b_or_default() const { return text_b.value_or("text_b"); }
  std::string id_or_default() const { return id.value_or("id"); }
};

// Reads them; mistakes are noted in the reader.
void ReadClassifyOptions(JsonObjectReader& reader, ClassifyOptions* options);

// Adds to `json`, which `options` were read from, what it does not say and the
// training data do: the labels, sorted; weights n / (C n_c) of the labels for
// "balanced", with n_c of n documents having label c of C; mean and standard
// deviation of numbers. Reads all files of `data` once, so that mistakes in
// them are seen before the training, and keeps nothing of them.
//   kInvalidArgument  a mistake in a record (none if `data.on_bad_record` is
//                     "skip"), such as a label in dev that training does not
//                     have; fewer than two labels; more than half as many
//                     labels as documents, which is most likely another column
absl::Status CompleteClassifyOptions(const ClassifyOptions& options,
                                     const DataConfig& data,
                                     nlohmann::json* json);

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_OPTIONS_H_
