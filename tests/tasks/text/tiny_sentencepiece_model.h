#ifndef ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_
#define ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace etc {

// The bytes of a unigram SentencePiece model (doc/formats.md 4.7) with the
// pieces <unk> 0, <s> 1, </s> 2 and, from 3 on, `pieces` with their scores
// (logarithms of probabilities); no normalization but for white space.
class TinySentencePieceModel {
 public:
  explicit TinySentencePieceModel(
      const std::vector<std::pair<std::string, float>>& pieces) {
    AddPiece("<unk>", 0.0F, /*type=*/2);
    AddPiece("<s>", 0.0F, /*type=*/3);
    AddPiece("</s>", 0.0F, /*type=*/3);
    for (const auto& [piece, score] : pieces) {
      AddPiece(piece, score, /*type=*/1);
    }
    AddField(2, "\x18\x01");  // trainer_spec.model_type: unigram
    AddField(3,
             "\x0A\x08"
             "identity");  // normalizer_spec.name
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
    const auto bits = std::bit_cast<uint32_t>(score);
    for (int shift = 0; shift < 32; shift += 8) {
      message.push_back(static_cast<char>(bits >> shift));
    }
    message += '\x18';
    message += type;
    AddField(1, message);
  }

  std::string bytes_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TEXT_TINY_SENTENCEPIECE_MODEL_H_
