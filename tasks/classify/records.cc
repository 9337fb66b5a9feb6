#include "tasks/classify/records.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/gzip_file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/classify/table.h"
#include "tasks/classify/task.h"
#include "tasks/data/id_places.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

using nlohmann::json;

// The number of a row of a table without ids, from 0 on. No column has such a
// name.
constexpr char kRowField[] = "\nrow";

absl::StatusOr<ClassifyFormat> FormatOf(const std::string& path,
                                        const ClassifyOptions& options) {
  if (options.format != ClassifyFormat::kByName) {
    return options.format;
  }
  absl::string_view name = path;
  absl::ConsumeSuffix(&name, ".gz");
  for (const auto& [ending, format] :
       {std::pair(".csv", ClassifyFormat::kCsv),
        std::pair(".tsv", ClassifyFormat::kTsv),
        std::pair(".json", ClassifyFormat::kJson),
        std::pair(".jsonl", ClassifyFormat::kJson)}) {
    if (absl::EndsWithIgnoreCase(name, ending)) {
      return format;
    }
  }
  return InvalidArgument(
      path,
      " should end in .csv, .tsv, .jsonl or .json, or in one of them and .gz; "
      "or classify.format should say what it is");
}

// The columns of a table that are read, by the field of the record.
absl::StatusOr<std::map<std::string, size_t>> ColumnsOf(
    const TableReader& table, const ClassifyOptions& options,
    ClassifyFileUse use) {
  std::map<std::string, bool> needed;
  for (const std::string& text : options.text) {
    needed[text] = true;
  }
  if (const auto text_b = options.text_b_or_default()) {
    needed[*text_b] = options.needs_text_b();
  }
  if (const auto id = options.id_or_default()) {
    needed[*id] = options.id.has_value();
  }
  needed[options.label] = use == ClassifyFileUse::kTraining;
  std::map<std::string, size_t> columns;
  for (const auto& [name, is_needed] : needed) {
    if (const std::optional<size_t> column = table.Find(name)) {
      columns[name] = *column;
    } else if (is_needed) {
      return table.MissingColumn(name);
    }
  }
  return columns;
}

absl::StatusOr<std::vector<FileRecord>> ReadTable(
    const std::string& path, TableFormat format, const ClassifyOptions& options,
    ClassifyFileUse use) {
  ETC_ASSIGN_OR_RETURN(const std::string text,
                       ReadUnpackedFile(path, kAnyBytes));
  ETC_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(text, format, path,
                                                            options.delimiter));
  ETC_ASSIGN_OR_RETURN(const auto columns, ColumnsOf(table, options, use));
  const std::optional<std::string> text_b = options.text_b_or_default();
  const std::optional<std::string> id = options.id_or_default();
  std::vector<FileRecord> records;
  while (true) {
    ETC_ASSIGN_OR_RETURN(const auto row, table.Next());
    if (!row.has_value()) {
      return records;
    }
    json record = json::object();
    for (const auto& [name, column] : columns) {
      record[name] = (*row)[column];
    }
    if (!id.has_value() || !columns.contains(*id)) {
      record[kRowField] = absl::StrCat(records.size());
    }
    // A table has no other way to say that there is no second text.
    if (text_b.has_value() && columns.contains(*text_b) &&
        (*row)[columns.at(*text_b)].empty()) {
      record[*text_b] = nullptr;
    }
    records.push_back({.json = JsonText(record), .where = table.Where()});
  }
}

void ReadId(JsonObjectReader& reader, const std::string& field, bool required,
            ClassifyRecord* record) {
  record->has_id = reader.Raw(field, required) != nullptr;
  reader.Scalar(field, &record->id);
}

void ReadOne(JsonObjectReader& reader, const ClassifyOptions& options,
             const json& value, ClassifyRecord* record) {
  const std::optional<std::string> label = ScalarText(value);
  if (!label.has_value()) {
    reader.Fail(options.label,
                absl::StrCat("should be a label, but is no string",
                             value.is_number() ? kRoundedNumberHint : ""));
  } else if (!IsBlank(*label)) {
    record->answer = {.type = ClassifyType::kOne, .labels = {*label}};
  }
}

void ReadSeveral(JsonObjectReader& reader, const ClassifyOptions& options,
                 const json& value, ClassifyRecord* record) {
  std::vector<std::string> labels;
  if (value.is_array()) {
    for (const json& element : value) {
      labels.emplace_back(StripWhiteSpace(ScalarText(element).value_or("")));
      if (labels.back().empty()) {
        reader.Fail(
            options.label,
            absl::StrCat("should be a list of labels",
                         element.is_number() ? kRoundedNumberHint : ""));
      }
    }
  } else if (const std::optional<std::string> list = ScalarText(value)) {
    for (const absl::string_view label :
         absl::StrSplit(*list, options.label_separator)) {
      labels.emplace_back(StripWhiteSpace(label));
    }
    std::erase(labels, "");
  } else {
    reader.Fail(options.label, "should be a list of labels, or a string");
  }
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  record->answer = {.type = ClassifyType::kSeveral,
                    .labels = std::move(labels)};
}

void ReadNumber(JsonObjectReader& reader, const ClassifyOptions& options,
                const json& value, ClassifyRecord* record) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (value.is_string() && IsBlank(text)) {
    return;
  }
  double number = value.is_number() ? value.get<double>() : 0;
  if ((!value.is_number() && !absl::SimpleAtod(text, &number)) ||
      !std::isfinite(number)) {
    reader.Fail(options.label,
                absl::StrCat("should be a number, but is ",
                             value.is_string()    ? QuotedName(text)
                             : value.is_boolean() ? QuotedName(JsonText(value))
                                                  : value.type_name()));
    return;
  }
  record->answer = {.type = ClassifyType::kNumber, .number = number};
}

void ReadAnswer(JsonObjectReader& reader, const ClassifyOptions& options,
                ClassifyRecord* record) {
  const json* value = reader.Given(options.label);
  if (value == nullptr) {
    return;
  }
  switch (options.type) {
    case ClassifyType::kOne:
      return ReadOne(reader, options, *value, record);
    case ClassifyType::kSeveral:
      return ReadSeveral(reader, options, *value, record);
    case ClassifyType::kNumber:
      return ReadNumber(reader, options, *value, record);
  }
}

void ReadTexts(JsonObjectReader& reader, const ClassifyOptions& options,
               ClassifyRecord* record) {
  for (const std::string& field : options.text) {
    std::vector<std::string> texts;
    const json* value = reader.Raw(field, /*required=*/true);
    // Null is an empty text, as pandas writes missing values.
    if (value != nullptr && !value->is_null()) {
      reader.OneOrMore(field, &texts);
    }
    absl::c_move(texts, std::back_inserter(record->texts));
  }
  if (const auto text_b = options.text_b_or_default()) {
    reader.Raw(*text_b, /*required=*/options.needs_text_b());
    reader.Optional(*text_b, &record->text_b);
  }
  CheckClassifyTexts(reader, options, *record);
}

}  // namespace

void CheckClassifyTexts(JsonObjectReader& reader,
                        const ClassifyOptions& options,
                        const ClassifyRecord& record) {
  if (absl::c_all_of(record.texts, IsBlank)) {
    reader.Fail(absl::StrJoin(options.text, " and "),
                "should have a text, but has none");
  }
  if (options.has_single_texts() && !IsBlank(record.text_b.value_or(""))) {
    reader.Fail("text_b",
                "should be absent: classify.text_b is \"\", as no document of "
                "the training has a second text");
  }
}

absl::StatusOr<std::vector<FileRecord>> ReadClassifyFile(
    const std::string& path, const ClassifyOptions& options,
    ClassifyFileUse use, const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const ClassifyFormat format, FormatOf(path, options));
  return format == ClassifyFormat::kJson ? ReadJsonRecords(path, limits)
         : format == ClassifyFormat::kCsv
             ? ReadTable(path, TableFormat::kCsv, options, use)
             : ReadTable(path, TableFormat::kTsv, options, use);
}

absl::StatusOr<std::vector<FileRecord>> Classify::ReadFile(
    const std::string& path, const RecordLimits& limits) const {
  return ReadClassifyFile(path, options(), ClassifyFileUse::kAny, limits);
}

void Classify::ReadRecord(JsonObjectReader& reader, Record* record) const {
  record->id = NumberOfPlace(reader.where());
  reader.Optional(kRowField, &record->id);
  if (const auto field = options().id_or_default()) {
    ReadId(reader, *field, /*required=*/options().id.has_value(), record);
  }
  ReadTexts(reader, options(), record);
  ReadAnswer(reader, options(), record);
}

absl::StatusOr<std::vector<int64_t>> IndicesOfLabels(
    const ClassifyAnswer& answer, const ClassifyOptions& options,
    const std::string& where) {
  const std::vector<std::string>& labels = options.labels;
  std::vector<int64_t> indices;
  for (const std::string& label : answer.labels) {
    const auto found = std::find(labels.begin(), labels.end(), label);
    if (found == labels.end()) {
      return InvalidArgument(PlaceOfField(where, options.label),
                             " should be one of ", JoinedNames(labels),
                             ", but is ", QuotedName(label));
    }
    indices.push_back(found - labels.begin());
  }
  return indices;
}

}  // namespace etc
