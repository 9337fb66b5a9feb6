#ifndef ETC_TASKS_SQUAD_EXAMPLE_H_
#define ETC_TASKS_SQUAD_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "tasks/data/example.h"
#include "tasks/inputs/text_input.h"
#include "tasks/squad/document.h"
#include "tasks/squad/metric.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/byte_range.h"

namespace etc {

// In 2.0 questions may have no answer.
enum class SquadVersion { k1, k2 };

// Treatment in training of a question that has several answers.
enum class SquadSeveralAnswers { kError, kFirst };

// The object "squad" of a fine-tuning configuration. Absent fields keep their
// default.
struct SquadOptions {
  // An input is as long as data.max_global_length of BERT and
  // data.max_long_length of ETC say; split_sentences makes the sentences that
  // ETC has global tokens for.
  InputOptions input = {};
  SquadVersion version = SquadVersion::k1;
  // Pieces from the beginning of a window to that of the next one.
  int64_t doc_stride = 128;
  // Pieces of the question that the model reads.
  int64_t max_query_length = 64;
  // Starts, ends and answers that are considered.
  int64_t n_best_size = 20;
  // Pieces of an answer.
  int64_t max_answer_length = 30;
  // The margin by which no answer must beat the best one, in version 2.0.
  // Absent: 0, but answers of predicted lines count as they stand there.
  std::optional<double> null_score_diff_threshold = std::nullopt;
  SquadSeveralAnswers several_answers = SquadSeveralAnswers::kError;
  TextMarks marks = {};
};

template <>
struct ConfigTable<SquadOptions> {
  using O = SquadOptions;
  static constexpr absl::string_view kVersions[] = {"1.1", "2.0"};
  static constexpr absl::string_view kSeveralAnswers[] = {"error", "first"};
  static constexpr auto kFields = std::make_tuple(
      Field("version", &O::version,
            "`\"2.0\"`: questions may have no answer "
            "(`version_2_with_negative`)",
            {.one_of = kVersions}),
      Field("doc_stride", &O::doc_stride,
            "pieces from the beginning of a window to that of the next one; "
            "answers at the borders of windows are lost unless it is below a "
            "window's pieces",
            ReadingCountFrom(1)),
      Field("max_query_length", &O::max_query_length,
            "pieces of the question that are read", CountFrom(0)),
      Field("n_best_size", &O::n_best_size,
            "starts, ends and answers that are considered",
            DecodingCountFrom(1)),
      Field("max_answer_length", &O::max_answer_length,
            "pieces of the longest answer", DecodingCountFrom(1)),
      Field("null_score_diff_threshold", &O::null_score_diff_threshold,
            "null odds above it mean no answer",
            {.decodes = true, .default_text = "`0`"}),
      Field("several_answers", &O::several_answers,
            "what training does with a question that has several answers: "
            "`\"first\"` takes the first",
            {.one_of = kSeveralAnswers}));
};

// ETC's global token for a piece of the question; sentences of the context
// have kSentenceOfTextToken.
inline constexpr int32_t kSquadQuestionToken = 3;

// Shared by the windows over a context.
struct SquadDocument {
  std::string question;
  // Pieces of the question that no window has.
  int64_t dropped_question_pieces = 0;
  std::string context;
  std::vector<ByteRange> words;
  // Empty if the words have none.
  std::vector<SquadPiece> pieces;
  int64_t num_windows = 1;
  SquadGold gold;
};

// A question and a window over its context (doc/squad.md 3):
//
//   [CLS] pieces of the question [SEP] pieces of the window [SEP]
//
// as WriteTexts has it, with two separators between the texts for RoBERTa, for
// ETC with global tokens for the whole text, each piece of the question and
// each sentence of the window. If these are too many, the last one stands for
// all further sentences. Positions are those of the text tokens, [CLS] being 0.
struct SquadExample : Example {
  std::shared_ptr<const SquadDocument> document;
  // Index in document->num_windows, from 0 on.
  int64_t window = 0;
  SquadPart part;
  // Pieces of the question that it has.
  int64_t question_length = 0;
  // Special pieces between question and window.
  int64_t num_separators = 1;
  // [part.length]: whether a piece has most context in this window.
  std::vector<bool> has_most_context;

  // Target, both included; (0, 0), [CLS], where the window does not have all of
  // the answer.
  SquadSpan answer = {.first = 0, .last = 0};

  // Position of the window's first piece.
  int64_t first_position() const {
    return 1 + question_length + num_separators;
  }
  // The piece of the document at `position`, or nothing.
  std::optional<int64_t> PieceAt(int64_t position) const;

  // The share of the document, and the flags.
  int64_t TaskBytes() const override;
};

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_EXAMPLE_H_
