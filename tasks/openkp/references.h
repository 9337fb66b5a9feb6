#ifndef ETC_TASKS_OPENKP_REFERENCES_H_
#define ETC_TASKS_OPENKP_REFERENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/openkp/phrases.h"
#include "tasks/openkp/raw.h"

namespace etc {

// What the predictions for one document are compared with, in lower case and
// without repetitions.
struct OpenkpReferences {
  // By the official evaluator: all phrases, found in the text or not (openkp
  // spec 8.2).
  std::vector<std::string> evaluator;
  // By ETC: see EtcKeyPhrases (openkp spec 8.3).
  std::vector<std::string> etc;
  // Key phrases in the text. Of several records with one url, ETC keeps the
  // first that has most of them.
  int64_t num_valid = 0;
  // Whether none of them lies within one element, or with
  // official_compatibility within one in the model's input. ETC cannot make an
  // example of such a record and scores it 0.
  bool is_removed = false;
  // Whether the record has the text and elements that all but the first of
  // these need.
  bool has_text = true;
};

// The references of a record with key phrases, which was not cut off.
OpenkpReferences ReferencesOf(const OpenkpRecord& record,
                              EmptyPhrases empty = EmptyPhrases::kLeftOut);

// Phrases as the official evaluator compares them: words in lower case, joined
// by a blank, without white space at the end; empty ones and repetitions left
// out. Articles and punctuation stay (openkp spec 8.2).
std::vector<std::string> EvaluatorPhrases(
    const std::vector<std::vector<std::string>>& phrases);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_REFERENCES_H_
