#include "tasks/tokens/options.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "tasks/tokens/task.h"

namespace etc {
namespace {

// Notes a mistake if two of the columns have the same number.
void CheckColumnsDiffer(JsonObjectReader& reader,
                        const TokensOptions& options) {
  const std::pair<const char*, int64_t> columns[] = {
      {"word_column", options.word_column},
      {"label_column", options.label_column},
      {"document_column", options.document_column}};
  for (const auto& [field, column] : columns) {
    for (const auto& [other, column_of_other] : columns) {
      if (other == field) {
        break;
      }
      if (column == column_of_other) {
        reader.Fail(field, absl::StrCat("should be another column than ", other,
                                        ", but both are ", column));
      }
    }
  }
}

}  // namespace

std::string TagOfClass(int64_t class_of_word, const TokensOptions& options) {
  if (class_of_word == kOutsideClass) {
    return "O";
  }
  return absl::StrCat(
      IsInsideClass(class_of_word) ? "I-" : "B-",
      options.labels.at(static_cast<size_t>(LabelOfClass(class_of_word))));
}

std::vector<std::string> TagsOfClasses(const TokensOptions& options) {
  std::vector<std::string> tags;
  if (!options.labels.empty()) {
    for (int64_t i = 0; i < options.num_classes(); ++i) {
      tags.push_back(TagOfClass(i, options));
    }
  }
  return tags;
}

void ConfigTable<TokensOptions>::ReadLabels(JsonObjectReader& reader,
                                            TokensOptions* options) {
  const std::vector<std::string>& labels = options->labels;
  reader.OneOrMore("labels", &options->labels);
  const std::set<std::string> different(labels.begin(), labels.end());
  if (reader.Has("labels") &&
      (different.empty() || different.size() < labels.size() ||
       different.contains(""))) {
    reader.Fail("labels",
                "should name at least one label, each once, and none empty");
  }
}

void Tokens::CheckOptions(JsonObjectReader& reader, Options* options) const {
  for (const auto& [field, column] :
       {std::pair("word_column", options->word_column),
        std::pair("label_column", options->label_column)}) {
    if (column == 0) {
      reader.Fail(field,
                  "should be a column, 1 for the first or -1 for the last one, "
                  "but is 0");
    }
  }
  CheckColumnsDiffer(reader, *options);
}

}  // namespace etc
