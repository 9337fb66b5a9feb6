#ifndef ETC_TASKS_NQ_RECORD_H_
#define ETC_TASKS_NQ_RECORD_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace etc {

// A record and a prediction, as programs give and get them
// (tasks/inference/predictor.h).

// A half-open range of a document, in bytes of its HTML and in tokens; a pair
// that is not known, or an answer that is none, is -1 (doc/nq.md 7.1).
struct NqSpan {
  int64_t start_byte = -1;
  int64_t end_byte = -1;
  int64_t start_token = -1;
  int64_t end_token = -1;

  bool is_null() const {
    return start_byte < 0 && end_byte < 0 && start_token < 0 && end_token < 0;
  }

  friend bool operator==(const NqSpan&, const NqSpan&) = default;
};

// Answers of annotators that are no span.
enum class NqYesNo { kNone, kYes, kNo };

// The annotation of one annotator.
struct NqAnnotation {
  NqSpan long_answer = {};                 // null: there is none
  std::vector<NqSpan> short_answers = {};  // none of them null
  NqYesNo yes_no = NqYesNo::kNone;
};

// A word or an HTML tag.
struct NqToken {
  std::string text = {};
  bool is_html = false;

  // Texts, which should be UTF-8.
  static constexpr auto kTexts = std::make_tuple(&NqToken::text);
};

// An element of the page that could be the long answer; they may nest.
struct NqCandidate {
  NqSpan span = {};
  bool top_level = false;
};

// One question and its page, of the original or the simplified format
// (doc/nq.md 1.2, 1.3).
struct NqRecord {
  std::string id = {};  // example_id in digits
  int64_t example_id = 0;
  std::string question = {};
  std::vector<NqToken> tokens = {};
  std::vector<NqCandidate> candidates = {};
  // One in training data, five in dev data, none in data to predict for.
  std::vector<NqAnnotation> annotations = {};

  // Texts, which should be UTF-8.
  static constexpr auto kTexts =
      std::make_tuple(&NqRecord::id, &NqRecord::question, &NqRecord::tokens);
};

// A prediction for one document, by a model or from a file.
struct NqPrediction {
  int64_t example_id = 0;
  NqSpan long_answer = {};
  double long_answer_score = 0;
  std::vector<NqSpan> short_answers = {};
  NqYesNo yes_no = NqYesNo::kNone;
  double short_answers_score = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_NQ_RECORD_H_
