#ifndef ETC_TASKS_OPENKP_PHRASES_H_
#define ETC_TASKS_OPENKP_PHRASES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/metrics.h"
#include "tasks/openkp/raw.h"

namespace etc {

// Words of the longest phrase that the model can say: K in the spec.
inline constexpr int64_t kOpenkpMaxPhraseLength = 5;

// Words [start, start + length) of a document.
struct PhrasePosition {
  int64_t start = 0;
  int64_t length = 0;

  friend bool operator==(const PhrasePosition&,
                         const PhrasePosition&) = default;
};

// The key phrases that occur in the text as whole words, in any case, each with
// its words joined by a blank; in the order of the file (doc/openkp.md 2).
// Leaves out phrases without words; by the official rules one occurs in a text
// that is empty, ends with a blank or has two of them side by side, and counts
// like others.
std::vector<std::string> ValidKeyPhrases(
    const OpenkpRecord& record, ScoringRules rules = ScoringRules::kDefault);

// The different ones of the first three of these in lower case, sorted: ETC
// trains for and scores with them (doc/openkp.md 2).
std::vector<std::string> EtcKeyPhrases(
    const OpenkpRecord& record, ScoringRules rules = ScoringRules::kDefault);

// A part of a document to look for phrases in; they do not reach beyond it.
struct PhraseText {
  absl::string_view text;
  // Index of its first word.
  int64_t first_word = 0;
};

// kWholeWords: phrases begin and end where words do. kAnywhere: "tea" is found
// in "steam" too.
enum class PhraseMatch { kWholeWords, kAnywhere };

// The first place of each phrase in lower case, in the first text that has it;
// text by text, and phrase by phrase within it (doc/openkp.md 3.4). Phrases
// that occur nowhere have no place.
std::vector<PhrasePosition> FindPhrases(const std::vector<std::string>& phrases,
                                        const std::vector<PhraseText>& texts,
                                        PhraseMatch match);

// The elements of a record as texts to look in.
std::vector<PhraseText> ElementTexts(const OpenkpRecord& record);

// The references for the predictions of one document, in lower case and without
// repetitions.
struct OpenkpReferences {
  // References of the official evaluator: all phrases, found in the text or not
  // (doc/openkp.md 8.2).
  std::vector<std::string> evaluator;
  // References of ETC: see EtcKeyPhrases (doc/openkp.md 8.3).
  std::vector<std::string> etc;
  // Key phrases in the text. Among several records with one url, ETC keeps the
  // first that has most of them.
  int64_t num_valid = 0;
  // True if none of them lies within one element, or with
  // official_compatibility within one in the model's input. ETC cannot make an
  // example of such a record and scores it 0.
  bool is_removed = false;
  // True if the record has the text and elements that all but the first of
  // these need.
  bool has_text = true;
  size_t text_hash = 0;
};

// The references of a record with key phrases, which was not cut off.
OpenkpReferences ReferencesOf(const OpenkpRecord& record,
                              ScoringRules rules = ScoringRules::kDefault);

// Phrases as predictions have them: words in lower case, joined by a blank;
// repetitions, and phrases without a first word, left out.
std::vector<std::string> JoinedPhrases(
    const std::vector<std::vector<std::string>>& phrases);
// The same as the official evaluator compares them: EvaluatorForms of them.
// Articles and punctuation stay (doc/openkp.md 8.2).
std::vector<std::string> EvaluatorPhrases(
    const std::vector<std::vector<std::string>>& phrases);
// Joined phrases without white space at the end; those that are repetitions
// then are left out.
std::vector<std::string> EvaluatorForms(
    const std::vector<std::string>& phrases);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_PHRASES_H_
