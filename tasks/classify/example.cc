#include "tasks/classify/example.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "tasks/classify/records.h"
#include "tasks/classify/task.h"

namespace etc {
namespace {

// Texts that are read one after the other, in pieces.
struct Pieces {
  std::vector<Token> tokens;
  // Sentence of each piece, from 0 on without gaps.
  std::vector<int32_t> sentences;

  void Add(std::vector<Token> sentence) {
    if (sentence.empty()) {
      return;
    }
    const int32_t number = sentences.empty() ? 0 : sentences.back() + 1;
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
    sentences.resize(tokens.size(), number);
  }
};

Pieces PiecesOf(const std::vector<std::string>& texts,
                const Classify& classify) {
  const InputOptions& input = classify.options().input;
  Pieces pieces;
  for (const std::string& text : texts) {
    if (!input.has_long_tokens) {
      pieces.Add(classify.tokenizer().Encode(text));
      continue;
    }
    for (const auto& [begin, end] : input.split_sentences(text)) {
      pieces.Add(classify.tokenizer().Encode(absl::string_view(text).substr(
          static_cast<size_t>(begin), static_cast<size_t>(end - begin))));
    }
  }
  return pieces;
}

// Returns `pieces`, some of which may have been cut, with at most `*room`
// sentences, and takes these from `*room`.
TextPieces WithinRoom(Pieces pieces, int64_t* room, ClassifyExample* example) {
  TextPieces text;
  text.ids.reserve(pieces.tokens.size());
  for (const Token& token : pieces.tokens) {
    text.ids.push_back(token.id);
  }
  std::vector<int32_t>& sentences = pieces.sentences;
  sentences.resize(pieces.tokens.size());
  const int64_t all = sentences.empty() ? 0 : sentences.back() + 1;
  const int64_t kept = std::min(all, *room);
  sentences.erase(std::lower_bound(sentences.begin(), sentences.end(), kept),
                  sentences.end());
  text.sentences = std::move(sentences);
  *room -= kept;
  example->dropped_sentences += all - kept;
  return text;
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
  auto example = std::make_shared<ClassifyExample>();
  example->record_id = std::move(record.id);
  example->id_kind =
      record.has_id ? Example::IdKind::kUnique : Example::IdKind::kNumber;
  example->has_answer = record.answer.has_value();
  if (record.answer.has_value()) {
    example->answer = *record.answer;
    if (!options().labels.empty()) {
      ETC_ASSIGN_OR_RETURN(example->labels,
                           IndicesOfLabels(*record.answer, options(), where));
    }
  }
  const bool is_pair = record.text_b.has_value();
  Pieces a = PiecesOf(record.texts, *this);
  Pieces b = is_pair ? PiecesOf({*record.text_b}, *this) : Pieces();
  example->dropped_pieces = CutLongerText(
      RoomForPieces(options().input, is_pair), &a.tokens, &b.tokens);
  int64_t room = RoomForSentences(options().input);
  if (!options().input.has_long_tokens) {
    a.sentences.clear();
    b.sentences.clear();
  }
  const TextPieces text = WithinRoom(std::move(a), &room, example.get());
  std::optional<TextPieces> text_b;
  if (is_pair) {
    text_b = WithinRoom(std::move(b), &room, example.get());
  }
  WriteTexts(text, text_b, options().marks, options().input, example.get());
  return ExamplesOr({std::move(example)});
}

}  // namespace etc
