#ifndef ETC_ETC_ENCODER_DECODER_BEAM_SEARCH_H_
#define ETC_ETC_ENCODER_DECODER_BEAM_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace etc {

// fairseq's beam search (doc/translation.md 7).
struct BeamSearchOptions {
  // k, from 1 to V - 1: hypotheses that are continued, and that end a search
  // once they are finished.
  int64_t beam_size = 5;
  // alpha: a finished hypothesis of n tokens, the end among them, scores (sum
  // of log-probabilities) / n^alpha.
  double length_penalty = 1.0;
  // Subtracted from the log-probability of kUnknownId.
  double unknown_penalty = 0.0;
  // The fewest and the most tokens in front of the end.
  int64_t min_length = 1;
  int64_t max_length = 200;
  // Hypotheses that are returned, at most beam_size.
  int64_t num_best = 1;
};

// A finished translation.
struct BeamHypothesis {
  std::vector<int64_t> tokens = {};  // the last is kEndId
  double score = 0;                  // log-probability / length^length_penalty
  double log_probability = 0;        // in nats, with the unknown penalty
};

// A step of a search: the hypotheses that are continued, `width` for each
// sentence that is still searched, in order of sentences.
struct BeamStep {
  int64_t width = 1;
  // Places of these sentences among those of the step before (in the first:
  // among all).
  std::vector<int64_t> sentences = {};
  // Rows of the step before that the hypotheses continue (in the first: their
  // sentences), and their last tokens (kEndId, with which decoders begin).
  std::vector<int64_t> parents = {};
  std::vector<int64_t> tokens = {};
};

// Gives the log-probabilities of the next token, [rows, vocabulary] row-major.
// The memory is read before the next call.
using NextTokens = std::function<const float*(const BeamStep& step)>;

// kInvalidArgument, naming the option, for values out of range; `vocabulary` is
// V, the number of tokens.
absl::Status CheckBeamSearchOptions(const BeamSearchOptions& options,
                                    int64_t vocabulary,
                                    const std::string& source);

// Searches translations of `sentences` sentences at once. Of each, num_best
// hypotheses or as many as were found, best first.
//
//   hypotheses = {(empty, 0)}
//   for step = 0 .. max_length:
//     candidates = all (hypothesis, next token), but padding; the end alone at
//         max_length, and not before min_length
//     the 2 k best are ranked; of equal ones the lower hypothesis, then the
//         lower token comes first
//     ranks below k that end are finished, while fewer than k are
//     ranks from k on that end are dropped
//     the k best of the others go on
//     a sentence with k finished hypotheses is done
//
// A sentence's result does not depend on the others. Sums of log-probabilities
// are in double. Finished hypotheses of equal score stay in the order in which
// they were found. Options have passed CheckBeamSearchOptions. Throws what
// `next` throws.
std::vector<std::vector<BeamHypothesis>> BeamSearch(
    const BeamSearchOptions& options, int64_t vocabulary, int64_t sentences,
    const NextTokens& next);

}  // namespace etc

#endif  // ETC_ETC_ENCODER_DECODER_BEAM_SEARCH_H_
