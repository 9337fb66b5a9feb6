#ifndef ETC_TASKS_TEXT_HUGGINGFACE_PRECOMPILED_MAP_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_PRECOMPILED_MAP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/text/huggingface/normalizers.h"

namespace etc::huggingface {

// The normalization rules of a SentencePiece model: texts and what replaces
// them. A file has a double array trie (Darts) of the texts, of which each
// leads to a place in a list of zero-terminated replacements.
class PrecompiledMap {
 public:
  // Reads the bytes of such a file: the size of the trie in bytes, 32 bits,
  // little endian; the trie; the replacements.
  //   kInvalidArgument  it is cut off, its replacements are no UTF-8, or the
  //                     trie leads out of itself, to no replacement, or past
  //                     more than 32 texts that begin with one another; the
  //                     message names it by `where`
  static absl::StatusOr<PrecompiledMap> Parse(absl::string_view bytes,
                                              const std::string& where);

  // The replacement of the shortest text of the map that `text` begins with;
  // nothing if there is none.
  std::optional<absl::string_view> Find(absl::string_view text) const;

 private:
  // Returns true if no text leads out of the trie or to no replacement.
  bool IsSound() const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// The normalizer "Precompiled": replaces each grapheme of less than six bytes
// that begins with a text of the map, and of others each such character.
std::unique_ptr<const Normalizer> MakePrecompiledNormalizer(PrecompiledMap map);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_PRECOMPILED_MAP_H_
