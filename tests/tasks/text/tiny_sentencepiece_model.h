#ifndef ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_
#define ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace etc {

struct TinyCharsmapOptions {
  // Node of the first bytes of texts, a multiple of 256.
  uint32_t root = 256;
  // Node behind "a"; the place of its replacement is the unit there.
  uint32_t leaf = 512;
  uint32_t value = 0;
  std::string replacements = std::string("x\0", 2);
};

// A precompiled charsmap of the one rule for "a" (doc/formats.md 4.7): the size
// of the trie, 1024 units of Darts, replacements that end with zeros.
inline std::string TinyCharsmap(const TinyCharsmapOptions& options) {
  constexpr uint32_t kUnits = 1024;
  constexpr uint32_t kHasLeaf = 1 << 8;
  constexpr uint32_t kIsValue = uint32_t{1} << 31;
  constexpr int kOffsetShift = 10;
  std::vector<uint32_t> units(kUnits + 1, kIsValue);  // no byte leads there
  units[0] = kUnits * 4;
  const auto unit = [&units](uint32_t index) -> uint32_t& {
    return units[index + 1];
  };
  const uint32_t behind_a = 256 ^ 'a';
  unit(0) = options.root << kOffsetShift;
  unit(behind_a) = 'a' | kHasLeaf | (behind_a ^ options.leaf) << kOffsetShift;
  unit(options.leaf) = options.value | kIsValue;
  std::string bytes;
  for (const uint32_t word : units) {
    AppendFixed(word, &bytes);
  }
  return bytes + options.replacements;
}

// The bytes of a unigram SentencePiece model (doc/formats.md 4.7) with the
// pieces <unk> 0, <s> 1, </s> 2 and, from 3 on, `pieces` with their scores
// (logarithms of probabilities); no normalization but for white space and, if
// there are any, the rules of `charsmap`.
class TinySentencePieceModel {
 public:
  static constexpr char kNormal = 1;
  static constexpr char kUserDefined = 4;

  explicit TinySentencePieceModel(
      const std::vector<std::pair<std::string, float>>& pieces,
      const std::string& charsmap = "", char type = kNormal) {
    AddPiece("<unk>", 0.0F, /*type=*/2);
    AddPiece("<s>", 0.0F, /*type=*/3);
    AddPiece("</s>", 0.0F, /*type=*/3);
    for (const auto& [piece, score] : pieces) {
      AddPiece(piece, score, type);
    }
    AddField(2, "\x18\x01");  // trainer_spec.model_type: unigram
    std::string normalizer =
        "\x0A\x08"
        "identity";  // name
    if (!charsmap.empty()) {
      normalizer += "\x12" + Varint(charsmap.size()) + charsmap;
    }
    AddField(3, normalizer);  // normalizer_spec
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static std::string Varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) {
      bytes.push_back(static_cast<char>(value | 0x80));
    }
    bytes.push_back(static_cast<char>(value));
    return bytes;
  }

  void AddField(uint64_t number, const std::string& message) {
    bytes_ += Varint(number << 3 | 2);
    bytes_ += Varint(message.size());
    bytes_ += message;
  }

  void AddPiece(const std::string& piece, float score, char type) {
    std::string message = "\x0A";
    message += Varint(piece.size());
    message += piece;
    message += '\x15';
    AppendFixed(score, &message);
    message += '\x18';
    message += type;
    AddField(1, message);
  }

  std::string bytes_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_
