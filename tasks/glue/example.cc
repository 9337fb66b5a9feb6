#include "tasks/glue/example.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/id_places.h"
#include "tasks/glue/task.h"

namespace etc {
namespace {

TextPieces PiecesOf(const std::vector<Token>& tokens) {
  TextPieces pieces;
  pieces.ids.reserve(tokens.size());
  for (const Token& token : tokens) {
    pieces.ids.push_back(token.id);
  }
  return pieces;
}

}  // namespace

void Glue::ReadRecord(JsonObjectReader& reader, Record* record) const {
  // Records of files have both; others are of this task, and called by their
  // number: "record 17".
  const GlueTask* const own = options().task;
  std::string task = own == nullptr ? "" : own->name;
  if (own == nullptr || reader.Has("task")) {
    reader.Required("task", &task);
  }
  record->id = NumberOfPlace(reader.where());
  reader.Optional("id", &record->id);
  reader.Required("text", &record->text);
  reader.Optional("text_b", &record->text_b);
  GlueGold& gold = record->gold;
  reader.Optional("set", &gold.set);
  std::optional<std::string> label;
  reader.Optional("label", &label);
  const auto found = FindGlueTask(task);
  if (!found.ok()) {
    reader.Fail("task", found.status().message());
    return;
  }
  gold.task = *found;
  if (!label.has_value()) {
    return;
  }
  if (!IsGlueLabel(*gold.task, *label)) {
    reader.Fail(gold.task->label,
                absl::StrCat("should be ", gold.task->ExpectedLabels(),
                             ", but is ", QuotedName(*label)));
    return;
  }
  if (gold.task->is_regression()) {
    ParseGlueScore(*label, &gold.score);
  }
  gold.label = *std::move(label);
  record->has_label = true;
}

absl::Status Glue::CheckRecord(const Record& record,
                               const std::string& where) const {
  const GlueTask& own = *options().task;
  if (record.gold.task != &own) {
    return InvalidArgument(where, " should be of ", own.title, ", but is of ",
                           record.gold.task->title);
  }
  const bool has_pairs = *own.text_b != '\0';
  if (record.text_b.has_value() == has_pairs) {
    return absl::OkStatus();
  }
  return has_pairs ? InvalidArgument(where, ".text_b is missing: ", own.title,
                                     " is about two texts")
                   : InvalidArgument(where,
                                     ".text_b should not be given: ", own.title,
                                     " is about one text");
}

Glue::ExamplesOr Glue::MakeExamples(Record record,
                                    const std::string& where) const {
  if (record.gold.task == nullptr) {
    record.gold.task = options().task;
  }
  ETC_RETURN_IF_ERROR(CheckRecord(record, where));
  const std::vector<std::string>& labels = options().labels;
  auto example = std::make_shared<GlueExample>();
  example->record_id = std::move(record.id);
  example->has_answer = record.has_label;
  example->gold = std::move(record.gold);
  if (record.has_label && !options().task->is_regression()) {
    example->label =
        std::find(labels.begin(), labels.end(), example->gold.label) -
        labels.begin();
  }
  std::vector<Token> a = tokenizer().Encode(record.text);
  std::vector<Token> b;
  if (record.text_b.has_value()) {
    b = tokenizer().Encode(*record.text_b);
  }
  const bool is_pair = !b.empty();
  example->dropped_pieces = CutLongerText(
      RoomForPieces(options().input, options().marks, is_pair), &a, &b);
  WriteTexts(PiecesOf(a),
             is_pair ? std::optional<TextPieces>(PiecesOf(b)) : std::nullopt,
             options().marks, options().input, &*example);
  return ExamplesOr({std::move(example)});
}

}  // namespace etc
