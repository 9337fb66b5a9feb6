#include <algorithm>
#include <cstddef>

#include "absl/strings/str_join.h"
#include "tasks/classify/task.h"
#include "tasks/example_writer.h"
#include "tasks/invalid_argument.h"

namespace etc {
namespace {

// Cuts the longer of two texts, of equals the second, until both have at most
// `most` pieces. Returns how many were cut.
int64_t Truncate(int64_t most, std::vector<Token>* a, std::vector<Token>* b) {
  int64_t cut = 0;
  while (static_cast<int64_t>(a->size() + b->size()) > most) {
    (a->size() > b->size() ? a : b)->pop_back();
    ++cut;
  }
  return cut;
}

void AddText(const std::vector<Token>& pieces, int32_t separator, int32_t type,
             ClassifyExample* example) {
  for (const Token& piece : pieces) {
    example->long_token_ids.push_back(piece.id);
  }
  example->long_token_ids.push_back(separator);
  example->long_type_ids.resize(example->long_token_ids.size(), type);
}

}  // namespace

void Classify::ReadRecord(JsonObjectReader& reader, Record* record) {
  // "dev.jsonl: record 17"
  record->id = reader.where().substr(reader.where().rfind(' ') + 1);
  reader.Optional("id", &record->id);
  reader.Required("text", &record->text);
  reader.Optional("text_b", &record->text_b);
  reader.Optional("label", &record->label);
}

ExampleOr<ClassifyExample> Classify::MakeExamples(const Record& record,
                                                  const Context& context) {
  const auto& [options, tokenizer, where] = context;
  auto example = std::make_shared<ClassifyExample>();
  example->record_id = record.id;
  example->has_answer = record.label.has_value();
  if (record.label.has_value()) {
    const auto begin = options.labels.begin();
    const auto found = std::find(begin, options.labels.end(), *record.label);
    if (found == options.labels.end()) {
      return InvalidArgument(where, ".label should be one of ",
                             absl::StrJoin(options.labels, ", "), ", but is ",
                             *record.label);
    }
    example->label = found - begin;
    example->label_name = *record.label;
  }
  std::vector<Token> text = tokenizer.Encode(record.text);
  std::vector<Token> text_b;
  if (record.text_b.has_value()) {
    text_b = tokenizer.Encode(*record.text_b);
  }
  const int64_t special = record.text_b.has_value() ? 3 : 2;
  example->dropped_pieces =
      Truncate(options.input.max_long_length - special, &text, &text_b);
  example->long_token_ids = {options.cls};
  AddText(text, options.separator, kPlainLongType, &*example);
  if (record.text_b.has_value()) {
    AddText(text_b, options.separator, kClassifyTextBType, &*example);
  }
  example->global_token_ids = {kClassifyGlobalToken};
  const std::vector<int32_t> types = example->long_type_ids;
  const std::vector<int32_t> owners(types.size(), 0);
  SetTypesAndPattern(owners, options.input.pattern, &*example);
  example->long_type_ids = types;
  return example;
}

}  // namespace etc
