#include "tasks/nq/official_spans.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

namespace etc {
namespace {

constexpr size_t kNumBest = 50;

// Indices of the largest logits, of equals the first one first; those that are
// no number come last.
std::vector<size_t> IndicesOfBest(LogitRow logits) {
  std::vector<size_t> indices(logits.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto rank = [logits](size_t i) {
    return std::isnan(logits[i]) ? -std::numeric_limits<float>::infinity()
                                 : logits[i];
  };
  const size_t count = std::min(kNumBest, indices.size());
  std::partial_sort(
      indices.begin(), indices.begin() + static_cast<int64_t>(count),
      indices.end(), [&](size_t left, size_t right) {
        return rank(left) != rank(right) ? rank(left) > rank(right)
                                         : left < right;
      });
  indices.resize(count);
  return indices;
}

using ScoredTokens = std::vector<NqScoredToken>;

// The best score, of equals the larger token.
std::optional<NqScoredToken> Best(const ScoredTokens& tokens) {
  std::optional<NqScoredToken> best;
  for (const NqScoredToken& token : tokens) {
    if (!best.has_value() || token.score > best->score ||
        (token.score == best->score && token.token > best->token)) {
      best = token;
    }
  }
  return best;
}

// The best score of the tokens from `first` up to before `limit`, of equals the
// first one.
std::optional<NqScoredToken> BestWithin(const ScoredTokens& tokens,
                                        int64_t first, int64_t limit) {
  std::optional<NqScoredToken> best;
  for (const NqScoredToken& token : tokens) {
    if (token.token >= first && token.token < limit &&
        (!best.has_value() || token.score > best->score)) {
      best = token;
    }
  }
  return best;
}

NqScoredSpan SpanOf(const NqScoredToken& start, const NqScoredToken& end) {
  return {.first = std::min(start.token, end.token),
          .last = std::max(start.token, end.token),
          .score = start.score + end.score};
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The best start, and the best end that goes with it.
NqScoredSpan JointSpan(const ScoredTokens& starts, const ScoredTokens& ends,
                       int64_t max_length) {
  const NqScoredToken start = Best(starts).value_or(NqScoredToken());
  std::optional<NqScoredToken> end =
      BestWithin(ends, start.token,
                 max_length == kNoLimit ? kNoLimit : start.token + max_length);
  end = end.has_value() ? end : Best(ends);
  return end.has_value() ? SpanOf(start, *end) : NqScoredSpan();
}

// The best start and the best end.
std::optional<NqScoredSpan> DisjointSpan(const ScoredTokens& starts,
                                         const ScoredTokens& ends) {
  const auto start = Best(starts);
  const auto end = Best(ends);
  if (!start.has_value() || !end.has_value()) {
    return std::nullopt;
  }
  return SpanOf(*start, *end);
}

// The best pair of starts and ends that are not negative and lie between two
// tokens, or else the best of each.
std::optional<NqScoredSpan> ExhaustiveSpan(const ScoredTokens& starts,
                                           const ScoredTokens& ends,
                                           const NqScoredSpan& within,
                                           int64_t max_length) {
  std::optional<NqScoredSpan> best;
  for (const NqScoredToken& start : starts) {
    for (const NqScoredToken& end : ends) {
      const bool is_allowed =
          start.score >= 0 && end.score >= 0 && start.token >= within.first &&
          start.token <= end.token && end.token <= within.last &&
          end.token - start.token < max_length;
      if (is_allowed &&
          (!best.has_value() || start.score + end.score > best->score)) {
        best = SpanOf(start, end);
      }
    }
  }
  return best.has_value() ? best : DisjointSpan(starts, ends);
}

}  // namespace

std::array<ScoredTokens, kNqNumChannels> OfficialScoredTokens(
    absl::Span<const NqWindow> windows) {
  std::array<ScoredTokens, kNqNumChannels> tokens;
  for (const NqWindow& window : windows) {
    const std::vector<int32_t>& long_tokens = window.example->long_tokens;
    for (size_t c = 0; c < tokens.size(); ++c) {
      const LogitRow logits = NqChannelOf(window, static_cast<NqChannel>(c));
      for (const size_t i : IndicesOfBest(logits)) {
        const double score =
            static_cast<double>(logits[i]) / static_cast<double>(logits[0]);
        if (i < long_tokens.size() && long_tokens[i] >= 0 &&
            std::isfinite(score)) {
          tokens[c].push_back({.score = score, .token = long_tokens[i]});
        }
      }
    }
  }
  return tokens;
}

NqSelection SelectNqSpansOfficially(absl::Span<const NqWindow> windows,
                                    NqSpanSelection method,
                                    int64_t max_short_length) {
  const auto tokens = OfficialScoredTokens(windows);
  const auto of = [&tokens](NqChannel channel) -> const ScoredTokens& {
    return tokens[static_cast<size_t>(channel)];
  };
  const ScoredTokens& long_starts = of(NqChannel::kLongStart);
  const ScoredTokens& long_ends = of(NqChannel::kLongEnd);
  const ScoredTokens& short_starts = of(NqChannel::kShortStart);
  const ScoredTokens& short_ends = of(NqChannel::kShortEnd);
  switch (method) {
    case NqSpanSelection::kJoint:
      return {.long_answer = JointSpan(long_starts, long_ends, kNoLimit),
              .short_answer =
                  JointSpan(short_starts, short_ends, max_short_length)};
    case NqSpanSelection::kDisjoint:
      return {.long_answer = DisjointSpan(long_starts, long_ends),
              .short_answer = DisjointSpan(short_starts, short_ends)};
    case NqSpanSelection::kJointExhaustive:
      break;
  }
  NqSelection selection;
  selection.long_answer = ExhaustiveSpan(
      long_starts, long_ends, {.first = 0, .last = kNoLimit}, kNoLimit);
  if (selection.long_answer.has_value()) {
    selection.short_answer = ExhaustiveSpan(
        short_starts, short_ends, *selection.long_answer, max_short_length);
  }
  return selection;
}

}  // namespace etc
