#include "tasks/nq/span_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace etc {
namespace {

// A word or tag of the document in a window.
struct Word {
  int64_t token = 0;
  // Its first and last piece among the long tokens.
  size_t first = 0;
  size_t last = 0;
};

// Returns the words by token.
std::vector<Word> WordsOf(const NqExample& example) {
  std::vector<Word> words;
  for (size_t i = 0; i < example.long_tokens.size(); ++i) {
    const int32_t token = example.long_tokens[i];
    if (token < 0) {
      continue;
    }
    if (words.empty() || words.back().token != token) {
      words.push_back({.token = token, .first = i});
    }
    words.back().last = i;
  }
  std::stable_sort(words.begin(), words.end(),
                   [](const Word& left, const Word& right) {
                     return left.token < right.token;
                   });
  return words;
}

// One window, with the scores of its words.
class ScoredWindow {
 public:
  ScoredWindow(const NqWindow& window, size_t index)
      : index_(index), words_(WordsOf(*window.example)) {
    for (const Word& word : words_) {
      short_starts_.push_back(
          Score(window, NqChannel::kShortStart, word.first));
      short_ends_.push_back(Score(window, NqChannel::kShortEnd, word.last));
      long_starts_.push_back(Score(window, NqChannel::kLongStart, word.first));
      long_ends_.push_back(Score(window, NqChannel::kLongEnd, word.last));
    }
  }

  // The score of a candidate, if both its ends are in the window.
  std::optional<NqScoredSpan> Long(const NqSpan& candidate) const {
    const size_t first = LowerBound(candidate.start_token);
    const size_t last = LowerBound(candidate.end_token - 1);
    if (last >= words_.size() || words_[first].token != candidate.start_token ||
        words_[last].token != candidate.end_token - 1) {
      return std::nullopt;
    }
    return Answer(first, last, long_starts_[first] + long_ends_[last]);
  }

  // The best short answer between two tokens, both included.
  std::optional<NqScoredSpan> BestShort(int64_t first_token, int64_t last_token,
                                        int64_t max_length) const {
    std::optional<NqScoredSpan> best;
    for (size_t s = LowerBound(first_token);
         s < words_.size() && words_[s].token <= last_token; ++s) {
      const int64_t limit =
          std::min(last_token, words_[s].token + max_length - 1);
      for (size_t e = s; e < words_.size() && words_[e].token <= limit; ++e) {
        const double score = short_starts_[s] + short_ends_[e];
        if (!best.has_value() || score > best->score) {
          const auto answer = Answer(s, e, score);
          best = answer.has_value() ? answer : best;
        }
      }
    }
    return best;
  }

 private:
  static double Score(const NqWindow& window, NqChannel channel, size_t at) {
    const LogitRow logits = NqChannelOf(window, channel);
    return static_cast<double>(logits[at]) - static_cast<double>(logits[0]);
  }

  size_t LowerBound(int64_t token) const {
    return static_cast<size_t>(
        std::lower_bound(words_.begin(), words_.end(), token,
                         [](const Word& word, int64_t sought) {
                           return word.token < sought;
                         }) -
        words_.begin());
  }

  std::optional<NqScoredSpan> Answer(size_t first, size_t last,
                                     double score) const {
    if (!std::isfinite(score)) {
      return std::nullopt;
    }
    return NqScoredSpan{.first = words_[first].token,
                        .last = words_[last].token,
                        .score = score,
                        .window = index_};
  }

  const size_t index_;
  std::vector<Word> words_;
  // Logits of each word, less those of no answer.
  std::vector<double> short_starts_;
  std::vector<double> short_ends_;
  std::vector<double> long_starts_;
  std::vector<double> long_ends_;
};

void KeepBetter(const std::optional<NqScoredSpan>& answer,
                std::optional<NqScoredSpan>* best) {
  if (answer.has_value() &&
      (!best->has_value() || answer->score > (*best)->score)) {
    *best = answer;
  }
}

class Selector {
 public:
  Selector(absl::Span<const NqWindow> windows, int64_t max_short_length)
      : candidates_(windows.front().example->document->candidates),
        max_short_length_(max_short_length) {
    for (size_t w = 0; w < windows.size(); ++w) {
      windows_.emplace_back(windows[w], w);
    }
  }

  std::optional<NqScoredSpan> BestLong() const {
    std::optional<NqScoredSpan> best;
    for (const ScoredWindow& window : windows_) {
      for (const NqCandidate& candidate : candidates_) {
        KeepBetter(window.Long(candidate.span), &best);
      }
    }
    return best;
  }

  std::optional<NqScoredSpan> BestShort(int64_t first, int64_t last) const {
    std::optional<NqScoredSpan> best;
    for (const ScoredWindow& window : windows_) {
      KeepBetter(window.BestShort(first, last, max_short_length_), &best);
    }
    return best;
  }

  NqSelection BestPair() const {
    NqSelection best;
    double best_sum = -std::numeric_limits<double>::infinity();
    for (const NqCandidate& candidate : candidates_) {
      NqSelection pair;
      for (const ScoredWindow& window : windows_) {
        KeepBetter(window.Long(candidate.span), &pair.long_answer);
      }
      if (!pair.long_answer.has_value()) {
        continue;
      }
      pair.short_answer =
          BestShort(pair.long_answer->first, pair.long_answer->last);
      const double sum =
          pair.long_answer->score +
          (pair.short_answer.has_value() ? pair.short_answer->score : 0);
      if (sum > best_sum) {
        best = pair;
        best_sum = sum;
      }
    }
    return best;
  }

 private:
  const std::vector<NqCandidate>& candidates_;
  const int64_t max_short_length_;
  std::vector<ScoredWindow> windows_;
};

}  // namespace

NqSelection SelectNqSpans(absl::Span<const NqWindow> windows,
                          NqSpanSelection method, int64_t max_short_length) {
  const Selector selector(windows, max_short_length);
  if (method == NqSpanSelection::kJointExhaustive) {
    return selector.BestPair();
  }
  NqSelection selection;
  selection.long_answer = selector.BestLong();
  if (method == NqSpanSelection::kDisjoint) {
    selection.short_answer =
        selector.BestShort(0, std::numeric_limits<int32_t>::max());
  } else if (selection.long_answer.has_value()) {
    selection.short_answer = selector.BestShort(selection.long_answer->first,
                                                selection.long_answer->last);
  }
  return selection;
}

}  // namespace etc
