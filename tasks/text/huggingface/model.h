#ifndef ETC_TASKS_TEXT_HUGGINGFACE_MODEL_H_
#define ETC_TASKS_TEXT_HUGGINGFACE_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/text/huggingface/vocabulary.h"

namespace etc::huggingface {

// Bytes [begin, end) of a word as a piece.
struct WordPart {
  int32_t id = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Cuts words into pieces. All methods may be called from several threads.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the pieces of `word`, which is not empty, to `parts`.
  virtual void Encode(absl::string_view word,
                      std::vector<WordPart>* parts) const = 0;
  // Spelling of a piece that continues a word; empty if pieces do not show it.
  virtual std::string continuation() const { return ""; }
};

struct ReadModelResult {
  Vocabulary vocabulary;
  std::unique_ptr<const Model> model;
};

// Reads the field "model": BPE, WordPiece, WordLevel or Unigram. `where` names
// it in messages. `is_byte_level`: pieces are spelt in ByteLevel's characters,
// but words are the bytes themselves, which only BPE can be given.
//   kUnimplemented    another type, or an option that is not supported
//   kInvalidArgument  a mistake, such as a merge of pieces that are none
//   kResourceExhausted  a piece of WordPiece or Unigram, or what BPE spells
//                       around characters, is longer than kMostPieceBytes
absl::StatusOr<ReadModelResult> ReadModel(const nlohmann::json& object,
                                          const std::string& where,
                                          bool is_byte_level);

// The readers of each type (model.cc, bpe_model.cc, unigram_model.cc).
absl::StatusOr<ReadModelResult> ReadBpe(const nlohmann::json& object,
                                        const std::string& where,
                                        bool is_byte_level);
absl::StatusOr<ReadModelResult> ReadUnigram(const nlohmann::json& object,
                                            const std::string& where);

}  // namespace etc::huggingface

#endif  // ETC_TASKS_TEXT_HUGGINGFACE_MODEL_H_
