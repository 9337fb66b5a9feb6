#ifndef ETC_TASKS_HOTPOTQA_PREDICTION_H_
#define ETC_TASKS_HOTPOTQA_PREDICTION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tasks/hotpotqa/example.h"
#include "tasks/hotpotqa/raw.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// What a model, or a file of predictions, says of one question.
struct HotpotqaPrediction {
  std::string answer;
  std::vector<HotpotqaFact> facts;
};

// The head's logits for one example; what lies beyond the example is padding of
// its batch.
struct HotpotqaLogits {
  absl::Span<const float> supporting_facts;  // [G]
  absl::Span<const float> answer_type;       // [3], by HotpotqaAnswerType
  // [L] each, or both empty if answers are marked token by token.
  absl::Span<const float> begin;
  absl::Span<const float> end;
  // [3 L], the classes of a token side by side, or empty.
  absl::Span<const float> bio;
};

struct HotpotqaDecodingOptions {
  // Least probability of a supporting fact.
  double supporting_fact_threshold = 0.5;
  // Pieces.
  int64_t max_answer_length = 30;
  TokenizerKind tokenizer_kind = TokenizerKind::kWordPiece;
  // Of the example: what is full has its last token here.
  int64_t max_long_length = 4096;
  int64_t max_global_length = 256;
  bool official_compatibility = false;
};

// Facts and answer (hotpotqa spec 6). Facts are the sentences with a
// probability of at least the threshold, in the order of the context. An answer
// that is neither yes nor no is the span with the highest p_begin * p_end (or
// mean probability of its classes) within one sentence or title that is
// predicted to be a supporting fact; the later one of equals. If there is none,
// it comes from any sentence or title, and with `official_compatibility` it is
// empty. That also limits the search to the 50 best begins and ends, and loses
// an answer marked by classes up to the end of a full long input.
HotpotqaPrediction DecodeHotpotqa(const HotpotqaExample& example,
                                  const HotpotqaLogits& logits,
                                  const HotpotqaDecodingOptions& options,
                                  const Tokenizer& tokenizer);

// The official submission, {"answer": {"<id>": "text"}, "sp": {"<id>":
// [["title", 0]]}}, by id, ASCII with escapes, and a newline.
std::string HotpotqaPredictionsToJson(
    const std::vector<std::pair<std::string, HotpotqaPrediction>>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_HOTPOTQA_PREDICTION_H_
