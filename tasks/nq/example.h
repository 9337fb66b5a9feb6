#ifndef ETC_TASKS_NQ_EXAMPLE_H_
#define ETC_TASKS_NQ_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "tasks/data/example.h"
#include "tasks/nq/pieces.h"
#include "tasks/nq/raw.h"
#include "tasks/task/benchmark.h"

namespace etc {

enum class NqAnswerType { kNull = 0, kYes = 1, kNo = 2, kLong = 3, kShort = 4 };
inline constexpr int64_t kNqNumAnswerTypes = 5;

// The four ends of answers that long tokens have logits for (doc/nq.md 4).
enum class NqChannel { kShortStart = 0, kShortEnd = 1, kLongStart, kLongEnd };
inline constexpr int64_t kNqNumChannels = 4;

// Tokens of the long input besides question and document: [CLS] and two [SEP].
inline constexpr int64_t kNqNumSpecialTokens = 3;

// Method of turning the ends of answers into spans: see SelectNqSpans.
enum class NqSpanSelection { kJoint, kDisjoint, kJointExhaustive };

// The object "nq" of a fine-tuning configuration: README.md has its fields.
// Absent ones keep their default.
struct NqOptions {
  // Long tokens: at least max_question_length + 3 + stride; global ones: at
  // least max_question_length + 2.
  InputOptions input = {};
  // Pieces.
  int64_t max_question_length = 32;
  // Pieces from the beginning of a window to that of the next one.
  int64_t stride = 2048;
  // Train to say the long answer as the short one where there is none.
  bool predict_long_as_short = false;
  // False: a global token for each candidate; true: one for each run of this
  // many long tokens (doc/nq.md 2.6).
  bool fixed_blocks = false;
  int64_t fixed_block_size = 27;
  // The shares of the windows without answer that training keeps, for documents
  // with an answer and without; 1 and more keep all (doc/nq.md 2.8). The choice
  // follows from `unknown_seed`, the document and the window.
  double include_unknown_rate = 1.0;
  double include_unknown_rate_for_unanswerable = 4.0;
  int64_t unknown_seed = 0;
  // True if only [CLS] and pieces of the document take part in the softmax over
  // long tokens; else question, [SEP] and padding do, too.
  bool mask_long_output = true;
  NqSpanSelection span_selection = NqSpanSelection::kJoint;
  // True if the answer type can replace or take away the short answer.
  bool consider_answer_type = true;
  // Tokens.
  int64_t max_short_answer_length = 32;
  // The official program's targets and answers where they go wrong: see
  // README.md.
  bool official_compatibility = false;
  NqTokens tokens = {};
};

template <>
struct ConfigTable<NqOptions> {
  using O = NqOptions;
  static constexpr absl::string_view kSelections[] = {"joint", "disjoint",
                                                      "joint_exhaustive"};
  static constexpr auto kFields = std::make_tuple(
      Field("stride", &O::stride, "pieces from window to window",
            ReadingCountFrom(1)),
      Field("question_len", &O::max_question_length,
            "pieces of the question that are read", CountFrom(0)),
      Field("include_unknown_rate", &O::include_unknown_rate,
            "share of the windows without answer that training keeps, of pages "
            "with an answer",
            {.least = 0}),
      Field("include_unknown_rate_for_unanswerable",
            &O::include_unknown_rate_for_unanswerable,
            "the same of pages without answer",
            {.least = 0, .default_text = "4 times `include_unknown_rate`"}),
      Field("include_unknown_seed", &O::unknown_seed,
            "seed of the choice of windows without answer"),
      Field("predict_la_when_no_sa", &O::predict_long_as_short,
            "train to say the long answer as the short one where there is "
            "none"),
      Field("fixed_blocks", &O::fixed_blocks,
            "ablation: a global token for every `fixed_block_size` long ones "
            "in place of question and candidates"),
      Field("fixed_block_size", &O::fixed_block_size,
            "long tokens of such a block", CountFrom(1)),
      Field("mask_long_output", &O::mask_long_output,
            "softmax over `[CLS]` and the document only",
            {.default_text = "`true`; officially `false`"}),
      Field("span_selection_method", &O::span_selection,
            "`\"joint\"`, `\"disjoint\"` or `\"joint_exhaustive\"`: how the "
            "best answer is found",
            {.one_of = kSelections, .decodes = true}),
      Field("consider_answer_type", &O::consider_answer_type,
            "whether yes, no and \"long alone\" replace the short answer",
            {.decodes = true}),
      Field("max_short_answer_len", &O::max_short_answer_length,
            "tokens of the longest short answer", DecodingCountFrom(1)),
      Field("official_compatibility", &O::official_compatibility,
            "reproduce the official program, its mistakes included (the task's "
            "page lists them)"));
};

// Shared by the windows of a document: its record without the tokens.
struct NqDocument {
  int64_t example_id = 0;
  std::string question;
  // Pieces of the question that no window has.
  int64_t dropped_question_pieces = 0;
  std::vector<NqCandidate> candidates;
  std::vector<NqAnnotation> annotations;
  // Pieces in top-level candidates, and windows over them; at least one.
  int64_t num_pieces = 0;
  int64_t num_windows = 1;
};

// Both ends of a target are long tokens, both included; (0, 0), the long [CLS],
// for none. Officially one of them can be 0 alone.
struct NqTarget {
  int32_t start = 0;
  int32_t end = 0;

  bool is_null() const { return start == 0 && end == 0; }
  friend bool operator==(const NqTarget&, const NqTarget&) = default;
};

// One window over a document as the model reads it (doc/nq.md 2.3 to 2.5):
//
//   long:    [CLS], pieces of the question, [SEP],
//            pieces of the document, [SEP]
//   global:  [CLS], one token for each piece of the question, one for its
//            [SEP], one for each top-level candidate in the window, and one
//            that the last [SEP] belongs to
//
// When the global input is full, further text belongs to its last token.
struct NqExample : Example {
  std::shared_ptr<const NqDocument> document;
  // Index in document->num_windows, from 0 on.
  int64_t window = 0;
  // Pieces of the question that it has.
  int64_t question_length = 0;
  // [L]: the token of the document that a long token is a piece of, or -1.
  std::vector<int32_t> long_tokens;
  // [G]: the candidate that a global token stands for, or -1; with fixed blocks
  // all -1.
  std::vector<int32_t> global_candidates;

  // Targets, if there is an annotation: of the first one (doc/nq.md 2.4).
  NqTarget short_answer;
  NqTarget long_answer;
  NqAnswerType answer_type = NqAnswerType::kNull;

  // The share of the document, and the tokens.
  int64_t TaskBytes() const override;
};

}  // namespace etc

#endif  // ETC_TASKS_NQ_EXAMPLE_H_
