#include "tasks/squad/example.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "tasks/squad/task.h"
#include "tasks/text/sentence_splitter.h"

namespace etc {
namespace {

// True of a training record whose question has no answer.
bool IsUnanswered(const SquadRecord& record, const SquadOptions& options) {
  return !record.answers.has_value() || record.answers->empty() ||
         (options.version == SquadVersion::k2 &&
          record.is_impossible.value_or(false));
}

// The reason why training leaves out an answer that FindAnswerWords has not.
std::string WhyMissed(const std::string& context, const SquadAnswer& answer) {
  return HoldsSpaceOfWords(context, answer)
             ? "the answer holds white space, such as U+00A0, at which the "
               "official program does not split"
             : "the answer is not at its offset (answer_start counts "
               "characters, not bytes)";
}

// The answer that training is for, or why there is none.
struct Target {
  // True if there is nothing to train on: the question has no answer.
  bool is_null = false;
  // Pieces of the document.
  SquadSpan pieces;
  std::string left_out;
};

Target FindTarget(const SquadRecord& record, const SquadDocument& document,
                  const SquadWords& words, const Squad& squad) {
  Target target = {.is_null = IsUnanswered(record, squad.options())};
  if (document.pieces.empty()) {
    target.left_out = "the context has no text";
    return target;
  }
  if (target.is_null) {
    return target;
  }
  const SquadAnswer& answer = record.answers->front();
  const std::optional<SquadSpan> answer_words =
      FindAnswerWords(document.context, words, answer);
  if (!answer_words.has_value()) {
    target.left_out = WhyMissed(document.context, answer);
    return target;
  }
  target.pieces =
      squad.options().input.tokenizer_kind == TokenizerKind::kHuggingFace
          ? PiecesAtAnswer(document.context, words, *answer_words, answer,
                           document.pieces)
          : FindAnswerPieces(document.pieces, *answer_words, answer.text,
                             squad.tokenizer());
  if (target.pieces.last < target.pieces.first) {
    target.left_out = "the tokenizer leaves nothing of the answer";
  }
  return target;
}

// The pieces of the question that are read; counts the others in `dropped`.
std::vector<int32_t> QuestionIds(const std::string& question,
                                 const Squad& squad, int64_t* dropped) {
  std::vector<int32_t> ids;
  for (const Token& token : squad.tokenizer().Encode(question)) {
    if (static_cast<int64_t>(ids.size()) < squad.options().max_query_length) {
      ids.push_back(token.id);
    } else {
      ++*dropped;
    }
  }
  return ids;
}

// The sentence of each piece, from 0 on.
std::vector<int32_t> SentencesOf(const SquadDocument& document,
                                 const SentenceSplitter& split) {
  const std::vector<ByteRange> sentences = split(document.context);
  std::vector<int32_t> of_pieces;
  of_pieces.reserve(document.pieces.size());
  size_t sentence = 0;
  for (const SquadPiece& piece : document.pieces) {
    while (sentence + 1 < sentences.size() &&
           sentences[sentence + 1].begin <= piece.bytes.begin) {
      ++sentence;
    }
    of_pieces.push_back(static_cast<int32_t>(sentence));
  }
  return of_pieces;
}

// Numbers the sentences of a window from 0 on, as many as there is room for.
void NumberSentences(int64_t room, std::vector<int32_t>* sentences) {
  const auto last = static_cast<int32_t>(room - 1);
  int32_t number = -1;
  int32_t previous = -1;
  for (int32_t& sentence : *sentences) {
    if (number < last && sentence != previous) {
      ++number;
    }
    previous = sentence;
    sentence = number;
  }
}

// Writes the windows of a document one by one.
class WindowWriter {
 public:
  WindowWriter(std::shared_ptr<const SquadDocument> document,
               std::vector<int32_t> question, const SquadOptions& options)
      : document_(std::move(document)),
        question_{.ids = std::move(question)},
        options_(options) {
    if (options.input.has_long_tokens) {
      sentences_ = SentencesOf(*document_, options.input.split_sentences);
      for (size_t i = 0; i < question_.ids.size(); ++i) {
        question_.sentences.push_back(static_cast<int32_t>(i));
      }
    }
  }

  // The input of a window.
  void Write(SquadPart part, SquadExample* example) const {
    example->document = document_;
    example->part = part;
    example->question_length = static_cast<int64_t>(question_.ids.size());
    example->num_separators = NumMarksBetween(options_.marks);
    TextPieces window;
    const auto first = document_->pieces.begin() + part.begin;
    for (auto piece = first; piece < first + part.length; ++piece) {
      window.ids.push_back(piece->id);
    }
    if (options_.input.has_long_tokens) {
      const auto sentence = sentences_.begin() + part.begin;
      window.sentences.assign(sentence, sentence + part.length);
      NumberSentences(
          RoomForSentences(options_.input) - example->question_length,
          &window.sentences);
    }
    WriteTexts(question_, window, options_.marks, options_.input, example);
    if (options_.input.has_long_tokens) {
      std::fill_n(example->global_token_ids.begin() + 1,
                  example->question_length, kSquadQuestionToken);
    }
  }

 private:
  const std::shared_ptr<const SquadDocument> document_;
  TextPieces question_;
  // Sentence of each piece of the document; empty for BERT.
  std::vector<int32_t> sentences_;
  const SquadOptions& options_;
};

// Returns the span of the answer in the window, or [CLS].
SquadSpan AnswerInWindow(const Target& target, const SquadExample& example) {
  const SquadPart& part = example.part;
  const SquadSpan& pieces = target.pieces;
  if (target.is_null || pieces.last < pieces.first ||
      pieces.first < part.begin || pieces.last >= part.begin + part.length) {
    return {.first = 0, .last = 0};
  }
  const int64_t shift = example.first_position() - part.begin;
  return {.first = pieces.first + shift, .last = pieces.last + shift};
}

}  // namespace

std::string Squad::TrainingError(const Record& record) const {
  const bool is_version_2 = options().version == SquadVersion::k2;
  if (is_version_2 && !record.is_impossible.has_value()) {
    return ".is_impossible is missing, which version 2.0 needs for training";
  }
  if (!record.answers.has_value() || (is_version_2 && *record.is_impossible)) {
    return "";
  }
  const size_t count = record.answers->size();
  if (count == 0 ||
      (count > 1 && options().several_answers == SquadSeveralAnswers::kError)) {
    return absl::StrCat(
        ".answers should have one answer for training, but has ", count,
        count > 0 ? "; squad.several_answers \"first\" takes the first"
        : is_version_2
            ? " although is_impossible is false"
            : "; squad.version \"2.0\" is for questions without answer");
  }
  const SquadAnswer& answer = record.answers->front();
  if (answer.text.empty()) {
    return ".answers[0].text should not be empty";
  }
  if (!answer.start.has_value()) {
    return ".answers[0].answer_start is missing";
  }
  return *answer.start < 0
             ? absl::StrCat(
                   ".answers[0].answer_start should be at least 0, but is ",
                   *answer.start)
             : "";
}

std::string Squad::WhyLeftOut(const Record& record) const {
  if (IsUnanswered(record, options())) {
    return "";
  }
  const SquadAnswer& answer = record.answers->front();
  return FindAnswerWords(record.context, FindSquadWords(record.context), answer)
                 .has_value()
             ? ""
             : WhyMissed(record.context, answer);
}

std::optional<SquadGold> Squad::GoldOf(const Record& record) const {
  if (!record.answers.has_value()) {
    return std::nullopt;
  }
  SquadGold gold = {.has_is_impossible = record.is_impossible.has_value()};
  gold.answers.reserve(record.answers->size());
  for (const SquadAnswer& answer : *record.answers) {
    gold.answers.push_back(answer.text);
  }
  return gold;
}

std::optional<int64_t> SquadExample::PieceAt(int64_t position) const {
  const int64_t at = position - first_position();
  return at >= 0 && at < part.length ? std::optional(part.begin + at)
                                     : std::nullopt;
}

int64_t SquadExample::TaskBytes() const {
  const auto bytes = [](const auto& values) {
    return static_cast<int64_t>(values.size() * sizeof(values[0]));
  };
  const int64_t shared = bytes(document->context) + bytes(document->words) +
                         bytes(document->pieces) + bytes(document->question);
  return Example::TaskBytes() + shared / document->num_windows + part.length;
}

Squad::ExamplesOr Squad::MakeExamples(Record record,
                                      const std::string& where) const {
  auto document = std::make_shared<SquadDocument>();
  document->context = std::move(record.context);
  document->question = record.question;
  document->gold = GoldOf(record).value_or(SquadGold());
  SquadWords words = FindSquadWords(document->context);
  document->pieces =
      SplitSquadWords(document->context, words.words, tokenizer());
  std::vector<int32_t> question =
      QuestionIds(record.question, *this, &document->dropped_question_pieces);
  const int64_t room = RoomForPieces(options().input, options().marks,
                                     /*two_texts=*/true) -
                       static_cast<int64_t>(question.size());
  if (room < 1) {
    return InvalidArgument(
        where, ": an input has no room for ",
        Counted(static_cast<int64_t>(question.size()), "piece"),
        " of the question and one of the context");
  }
  const auto num_pieces = static_cast<int64_t>(document->pieces.size());
  std::vector<SquadPart> parts =
      SquadWindows(num_pieces, room, options().doc_stride);
  const std::vector<int32_t> best = WindowsOfMostContext(parts, num_pieces);
  if (parts.empty()) {
    parts.emplace_back();
  }
  document->num_windows = static_cast<int64_t>(parts.size());
  const Target target = FindTarget(record, *document, words, *this);
  const std::string training_error = TrainingError(record);
  document->words = std::move(words.words);

  const WindowWriter writer(document, std::move(question), options());
  std::vector<std::shared_ptr<SquadExample>> examples;
  examples.reserve(parts.size());
  for (size_t w = 0; w < parts.size(); ++w) {
    auto example = std::make_shared<SquadExample>();
    example->record_id = record.id;
    example->window = static_cast<int64_t>(w);
    example->has_answer = record.answers.has_value();
    example->left_out = target.left_out;
    example->training_error = training_error;
    writer.Write(parts[w], &*example);
    example->answer = AnswerInWindow(target, *example);
    for (int64_t i = 0; i < parts[w].length; ++i) {
      example->has_most_context.push_back(
          best[static_cast<size_t>(parts[w].begin + i)] ==
          static_cast<int32_t>(w));
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace etc
