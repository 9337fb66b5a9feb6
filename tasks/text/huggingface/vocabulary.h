#ifndef ETC_TASKS_TEXT_HUGGINGFACE_VOCABULARY_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace etc::huggingface {

// The pieces of a tokenizer.json by their texts and their ids.
class Vocabulary {
 public:
  Vocabulary() = default;
  // `num_entries`: pieces that the file has. Ids up to about twice as many are
  // taken, which bounds the memory that an id can ask for.
  explicit Vocabulary(size_t num_entries)
      : most_(static_cast<int64_t>(num_entries)) {}

  // Adds a piece; `where` names it in messages.
  //   kInvalidArgument  the text or the id is there already, or the id is
  //                     negative or far above the number of pieces
  absl::Status Add(const std::string& where, const std::string& piece,
                   int64_t id);
  // The same where a text may have several ids: the last one is that of Id.
  absl::Status AddAgain(const std::string& where, const std::string& piece,
                        int64_t id);

  // The id of a piece, or -1.
  int32_t Id(absl::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }
  // Returns true if there is a piece with this id.
  bool Has(int64_t id) const {
    return id >= 0 && id < size() && is_used_[static_cast<size_t>(id)];
  }
  // The piece of an id; empty if there is none.
  const std::string& Piece(int32_t id) const {
    return pieces_[static_cast<size_t>(id)];
  }
  // One more than the largest id.
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  // Number of pieces: fewer if ids are left out.
  int64_t num_pieces() const { return num_pieces_; }

 private:
  absl::flat_hash_map<std::string, int32_t> ids_;
  std::vector<std::string> pieces_;
  std::vector<bool> is_used_;
  int64_t num_pieces_ = 0;
  int64_t most_ = 0;
};

// Checks the sizes of all pieces, for models that search for them byte by
// byte; `where` names the vocabulary. Errors of CheckPieceSize.
absl::Status CheckPieceSizes(const Vocabulary& vocabulary,
                             const std::string& where);

// Reads an object of texts and ids; `where` names it in messages.
//   kInvalidArgument  something else, or errors of Vocabulary::Add
absl::StatusOr<Vocabulary> ReadVocabularyObject(const nlohmann::json& object,
                                                const std::string& where);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_VOCABULARY_H_
