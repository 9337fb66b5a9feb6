#ifndef ETC_TASKS_CLASSIFY_OPTIONS_H_
#define ETC_TASKS_CLASSIFY_OPTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasks/classify/record.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"

namespace etc {

// Format of data files; kByName: by the ends of their names.
enum class ClassifyFormat { kByName, kJson, kCsv, kTsv };

// The object "classify" of a configuration.
struct ClassifyOptions {
  InputOptions input = {};
  // Ids of [CLS] and [SEP].
  TextMarks marks = {};

  ClassifyFormat format = ClassifyFormat::kByName;
  // The character between the fields of a CSV file; absent: a comma.
  std::optional<char> delimiter = std::nullopt;
  // Names of columns or JSON fields, each once: of the texts, which are read
  // one after the other; of the second text of pairs (absent: "text_b", if
  // there is one); of the id (absent: "id", if there is one); of the answer.
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

  // The fields of the second text and of the id that are read if they are
  // there; nothing: none, since another option names the default one.
  std::optional<std::string> text_b_or_default() const;
  std::optional<std::string> id_or_default() const;
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_OPTIONS_H_
