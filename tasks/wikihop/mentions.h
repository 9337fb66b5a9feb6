#ifndef ETC_TASKS_WIKIHOP_MENTIONS_H_
#define ETC_TASKS_WIKIHOP_MENTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Method of finding mentions of candidates in sentences (doc/wikihop.md 3.4).
enum class MentionAlignment {
  // A run of the sentence's pieces equal to the pieces of the candidate: the
  // rule of the official code. With a vocabulary that has upper case, names in
  // the sentence do not match candidates, which are in lower case.
  kPieces,
  // Every occurrence of the candidate in the lower-case sentence, from the
  // piece of its first character to that of its last: for such vocabularies.
  kCharacters,
};

// Pieces [first, last] of a text, both inclusive, that name a candidate.
struct Mention {
  int32_t candidate = 0;
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const Mention&, const Mention&) = default;
};

// A candidate as mentions are compared with it.
struct CandidatePieces {
  std::string text;  // in lower case
  std::vector<Token> pieces;
};

// The mentions in `sentence`, whose pieces are `pieces`: by candidates, then
// from left to right, overlapping ones too. A candidate whose text does not
// occur in the lower-case sentence is not mentioned; there is no regard for
// borders of words ("oslo" is mentioned in "oslo ##s").
std::vector<Mention> FindMentions(
    absl::string_view sentence, const std::vector<Token>& pieces,
    const std::vector<CandidatePieces>& candidates, MentionAlignment alignment,
    const Tokenizer& tokenizer);

}  // namespace etc

#endif  // ETC_TASKS_WIKIHOP_MENTIONS_H_
