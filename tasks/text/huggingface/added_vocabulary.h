#ifndef ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "etc/weights/wordpiece_options.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/huggingface/normalizers.h"
#include "tasks/text/huggingface/vocabulary.h"
#include "tasks/text/piece_trie.h"

namespace etc::huggingface {

// Added tokens: those that are not `normalized` are found in the text as it is,
// the others in the rest, normalized.
class AddedVocabulary {
 public:
  AddedVocabulary(const std::vector<AddedToken>& tokens,
                  const Normalizers& normalizers);

  const AddedTokenSearch& raw() const { return raw_; }
  const AddedTokenSearch& normalized() const { return normalized_; }

 private:
  AddedTokenSearch raw_;
  AddedTokenSearch normalized_;
};

// Reads the field "added_tokens", a list, and adds the tokens that are no
// pieces of the model to `vocabulary`; `where` names it in messages.
//   kInvalidArgument  another id than that of the same piece of the model, or
//                     than the next if the piece is new
//   kResourceExhausted  a token is longer than kMostPieceBytes
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(
    const nlohmann::json& list, const std::string& where,
    Vocabulary* vocabulary);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_
