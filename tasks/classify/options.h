#ifndef ETC_TASKS_CLASSIFY_OPTIONS_H_
#define ETC_TASKS_CLASSIFY_OPTIONS_H_

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "tasks/classify/record.h"
#include "tasks/inputs/text_input.h"
#include "tasks/task/benchmark.h"

namespace etc {

// Format of data files; kByName, which configurations have no name for: by the
// ends of their names.
enum class ClassifyFormat { kJson, kCsv, kTsv, kByName };

// The object "classify" of a configuration.
struct ClassifyOptions {
  InputOptions input = {};
  // Ids of [CLS] and [SEP].
  TextMarks marks = {};

  ClassifyFormat format = ClassifyFormat::kByName;
  // The character between the fields of a CSV file; absent: as its first line
  // "sep=;" says, or a comma.
  std::optional<char> delimiter = std::nullopt;
  // Names of columns or JSON fields, each once: of the texts, which are read
  // one after the other; of the second text of pairs (absent: "text_b", if
  // there is one; empty: no record has one); of the id (absent: "id", if there
  // is one); of the answer.
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
  // Least probability of a label that is predicted beside others. Absent: 0.5,
  // and labels of prediction files count as they stand there.
  std::optional<double> threshold = std::nullopt;
  // Numbers are learnt as (number - mean) / deviation. Absent: those of the
  // training data.
  std::optional<double> mean = std::nullopt;
  std::optional<double> deviation = std::nullopt;

  // True if every record should have the field of a second text.
  bool needs_text_b() const { return text_b.has_value() && !text_b->empty(); }
  // True if no record may have a second text.
  bool has_single_texts() const {
    return text_b.has_value() && text_b->empty();
  }
  // The fields of the second text and of the id that are read if they are
  // there; nothing: none, since another option names the default one.
  std::optional<std::string> text_b_or_default() const;
  std::optional<std::string> id_or_default() const;
};

template <>
struct ConfigTable<ClassifyOptions> {
  using O = ClassifyOptions;
  static void ReadDelimiter(JsonObjectReader& reader, O* options);
  static void ReadLabels(JsonObjectReader& reader, O* options);
  static void ReadClassWeights(JsonObjectReader& reader, O* options);

  static constexpr absl::string_view kFormats[] = {"json", "csv", "tsv"};
  static constexpr absl::string_view kTypes[] = {"one", "several", "number"};
  static constexpr absl::string_view kWeightings[] = {"balanced"};
  static constexpr auto kFields = std::make_tuple(
      Field("format", &O::format, "`\"csv\"`, `\"tsv\"` or `\"json\"`",
            {.one_of = kFormats,
             .reads_files = true,
             .default_text = "by the name"}),
      Field("delimiter", ReadDelimiter,
            "what stands between the fields of CSV: `\";\"`, `\"\\t\"`",
            {.reads_files = true,
             .default_text = "`\",\"`",
             .type_text = "text",
             .more_bounds = "one character"}),
      Field("text", &O::text, "field of the text, or a list of fields",
            {.reads_files = true, .more_bounds = "at least one, each once"}),
      Field("text_b", &O::text_b,
            "field of the second text of pairs; `\"\"`: no record has one",
            {.reads_files = true,
             .default_text = "`\"text_b\"`, if there is one"}),
      Field("id", &O::id, "field of the id",
            {.reads_files = true, .default_text = "`\"id\"`, if there is one"}),
      Field("label", &O::label, "field of the answer", {.reads_files = true}),
      Field("type", &O::type,
            "`\"one\"` label, `\"several\"`: any number of them, or a "
            "`\"number\"`",
            {.one_of = kTypes}),
      Field(
          "labels", ReadLabels, "all labels that a record may have",
          {.decides_outputs = true,
           .default_text = "those of the training data",
           .type_text = "list of texts",
           .more_bounds = "at least two, or one of `\"several\"`, each once"}),
      Field("label_separator", &O::label_separator,
            "what stands between several labels in one field",
            {.reads_files = true, .more_bounds = "not empty"}),
      Field("class_weights", ReadClassWeights,
            "factors of the loss by label: `{\"rare\": 5}`, or "
            "`\"balanced\"`: n / (C n_c) for n_c of n documents with one of C "
            "labels",
            {.one_of = kWeightings,
             .default_text = "1 each",
             .type_text = "object of numbers or text",
             .more_bounds = "or at least 0 each"}),
      Field("threshold", &O::threshold,
            "several: least probability of a label that is predicted",
            {.above = 0, .below = 1, .decodes = true, .default_text = "`0.5`"}),
      Field("mean", &O::mean,
            "numbers are learnt as (number - mean) / deviation",
            {.decides_outputs = true,
             .default_text = "that of the training data"}),
      Field("deviation", &O::deviation, "deviation of the numbers; see `mean`",
            {.above = 0,
             .decides_outputs = true,
             .default_text = "that of the training data"}));
};

}  // namespace etc

#endif  // ETC_TASKS_CLASSIFY_OPTIONS_H_
