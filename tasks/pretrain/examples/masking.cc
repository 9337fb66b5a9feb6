#include "tasks/pretrain/examples/masking.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace etc {
namespace {

// The product rounded as Python's round() does, whatever the rounding mode of
// the processor.
int64_t RoundToEven(double value) {
  const double floor = std::floor(value);
  const double above = value - floor;
  const auto whole = static_cast<int64_t>(floor);
  if (above != 0.5) {
    return above > 0.5 ? whole + 1 : whole;
  }
  return whole % 2 == 0 ? whole : whole + 1;
}

// Draws the token that the model reads in the place of `token`.
int32_t DrawReplacement(int32_t token, const MaskedLmOptions& options,
                        Draws& draws) {
  constexpr double kMaskShare = 0.8;
  constexpr double kKeptShareOfRest = 0.5;
  if (draws.Uniform() < kMaskShare) {
    return options.mask_id;
  }
  if (draws.Uniform() < kKeptShareOfRest) {
    return token;
  }
  return static_cast<int32_t>(
      draws.Integer(options.random_min_id, options.vocab_size - 1));
}

}  // namespace

int64_t NumPredictions(int64_t tokens, const MaskedLmOptions& options) {
  const int64_t rounded =
      RoundToEven(static_cast<double>(tokens) * options.rate);
  return std::min(options.max_predictions, std::max<int64_t>(1, rounded));
}

void MaskCandidates::Add(int32_t position) {
  begins_.push_back(static_cast<int32_t>(positions_.size()));
  positions_.push_back(position);
}

void MaskCandidates::Join(int32_t position) {
  if (begins_.empty()) {
    Add(position);
  } else {
    positions_.push_back(position);
  }
}

MaskedTokens MaskTokens(const MaskCandidates& candidates, int64_t want,
                        const MaskedLmOptions& options, Draws& draws,
                        std::vector<int32_t>& tokens) {
  TORCH_CHECK(
      0 <= options.random_min_id && options.random_min_id < options.vocab_size,
      "random_min_id (", options.random_min_id,
      ") should be a token of a vocabulary of ", options.vocab_size);
  std::vector<std::pair<int32_t, int32_t>> masked;  // position, token
  for (const int32_t candidate : draws.Permutation(candidates.size())) {
    const auto num_masked = static_cast<int64_t>(masked.size());
    if (num_masked >= want) {
      break;
    }
    const int32_t end = candidates.end(candidate);
    if (num_masked + end - candidates.begin(candidate) > want) {
      continue;
    }
    for (int32_t at = candidates.begin(candidate); at < end; ++at) {
      const int32_t position = candidates.positions()[static_cast<size_t>(at)];
      int32_t& token = tokens.at(static_cast<size_t>(position));
      masked.emplace_back(position, token);
      token = DrawReplacement(token, options, draws);
    }
  }
  std::sort(masked.begin(), masked.end());
  MaskedTokens result{.wanted = want};
  for (const auto& [position, token] : masked) {
    result.positions.push_back(position);
    result.labels.push_back(token);
  }
  return result;
}

}  // namespace etc
