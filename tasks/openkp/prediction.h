#ifndef ETC_TASKS_OPENKP_PREDICTION_H_
#define ETC_TASKS_OPENKP_PREDICTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tasks/openkp/example.h"

namespace etc {

struct OpenkpDecodingOptions {
  // Different phrases for a document.
  int64_t max_phrases = 5;
  // Places that are looked at for them, the best ones first.
  int64_t max_positions = 100;
  bool official_compatibility = false;
};

// The n-gram logits of one document: the phrase of n words from word s on has
// values[(n - 1) * num_words + s]; n = 1, ..., kOpenkpMaxPhraseLength.
struct NgramLogits {
  const float* values = nullptr;
  // Words of the longest document in the batch, at least
  // `example.num_words`.
  int64_t num_words = 0;
};

// The phrases of a document, the best first, in lower case: the texts of the
// places with the largest logits, where each text counts once (openkp spec
// 7.2). Of equal logits the shorter phrase comes first, then the earlier one.
//
// Only phrases inside the words that the model reads are considered. With
// official_compatibility all places are, and phrases are cut off where the
// document ends.
std::vector<std::string> DecodeKeyPhrases(const OpenkpExample& example,
                                          const NgramLogits& logits,
                                          const OpenkpDecodingOptions& options);

// A document and what somebody says its key phrases are, as lists of words.
struct OpenkpPhraseLists {
  std::string url;
  std::vector<std::vector<std::string>> phrases;
};

// One line of the official prediction file, with its end (openkp spec 7.3):
//
//   {"url": "http://x.org", "KeyPhrases": [["green tea"], ["tea"]]}
std::string OpenkpPredictionLine(const std::string& url,
                                 const std::vector<std::string>& phrases);

// Reads such a line, or `url` and "KeyPhrases" of a data file's.
//   kInvalidArgument  not JSON, no url, phrases that are not lists of strings
absl::StatusOr<OpenkpPhraseLists> ParseOpenkpPhraseLists(
    absl::string_view json, const std::string& where);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_PREDICTION_H_
