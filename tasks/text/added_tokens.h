#ifndef ETC_TASKS_TEXT_ADDED_TOKENS_H_
#define ETC_TASKS_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/text/basic_tokenizer.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/piece_trie.h"

namespace etc {

// The added tokens of a vocabulary, found in a text as HuggingFace's fast
// tokenizers find them: from the left, the longest of several at one place;
// first those that are not `normalized` in the text as it is, then the others
// in the rest, normalized. A token that has to be a single word and is not one
// there is text.
class AddedTokens {
 public:
  AddedTokens(const std::vector<AddedToken>& tokens,
              const BasicTokenizerOptions& options);

  // A token has white space in it.
  bool have_blanks() const { return have_blanks_; }

  using VisitText = absl::FunctionRef<void(ByteRange part)>;
  using VisitToken = absl::FunctionRef<void(int32_t id, ByteRange source)>;

  // Calls, in order, `visit_token` for each token that is found in `text` and
  // `visit_text` for the text between, which is never empty.
  void Split(absl::string_view text, VisitText visit_text,
             VisitToken visit_token) const;

 private:
  // Contents to search for.
  struct Searched {
    PieceTrie trie;
    std::array<bool, 256> starts = {};  // the first bytes
    bool empty = true;

    void Add(absl::string_view content, int32_t id);
    // The longest at byte `at` of `text`; id -1 if there is none.
    PieceTrie::Match At(absl::string_view text, int64_t at) const;
  };

  // Returns whether the token at `place` of `text` is not refused by its
  // neighbours.
  bool MayStand(int32_t id, absl::string_view text, ByteRange place) const;
  void SplitNormalized(absl::string_view text, ByteRange part,
                       VisitText visit_text, VisitToken visit_token) const;

  const BasicTokenizerOptions options_;
  Searched raw_;
  Searched normalized_;
  std::set<int32_t> single_words_;
  bool have_blanks_ = false;
};

}  // namespace etc

#endif  // ETC_TASKS_TEXT_ADDED_TOKENS_H_
