#include "tasks/classify/example.h"

#include <utility>

#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/classify/records.h"
#include "tasks/classify/task.h"

namespace etc {
namespace {

SplitText SplitTexts(const std::vector<std::string>& texts,
                     const Classify& classify) {
  SplitText split;
  for (const std::string& text : texts) {
    AppendText(text, classify.tokenizer(), classify.options().input, &split);
  }
  return split;
}

}  // namespace

absl::Status Classify::CheckRecord(const Record& record,
                                   const std::string& where) const {
  return record.answer.has_value() && !options().labels.empty()
             ? IndicesOfLabels(*record.answer, options(), where).status()
             : absl::OkStatus();
}

Classify::ExamplesOr Classify::MakeExamples(Record record,
                                            const std::string& where) const {
  // Structs have not been through the reader.
  const auto no_fields = nlohmann::json::object();
  JsonObjectReader mistakes(no_fields, where);
  CheckClassifyTexts(mistakes, options(), record);
  ETC_RETURN_IF_ERROR(mistakes.Finish());
  auto example = std::make_shared<ClassifyExample>();
  example->record_id = std::move(record.id);
  example->has_answer = record.answer.has_value();
  if (record.answer.has_value()) {
    example->answer = *record.answer;
    if (!options().labels.empty()) {
      ETC_ASSIGN_OR_RETURN(example->labels,
                           IndicesOfLabels(*record.answer, options(), where));
    }
  }
  const bool is_pair = record.text_b.has_value();
  SplitText a = SplitTexts(record.texts, *this);
  SplitText b = is_pair ? SplitTexts({*record.text_b}, *this) : SplitText();
  if (a.tokens.empty() && b.tokens.empty()) {
    example->left_out = "the tokenizer leaves nothing of the text";
  }
  example->dropped_pieces =
      CutLongerText(RoomForPieces(options().input, options().marks, is_pair),
                    &a.tokens, &b.tokens);
  int64_t room = RoomForSentences(options().input);
  const TextPieces text = WithinRoom(a, &room, &example->dropped_sentences);
  std::optional<TextPieces> text_b;
  if (is_pair) {
    text_b = WithinRoom(b, &room, &example->dropped_sentences);
  }
  WriteTexts(text, text_b, options().marks, options().input, example.get());
  return ExamplesOr({std::move(example)});
}

}  // namespace etc
