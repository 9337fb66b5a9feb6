#include "tasks/text/huggingface/vocabulary.h"

#include <algorithm>
#include <cstddef>

#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/text/piece_trie.h"

namespace etc::huggingface {

absl::Status Vocabulary::Add(const std::string& where, const std::string& piece,
                             int64_t id) {
  const int32_t known = Id(piece);
  if (known >= 0 && known != id) {
    return InvalidArgument(where, ": ", QuotedName(piece), " has the ids ",
                           known, " and ", id);
  }
  return AddAgain(where, piece, id);
}

absl::Status Vocabulary::AddAgain(const std::string& where,
                                  const std::string& piece, int64_t id) {
  constexpr int64_t kMoreThanTwice = 1000;
  const int64_t most = 2 * std::max(most_, num_pieces_) + kMoreThanTwice;
  if (id < 0 || id > most) {
    return InvalidArgument(where, ": the id of ", QuotedName(piece),
                           " should be a whole number from 0 to ", most,
                           ", for there are ", std::max(most_, num_pieces_),
                           " pieces, but is ", id);
  }
  if (Has(id)) {
    return InvalidArgument(where, ": id ", id, " is that of ",
                           QuotedName(pieces_[static_cast<size_t>(id)]),
                           " and of ", QuotedName(piece));
  }
  ids_.insert_or_assign(piece, static_cast<int32_t>(id));
  ++num_pieces_;
  if (id >= size()) {
    pieces_.resize(static_cast<size_t>(id) + 1);
    is_used_.resize(static_cast<size_t>(id) + 1);
  }
  pieces_[static_cast<size_t>(id)] = piece;
  is_used_[static_cast<size_t>(id)] = true;
  return absl::OkStatus();
}

absl::Status CheckPieceSizes(const Vocabulary& vocabulary,
                             const std::string& where) {
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    ETC_RETURN_IF_ERROR(CheckPieceSize(vocabulary.Piece(id), where));
  }
  return absl::OkStatus();
}

absl::StatusOr<Vocabulary> ReadVocabularyObject(const nlohmann::json& object,
                                                const std::string& where) {
  if (!object.is_object()) {
    return InvalidArgument(where, " should be an object of pieces, but is ",
                           object.type_name());
  }
  Vocabulary vocabulary(object.size());
  for (const auto& [piece, id] : object.items()) {
    if (!id.is_number_integer()) {
      return InvalidArgument(where, ": the id of ", QuotedName(piece),
                             " should be a whole number, but is ",
                             id.is_number() ? JsonText(id) : id.type_name());
    }
    ETC_RETURN_IF_ERROR(vocabulary.Add(where, piece, id.get<int64_t>()));
  }
  return vocabulary;
}

}  // namespace etc::huggingface
