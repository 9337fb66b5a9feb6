#ifndef ETC_TASKS_NQ_RAW_H_
#define ETC_TASKS_NQ_RAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json_reader.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

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

enum class NqYesNo { kNone, kYes, kNo };

// The annotation of one annotator.
struct NqAnnotation {
  NqSpan long_answer;                 // null: there is none
  std::vector<NqSpan> short_answers;  // none of them null
  NqYesNo yes_no = NqYesNo::kNone;
};

// A word or an HTML tag.
struct NqToken {
  std::string text;
  bool is_html = false;
};

// An element of the page that could be the long answer; they may nest.
struct NqCandidate {
  NqSpan span;
  bool top_level = false;
};

// One question and its page, of the original or the simplified format
// (doc/nq.md 1.2, 1.3).
struct NqRecord {
  std::string id = {};  // example_id in digits
  int64_t example_id = 0;
  std::string question;
  std::vector<NqToken> tokens;
  std::vector<NqCandidate> candidates;
  // One in training data, five in dev data, none in data to predict for.
  std::vector<NqAnnotation> annotations;
};

// Formats common to data and predictions (doc/nq.md 1.2, 6.5, 7.1).

// {"start_token": 3, "end_token": 12, "start_byte": 25, "end_byte": 60}. The
// bytes may be absent, as in the simplified format.
//   kInvalidArgument  not that; only one end of a pair is negative; a range
//                     that is empty or backwards
absl::StatusOr<NqSpan> NqSpanFromJson(const nlohmann::json& json,
                                      const std::string& where);

// The field "example_id": a whole number, or a string of its digits.
void ReadNqExampleId(JsonObjectReader& reader, int64_t* example_id);

// The fields "long_answer", "short_answers" and "yes_no_answer" of an object;
// each must be there if `required`, and else is no answer where it is absent.
// Null spans are left out of the short answers. "yes_no_answer" is YES, NO or
// NONE in any case.
absl::StatusOr<NqAnnotation> NqAnnotationFromJson(const nlohmann::json& json,
                                                  bool required,
                                                  const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_NQ_RAW_H_
