#ifndef ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "etc/weights/wordpiece_options.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/byte_range.h"
#include "tasks/text/huggingface/normalizers.h"
#include "tasks/text/huggingface/vocabulary.h"
#include "tasks/text/piece_trie.h"

namespace etc::huggingface {

// Added tokens, which are found in a text as a whole: from the left, the
// longest of several at one place. Those that are not `normalized` are found in
// the text as it is, the others in the rest, normalized.
class AddedVocabulary {
 public:
  // The tokens of one of the two kinds.
  class Searched {
   public:
    void Add(const AddedToken& token, absl::string_view content);
    bool empty() const { return tokens_.empty(); }

    using VisitText = absl::FunctionRef<void(ByteRange part)>;
    using VisitToken = absl::FunctionRef<void(int32_t id, ByteRange place)>;

    // Calls, in order, `visit_token` for each token in `text` and `visit_text`
    // for the text between, which is never empty. A token with `lstrip` or
    // `rstrip` has the white space beside it.
    void Split(absl::string_view text, VisitText visit_text,
               VisitToken visit_token) const;

   private:
    // The place of the token `id` if it was found at `found`; empty if its
    // neighbours refuse it. Text before `done` belongs to others.
    ByteRange PlaceOf(int32_t id, absl::string_view text, ByteRange found,
                      int64_t done) const;

    PieceTrie trie_;
    std::array<bool, 256> starts_ = {};  // the first bytes
    absl::flat_hash_map<int32_t, AddedToken> tokens_;
  };

  AddedVocabulary() = default;
  AddedVocabulary(const std::vector<AddedToken>& tokens,
                  const Normalizers& normalizers);

  const Searched& raw() const { return raw_; }
  const Searched& normalized() const { return normalized_; }

 private:
  Searched raw_;
  Searched normalized_;
};

// Reads the field "added_tokens", a list, and adds the tokens that are no
// pieces of the model to `vocabulary`; `where` names it in messages.
//   kInvalidArgument  another id than that of the same piece of the model, or
//                     than the next if the piece is new
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(
    const nlohmann::json& list, const std::string& where,
    Vocabulary* vocabulary);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_ADDED_VOCABULARY_H_
