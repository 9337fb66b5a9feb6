#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/gzip_file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/data/record_source.h"
#include "tasks/squad/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

using nlohmann::json;

// Calls visit(element, where) for each object in the list `field` of `object`.
template <typename Visit>
absl::Status ForEachObject(const json& object, const std::string& where,
                           const std::string& field, Visit visit) {
  JsonObjectReader reader(object, where);
  const json* const list = reader.Raw(field, /*required=*/true);
  if (list != nullptr && !list->is_array()) {
    reader.Fail(field, "should be a list of objects");
  }
  ETC_RETURN_IF_ERROR(reader.status());
  for (size_t i = 0; i < list->size(); ++i) {
    ETC_RETURN_IF_ERROR(
        visit((*list)[i], absl::StrCat(reader.Where(field), "[", i, "]")));
  }
  return absl::OkStatus();
}

// The questions of a paragraph.
absl::Status AddQuestions(const json& paragraph, const std::string& where,
                          std::vector<FileRecord>* records) {
  JsonObjectReader reader(paragraph, where);
  std::string context;
  reader.Required("context", &context);
  ETC_RETURN_IF_ERROR(reader.status());
  const auto shared = std::make_shared<const std::string>(
      absl::StrCat("\"context\":", JsonText(json(context))));
  return ForEachObject(
      paragraph, where, "qas",
      [&](const json& question, const std::string& place) -> absl::Status {
        if (!question.is_object()) {
          return absl::InvalidArgumentError(
              absl::StrCat(place, " should be an object"));
        }
        json fields = question;
        fields.erase("context");
        records->push_back(
            {.json = JsonText(fields), .where = place, .shared = shared});
        return absl::OkStatus();
      });
}

absl::StatusOr<SquadAnswer> ReadSquadAnswer(const json& answer,
                                            const std::string& where) {
  return ReadObject<SquadAnswer>(
      answer, where, [](JsonObjectReader& reader, SquadAnswer* read) {
        reader.Required("text", &read->text);
        reader.Optional("answer_start", &read->start);
      });
}

// Reads the fields of a record that scores need.
void ReadIdAndAnswers(JsonObjectReader& reader, SquadRecord* record) {
  reader.Raw("id", /*required=*/true);
  reader.NameOrNumber("id", &record->id);
  if (const json* answers = reader.Raw("answers", /*required=*/false)) {
    reader.Assign(ReadList<SquadAnswer>(*answers, reader.Where("answers"),
                                        "objects", ReadSquadAnswer),
                  &record->answers.emplace());
  }
  if (reader.Has("is_impossible")) {
    reader.Required("is_impossible", &record->is_impossible.emplace());
  }
}

absl::StatusOr<json> ReadSquadFile(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const std::string text, ReadUnpackedFile(path));
  absl::StatusOr<json> file = ParseJson(text, path);
  const absl::string_view line =
      absl::string_view(text).substr(0, text.find('\n'));
  if (!file.ok()) {
    const absl::StatusOr<json> first = ParseJson(line, path);
    if (first.ok() && first->is_object() && !first->contains("data")) {
      return InvalidArgument(
          path,
          " should be one JSON object, as SQuAD's files are, but has one on "
          "each line (`realetc predict --data -` reads lines)");
    }
  }
  return file;
}

}  // namespace

absl::StatusOr<std::vector<FileRecord>> Squad::ReadFile(
    const std::string& path, const RecordLimits& /*limits*/) const {
  ETC_ASSIGN_OR_RETURN(const json file, ReadSquadFile(path));
  std::vector<FileRecord> records;
  ETC_RETURN_IF_ERROR(ForEachObject(
      file, path, "data", [&](const json& article, const std::string& where) {
        return ForEachObject(
            article, where, "paragraphs",
            [&](const json& paragraph, const std::string& place) {
              return AddQuestions(paragraph, place, &records);
            });
      }));
  return records;
}

void Squad::ReadRecord(JsonObjectReader& reader, Record* record) const {
  ReadIdAndAnswers(reader, record);
  reader.Required("question", &record->question);
  reader.Required("context", &record->context);
}

absl::StatusOr<std::pair<std::string, std::optional<SquadGold>>>
Squad::ParseGold(const std::string& text, const std::string& where,
                 ScoringRules /*rules*/) const {
  ETC_ASSIGN_OR_RETURN(Record record,
                       ParseObject<Record>(text, where, ReadIdAndAnswers));
  std::optional<Gold> gold = GoldOf(record);
  return std::pair(std::move(record.id), std::move(gold));
}

}  // namespace etc
