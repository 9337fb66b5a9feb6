#ifndef ETC_TASKS_OPENKP_PREDICTION_H_
#define ETC_TASKS_OPENKP_PREDICTION_H_

#include <string>
#include <tuple>
#include <vector>

#include "tasks/openkp/example.h"
#include "tasks/task/benchmark.h"

namespace etc {

// See tasks/task/benchmark.h. The phrase of n words from word s on has row n -
// 1, column s; n = 1, ..., K = kOpenkpMaxPhraseLength.
template <typename T>
struct OpenkpLogits {
  // [K, W], W the words of the longest document in the batch, at least those of
  // the example and at least K.
  T ngrams;

  static constexpr auto kMembers = std::make_tuple(&OpenkpLogits::ngrams);
};

// Returns the phrases of a document, the best first, in lower case: the texts
// of the places with the largest logits, where each text counts once
// (doc/openkp.md 7.2). Ties go to the shorter phrase, then to the earlier one.
//
// Considers only phrases inside the words that the model reads. With
// official_compatibility it considers all places, and phrases are cut off where
// the document ends.
std::vector<std::string> DecodeKeyPhrases(const OpenkpExample& example,
                                          const OpenkpLogits<LogitRow>& logits,
                                          const OpenkpOptions& options);

// The official prediction file (doc/openkp.md 7.3), a line for each url, with
// the last of its predictions:
//
//   {"url": "http://x.org", "KeyPhrases": [["green tea"], ["tea"]]}
std::string OpenkpPredictionLines(
    const ById<std::vector<std::string>>& predictions);

}  // namespace etc

#endif  // ETC_TASKS_OPENKP_PREDICTION_H_
