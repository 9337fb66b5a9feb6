#include "tasks/tokens/options.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "tasks/tokens/task.h"

namespace etc {
namespace {

// A column of CoNLL; 0 if `may_miss`.
void ReadColumn(JsonObjectReader& reader, const std::string& field,
                bool may_miss, int64_t* column) {
  reader.Optional(field, column);
  constexpr int64_t kMost = 1000;
  if ((*column == 0 && !may_miss) || *column < -kMost || *column > kMost) {
    reader.Fail(field, absl::StrCat("should be a column, 1 for the first or -1 "
                                    "for the last one, but is ",
                                    *column));
  }
}

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

void ReadTokenLabels(JsonObjectReader& reader,
                     std::vector<std::string>* labels) {
  reader.Optional("labels", labels);
  const std::set<std::string> different(labels->begin(), labels->end());
  if (reader.Has("labels") &&
      (different.empty() || different.size() < labels->size() ||
       different.contains(""))) {
    reader.Fail("labels",
                "should name at least one label, each once, and none empty");
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

absl::Span<const OptionField> Tokens::OptionFields() const {
  static constexpr OptionField kFields[] = {
      {"format", "text", "by the name", "\"conll\" or \"json\"",
       "`\"conll\"` or `\"json\"`"},
      {"word_column", "whole number", "`1`", "not 0",
       "CoNLL: column of the words, from 1 on, or from the last one, -1, on"},
      {"label_column", "whole number", "`-1`", "not 0",
       "CoNLL: column of the labels"},
      {"document_column", "whole number", "none", "",
       "CoNLL: column of the document's id; without one `-DOCSTART-` begins a "
       "document, or, where a file has none, each sentence"},
      {"tags", "text", "`\"iob2\"`",
       "\"iob2\", \"conlleval\", \"strict_iob2\" or \"strict_iobes\"",
       "how labels of words are read: `\"iob2\"`, where `I-` without `B-` is "
       "an error, or as `\"conlleval\"` and seqeval do, which take it for a "
       "beginning: IOB1, IOBES; as seqeval's mode strict does: "
       "`\"strict_iob2\"`, `\"strict_iobes\"`"},
      {"labels", "list of texts", "those of the training data", "",
       "all labels that a span may have"}};
  return kFields;
}

void Tokens::ReadOptions(JsonObjectReader& reader, Options* options) const {
  ReadChoice(reader, "format",
             {{"conll", TokensFormat::kConll}, {"json", TokensFormat::kJson}},
             &options->format);
  ReadColumn(reader, "word_column", /*may_miss=*/false, &options->word_column);
  ReadColumn(reader, "label_column", /*may_miss=*/false,
             &options->label_column);
  ReadColumn(reader, "document_column", /*may_miss=*/true,
             &options->document_column);
  CheckColumnsDiffer(reader, *options);
  ReadChoice(reader, "tags",
             {{"iob2", TagReading::kIob2},
              {"conlleval", TagReading::kConlleval},
              {"strict_iob2", TagReading::kStrictIob2},
              {"strict_iobes", TagReading::kStrictIobes}},
             &options->tags);
  ReadTokenLabels(reader, &options->labels);
}

}  // namespace etc
