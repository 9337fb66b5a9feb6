#ifndef ETC_TASKS_TEXT_PIECE_TRIE_H_
#define ETC_TASKS_TEXT_PIECE_TRIE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "etc/weights/wordpiece_options.h"
#include "tasks/text/byte_range.h"

namespace etc {

// The longest piece, in bytes, which bounds the steps of a search at each byte
// of a text. SentencePiece makes pieces of up to 512 characters; the longest of
// published vocabularies have some hundred bytes.
inline constexpr size_t kMostPieceBytes = 4096;

// Checks the size of a piece; `where` names its place.
//   kResourceExhausted  it is longer than kMostPieceBytes
absl::Status CheckPieceSize(absl::string_view piece, const std::string& where);

// The pieces of a vocabulary by their bytes, to find the longest one that a
// text starts with: one step for each byte, whatever the vocabulary.
class PieceTrie {
 public:
  // A place in the trie: some first bytes of a piece. The root is none.
  using Node = int32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNowhere = -1;

  // Adds a piece of at least one byte. Returns the id of the same piece if it
  // is there already (and changes nothing), or else -1.
  int32_t Add(absl::string_view piece, int32_t id);

  // Returns the node to which `bytes` lead from `from`, or kNowhere.
  Node Walk(Node from, absl::string_view bytes) const;

  // The id of `piece`, or -1.
  int32_t Id(absl::string_view piece) const;

  struct Match {
    int32_t id = -1;
    int64_t length = 0;  // bytes
  };
  // The longest match, of at least one byte, of the start of `text` with the
  // rest of a piece after `from`; id -1 if there is none or `from` is kNowhere.
  Match Longest(Node from, absl::string_view text) const;
  // Calls `visit` for each piece that `text` begins with, the shortest first.
  void VisitPrefixes(absl::string_view text,
                     absl::FunctionRef<void(Match match)> visit) const;

 private:
  Node Step(Node from, char byte) const;

  // The edges by (node << 8 | byte).
  absl::flat_hash_map<uint64_t, Node> edges_;
  // Id of the piece that ends at each node, or -1.
  std::vector<int32_t> ids_ = {-1};
};

// Finds added tokens in a text as a whole: from the left, the longest of
// several at one place. A token that has to be a single word and is not one
// there is text.
class AddedTokenSearch {
 public:
  // Searches for `content`, if it is not empty, which stands for `token`.
  void Add(const AddedToken& token, absl::string_view content);
  bool empty() const { return tokens_.empty(); }

  using VisitText = absl::FunctionRef<void(ByteRange part)>;
  using VisitToken = absl::FunctionRef<void(int32_t id, ByteRange place)>;

  // Calls, in order, `visit_token` for each token in `text` and `visit_text`
  // for the text between, which is never empty. A token with `lstrip` or
  // `rstrip` has the white space beside it. Throws LimitReached
  // (base/out_of_memory.h) if tokens that are white space themselves share so
  // much of it that the search would take hours.
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

}  // namespace etc

#endif  // ETC_TASKS_TEXT_PIECE_TRIE_H_
