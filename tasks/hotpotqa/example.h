#ifndef ETC_TASKS_HOTPOTQA_EXAMPLE_H_
#define ETC_TASKS_HOTPOTQA_EXAMPLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/fields.h"
#include "tasks/data/example.h"
#include "tasks/hotpotqa/answer_spans.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Ids of the tokens that stand for no text (doc/hotpotqa.md 2.3).
struct HotpotqaTokens {
  int32_t cls = 101;  // in both inputs
  // Global tokens.
  int32_t sentence = 1;  // and titles
  int32_t question = 3;
  int32_t paragraph = 5;
};
// 101, 3 and 5 with BERT's vocabulary (the first is where the vocabulary has
// [CLS], or what a tokenizer.json has for it), 40, 41 and 43 with ETC's
// SentencePiece model.
HotpotqaTokens HotpotqaTokensOf(TokenizerKind kind, const Tokenizer& tokenizer);

// Type ids of long tokens; those of global tokens are all 0.
inline constexpr int32_t kHotpotqaSentenceType = 1;  // and [CLS]
inline constexpr int32_t kHotpotqaTitleType = 2;
inline constexpr int32_t kHotpotqaQuestionType = 3;

enum class HotpotqaAnswerType { kSpan = 0, kYes = 1, kNo = 2 };

// Classes of long tokens when answers are marked token by token.
enum class HotpotqaBio { kBegin = 0, kInside = 1, kOutside = 2 };

// Encoding of answers: by the probabilities of begin and end, or by a class of
// HotpotqaBio for each token.
enum class HotpotqaAnswerEncoding { kSpan, kBio };

// The object "hotpotqa" of a fine-tuning configuration: README.md has its
// fields. Absent ones keep their default.
struct HotpotqaOptions {
  InputOptions input = {};
  HotpotqaAnswerEncoding answer_encoding = HotpotqaAnswerEncoding::kSpan;
  // One sequence in place of separate paragraphs, an ablation
  // (doc/hotpotqa.md 3).
  bool flat_sequence = false;
  // Least probability of a supporting fact.
  double supporting_fact_threshold = 0.5;
  // Take the threshold of supporting facts that has the best joint F1 on the
  // very data that are scored, as the official program does at its end. Data
  // without answers get `supporting_fact_threshold`.
  bool search_threshold = false;
  // Pieces.
  int64_t max_answer_length = 30;
  // The official program's rules where they go wrong: its numbering and
  // targets (README.md), padding and question in softmax and losses, and its
  // search for spans.
  bool official_compatibility = false;
};

template <>
struct ConfigTable<HotpotqaOptions> {
  using O = HotpotqaOptions;
  static constexpr absl::string_view kEncodings[] = {"span", "bio"};
  static constexpr auto kFields = std::make_tuple(
      Field("answer_encoding", &O::answer_encoding,
            "the answer as its first and last piece, or by a mark of each "
            "piece",
            {.one_of = kEncodings}),
      Field("supporting_fact_threshold", &O::supporting_fact_threshold,
            "least probability of a supporting fact",
            {.least = 0, .most = 1, .decodes = true}),
      Field("search_threshold", &O::search_threshold,
            "try 0, 0.1, ..., 1 on the data that are scored and keep the best "
            "joint F1: tunes on them; `predict` looks at no answers, and takes "
            "the one above",
            {.decodes = true}),
      Field("max_answer_length", &O::max_answer_length,
            "pieces of the longest answer", DecodingCountFrom(1)),
      Field("flat_sequence", &O::flat_sequence,
            "ablation: one sequence without paragraphs"),
      Field("official_compatibility", &O::official_compatibility,
            "reproduce the official program, its mistakes included (the task's "
            "page lists them)"));
};

// One question as the model reads it (doc/hotpotqa.md 2.4):
//
//   long:    [CLS], pieces of the question, and for each paragraph those of its
//            title and of its sentences
//   global:  [CLS], one token a piece of the question, and for each paragraph
//            one, then one for its title and one a sentence
//
// A question piece, title or sentence that does not fit is left out as a whole.
struct HotpotqaExample : Example {
  std::shared_ptr<const HotpotqaRecord> record;

  // [L]: the bytes of each long token in its own text: the question, or the
  // title or sentence that its global token stands for.
  std::vector<ByteRange> long_bytes;

  // [G]: the paragraph of a paragraph, title or sentence token, or -1.
  std::vector<int32_t> global_paragraph_ids;
  // [G]: the number of a sentence in its paragraph, or -1 for other tokens.
  // With official_compatibility sentences that do not fit are not counted.
  std::vector<int32_t> global_sentence_ids;
  // [G]: the same, all sentences counted: which one the token stands for.
  std::vector<int32_t> global_record_sentences;

  // Targets, if there is an answer (doc/hotpotqa.md 2.6).
  // [G]: 1 for what a supporting fact is in: sentence, title, paragraph.
  std::vector<uint8_t> supporting_facts;
  HotpotqaAnswerType answer_type = HotpotqaAnswerType::kSpan;
  // Occurrences of the answer in supporting text, by the last token; the first
  // one is the target of a span, (0, 0) if there is none.
  std::vector<PieceSpan> answer_spans;

  // Sentences and titles that did not fit, and pieces of the question.
  int64_t dropped_texts = 0;
  int64_t dropped_question_pieces = 0;

  // The record, and the bytes of its tokens.
  int64_t TaskBytes() const override;
  PieceSpan target_span() const {
    return answer_spans.empty() ? PieceSpan() : answer_spans.front();
  }
  // [L] classes of HotpotqaBio.
  std::vector<int64_t> BioTargets() const;
  // The text of a sentence or title token, for a paragraph token its title;
  // empty for others.
  const std::string& TextOf(int32_t global) const;
  // The same by `global_sentence_ids`: where the official program looks the
  // sentence up, which is another one behind one that did not fit.
  const std::string& OfficialTextOf(int32_t global) const;

 private:
  // Sentence number `sentence` of the token's paragraph, its title for -1.
  const std::string& TextOf(int32_t global, int32_t sentence) const;
};

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_EXAMPLE_H_
