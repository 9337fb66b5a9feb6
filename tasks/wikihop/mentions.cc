#include "tasks/wikihop/mentions.h"

#include <algorithm>

#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// Equality of pieces as the official code has it, which compares their texts:
// WordPiece calls every unknown word "[UNK]", SentencePiece gives unknown
// pieces one id but leaves them their text.
class SamePiece {
 public:
  SamePiece(absl::string_view sentence, absl::string_view candidate,
            int32_t unknown_id)
      : sentence_(sentence), candidate_(candidate), unknown_id_(unknown_id) {}

  bool operator()(const Token& in_sentence, const Token& in_candidate) const {
    return in_sentence.id == in_candidate.id &&
           (in_sentence.id != unknown_id_ ||
            Text(sentence_, in_sentence) == Text(candidate_, in_candidate));
  }

 private:
  static absl::string_view Text(absl::string_view text, const Token& piece) {
    return text.substr(static_cast<size_t>(piece.begin),
                       static_cast<size_t>(piece.end - piece.begin));
  }

  absl::string_view sentence_;
  absl::string_view candidate_;
  int32_t unknown_id_;
};

void FindByPieces(absl::string_view sentence, const std::vector<Token>& pieces,
                  const CandidatePieces& candidate, int32_t unknown_id,
                  std::vector<Mention>* mentions) {
  const SamePiece same(sentence, candidate.text, unknown_id);
  const auto& wanted = candidate.pieces;
  auto at = pieces.begin();
  while (!wanted.empty()) {
    at = std::search(at, pieces.end(), wanted.begin(), wanted.end(), same);
    if (at == pieces.end()) {
      return;
    }
    const int64_t first = at - pieces.begin();
    mentions->push_back(
        {.first = first,
         .last = first + static_cast<int64_t>(wanted.size()) - 1});
    ++at;
  }
}

// `first_byte` and `last_byte` are bytes of the sentence.
void AddPiecesBetween(int64_t first_byte, int64_t last_byte,
                      const std::vector<Token>& pieces,
                      std::vector<Mention>* mentions) {
  const auto first = std::partition_point(
      pieces.begin(), pieces.end(),
      [first_byte](const Token& piece) { return piece.end <= first_byte; });
  const auto behind = std::partition_point(
      first, pieces.end(),
      [last_byte](const Token& piece) { return piece.begin <= last_byte; });
  if (first != behind) {
    mentions->push_back(
        {.first = first - pieces.begin(), .last = behind - pieces.begin() - 1});
  }
}

void FindByCharacters(const AlignedLowerCase& sentence,
                      const std::vector<Token>& pieces,
                      const std::string& candidate,
                      std::vector<Mention>* mentions) {
  for (size_t at = sentence.text.find(candidate); at != std::string::npos;
       at = sentence.text.find(candidate, at + 1)) {
    AddPiecesBetween(sentence.origin[at],
                     sentence.origin[at + candidate.size() - 1], pieces,
                     mentions);
  }
}

}  // namespace

std::vector<Mention> FindMentions(
    absl::string_view sentence, const std::vector<Token>& pieces,
    const std::vector<CandidatePieces>& candidates, MentionAlignment alignment,
    const Tokenizer& tokenizer) {
  const AlignedLowerCase lower = LowerCaseWithOrigin(sentence);
  const int32_t unknown_id = tokenizer.Id("<unk>");
  std::vector<Mention> mentions;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const CandidatePieces& candidate = candidates[i];
    if (candidate.text.empty() ||
        lower.text.find(candidate.text) == std::string::npos) {
      continue;
    }
    const size_t before = mentions.size();
    if (alignment == MentionAlignment::kPieces) {
      FindByPieces(sentence, pieces, candidate, unknown_id, &mentions);
    } else {
      FindByCharacters(lower, pieces, candidate.text, &mentions);
    }
    for (size_t k = before; k < mentions.size(); ++k) {
      mentions[k].candidate = static_cast<int32_t>(i);
    }
  }
  return mentions;
}

}  // namespace etc
