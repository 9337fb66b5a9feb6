#ifndef ETC_TASKS_TRANSLATION_SENTENCEPIECE_TRAINING_H_
#define ETC_TASKS_TRANSLATION_SENTENCEPIECE_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/text/sentencepiece_module.h"

namespace etc {

// A SentencePiece model to be trained (doc/translation.md 6). Pieces 0 to 3 are
// fairseq's <s>, <pad>, </s> and <unk>; all that is not said here is
// spm_train's default, nmt_nfkc as the normalizer among it.
struct SentencePieceTraining {
  // Text, a sentence in each line; several are read one after the other.
  std::vector<std::string> files;
  std::string type = "bpe";  // or "unigram"
  int64_t vocab_size = 8000;
  // Share of the characters of the text that get pieces, in [0.98, 1].
  double character_coverage = 1.0;
  // Adds piece 4, <mask>, which no text is encoded as, for pre-training.
  bool mask = false;
};

// A trained model.
struct TrainedSentencePiece {
  std::string model;  // the bytes of a .model file
  // Lines read, empty ones among them.
  int64_t lines = 0;
};

// Trains a model with one thread: the same text gives the same model.
//   kInvalidArgument     an option out of range; a line that is not UTF-8 or
//                        has a character that SentencePiece skips lines for
//                        (U+0000 and U+2585), or for bpe a word of more than
//                        32,000 characters between white space, with its
//                        number; a text with too few pieces for the
//                        vocabulary, or none
//   kFailedPrecondition  see LoadSentencePieceModel
// and errors of TextFile.
absl::StatusOr<TrainedSentencePiece> TrainSentencePiece(
    const SentencePieceTraining& training);

// The pieces of a text.
struct PieceCounts {
  int64_t lines = 0;
  // Pieces of all lines and of the longest, an end symbol added to each line.
  int64_t pieces = 0;
  int64_t longest = 0;
  int64_t unknown = 0;
};

// Encodes each line of a file. Errors of TextFile, and kResourceExhausted if
// memory runs out.
absl::StatusOr<PieceCounts> CountPieces(const SentencePieceModel& model,
                                        const std::string& path);

}  // namespace etc

#endif  // ETC_TASKS_TRANSLATION_SENTENCEPIECE_TRAINING_H_
