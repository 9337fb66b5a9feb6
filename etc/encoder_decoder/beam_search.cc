#include "etc/encoder_decoder/beam_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/parallel_tasks.h"
#include "base/status_macros.h"
#include "etc/encoder_decoder/config.h"

namespace etc {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// One token behind one of the hypotheses of a sentence.
struct BeamCandidate {
  double sum = kImpossible;
  int64_t hypothesis = 0;
  int64_t token = 0;
};

struct OpenHypothesis {
  std::vector<int64_t> tokens;
  double sum = 0;
};

// The search of one sentence.
struct SentenceSearch {
  std::vector<OpenHypothesis> open = {OpenHypothesis()};
  std::vector<BeamHypothesis> finished;
  // The hypothesis that each open one continues.
  std::vector<int64_t> parents = {0};

  bool is_done(int64_t beam) const {
    return static_cast<int64_t>(finished.size()) == beam;
  }
};

// Collects the best of many possible candidates that come in order of
// (hypothesis, token): of equal ones the first stays in front.
class BestCandidates {
 public:
  explicit BestCandidates(size_t most) : most_(most) {}

  // A candidate is taken only if its sum is above this.
  double bound() const {
    return best_.size() < most_ ? kImpossible : best_.back().sum;
  }
  void Offer(const BeamCandidate& candidate) {
    if (!(candidate.sum > bound())) {
      return;
    }
    if (best_.size() == most_) {
      best_.pop_back();
    }
    const auto place =
        std::upper_bound(best_.begin(), best_.end(), candidate,
                         [](const BeamCandidate& a, const BeamCandidate& b) {
                           return a.sum > b.sum;
                         });
    best_.insert(place, candidate);
  }
  const std::vector<BeamCandidate>& best() const { return best_; }

 private:
  const size_t most_;
  std::vector<BeamCandidate> best_;
};

// One step of one sentence.
class SentenceStep {
 public:
  SentenceStep(const BeamSearchOptions& options, int64_t vocabulary,
               int64_t step)
      : options_(options), vocabulary_(vocabulary), step_(step) {}

  // `log_probabilities`: [open hypotheses, vocabulary].
  void Run(const float* log_probabilities, SentenceSearch* search) const {
    const std::vector<BeamCandidate> ranked = Rank(log_probabilities, *search);
    const auto beam = static_cast<size_t>(options_.beam_size);
    std::vector<OpenHypothesis> open;
    std::vector<int64_t> parents;
    for (size_t rank = 0; rank < ranked.size(); ++rank) {
      const BeamCandidate& candidate = ranked[rank];
      const OpenHypothesis& hypothesis =
          search->open[static_cast<size_t>(candidate.hypothesis)];
      if (candidate.token != kEndId) {
        if (open.size() < beam) {
          open.push_back(Continued(hypothesis, candidate));
          parents.push_back(candidate.hypothesis);
        }
      } else if (rank < beam && search->finished.size() < beam &&
                 candidate.sum > kImpossible) {
        Finish(Continued(hypothesis, candidate), search);
      }
    }
    // As many for each sentence: those in addition lead nowhere.
    while (open.size() < beam) {
      open.push_back({.tokens = open.empty() ? std::vector<int64_t>{kEndId}
                                             : open.front().tokens,
                      .sum = kImpossible});
      parents.push_back(parents.empty() ? 0 : parents.front());
    }
    search->open = std::move(open);
    search->parents = std::move(parents);
  }

 private:
  // The log-probability of one of the special tokens, the first of the row.
  double Special(const float* row, int64_t token) const {
    const bool is_possible =
        token == kEndId ? step_ >= options_.min_length
                        : token != kPaddingId && step_ < options_.max_length;
    if (!is_possible) {
      return kImpossible;
    }
    const auto log_probability = static_cast<double>(row[token]);
    return token == kUnknownId ? log_probability - options_.unknown_penalty
                               : log_probability;
  }

  std::vector<BeamCandidate> Rank(const float* log_probabilities,
                                  const SentenceSearch& search) const {
    const auto hypotheses = static_cast<int64_t>(search.open.size());
    BestCandidates best(static_cast<size_t>(
        std::min(2 * options_.beam_size, hypotheses * vocabulary_ - 1)));
    for (int64_t h = 0; h < hypotheses; ++h) {
      const float* const row = log_probabilities + h * vocabulary_;
      const double sum = search.open[static_cast<size_t>(h)].sum;
      for (int64_t token = 0; token <= kUnknownId; ++token) {
        best.Offer({.sum = sum + Special(row, token),
                    .hypothesis = h,
                    .token = token});
      }
      if (step_ == options_.max_length) {
        continue;  // the end alone
      }
      // Nearly all of a large vocabulary end here.
      double bound = best.bound();
      for (int64_t token = kUnknownId + 1; token < vocabulary_; ++token) {
        const double longer = sum + static_cast<double>(row[token]);
        if (longer > bound) {
          best.Offer({.sum = longer, .hypothesis = h, .token = token});
          bound = best.bound();
        }
      }
    }
    return best.best();
  }

  static OpenHypothesis Continued(const OpenHypothesis& hypothesis,
                                  const BeamCandidate& candidate) {
    OpenHypothesis longer = {.tokens = hypothesis.tokens, .sum = candidate.sum};
    longer.tokens.push_back(candidate.token);
    return longer;
  }

  void Finish(OpenHypothesis hypothesis, SentenceSearch* search) const {
    const double length = static_cast<double>(step_ + 1);
    search->finished.push_back(
        {.tokens = std::move(hypothesis.tokens),
         .score = hypothesis.sum / std::pow(length, options_.length_penalty),
         .log_probability = hypothesis.sum});
  }

  const BeamSearchOptions& options_;
  const int64_t vocabulary_;
  const int64_t step_;
};

// The step that the open sentences, `open`, ask for. `places` and
// `width_before` are of the step before: the place of each open sentence, and
// the hypotheses of a sentence.
BeamStep StepOf(const std::vector<SentenceSearch>& searches,
                const std::vector<size_t>& open,
                const std::vector<int64_t>& places, int64_t width_before) {
  BeamStep step = {.width = static_cast<int64_t>(searches[open[0]].open.size()),
                   .sentences = places};
  for (size_t i = 0; i < open.size(); ++i) {
    const SentenceSearch& search = searches[open[i]];
    for (size_t h = 0; h < search.open.size(); ++h) {
      const OpenHypothesis& hypothesis = search.open[h];
      step.parents.push_back(places[i] * width_before + search.parents[h]);
      step.tokens.push_back(
          hypothesis.tokens.empty() ? kEndId : hypothesis.tokens.back());
    }
  }
  return step;
}

std::vector<BeamHypothesis> BestOf(SentenceSearch search, int64_t num_best) {
  std::stable_sort(search.finished.begin(), search.finished.end(),
                   [](const BeamHypothesis& a, const BeamHypothesis& b) {
                     return a.score > b.score;
                   });
  if (static_cast<int64_t>(search.finished.size()) > num_best) {
    search.finished.resize(static_cast<size_t>(num_best));
  }
  return std::move(search.finished);
}

}  // namespace

absl::Status CheckBeamSearchOptions(const BeamSearchOptions& options,
                                    int64_t vocabulary,
                                    const std::string& source) {
  if (vocabulary <= kUnknownId + 1) {
    return InvalidArgument(source,
                           ": the vocabulary should have more than the 4 "
                           "special ids, but has ",
                           vocabulary);
  }
  FieldMistakes mistakes(source);
  mistakes.Check(
      options.beam_size >= 1 && options.beam_size < vocabulary, "beam_size",
      absl::StrCat("from 1 to ", vocabulary - 1, " (the vocabulary but one)"),
      options.beam_size);
  mistakes.Check(std::isfinite(options.length_penalty), "length_penalty",
                 "a finite number", options.length_penalty);
  mistakes.Check(std::isfinite(options.unknown_penalty), "unknown_penalty",
                 "a finite number", options.unknown_penalty);
  mistakes.Check(options.min_length >= 0, "min_length", "at least 0",
                 options.min_length);
  mistakes.Check(options.max_length >= options.min_length, "max_length",
                 absl::StrCat("at least min_length, ", options.min_length),
                 options.max_length);
  mistakes.Check(options.num_best >= 1 && options.num_best <= options.beam_size,
                 "num_best",
                 absl::StrCat("from 1 to beam_size, ", options.beam_size),
                 options.num_best);
  return mistakes.status();
}

std::vector<std::vector<BeamHypothesis>> BeamSearch(
    const BeamSearchOptions& options, int64_t vocabulary, int64_t sentences,
    const NextTokens& next) {
  std::vector<SentenceSearch> searches(static_cast<size_t>(sentences));
  std::vector<size_t> open;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < sentences; ++i) {
    open.push_back(static_cast<size_t>(i));
    places.push_back(i);
  }
  int64_t width = 1;
  for (int64_t step = 0; step <= options.max_length && !open.empty(); ++step) {
    const BeamStep asked = StepOf(searches, open, places, width);
    width = asked.width;
    const float* const log_probabilities = next(asked);
    const SentenceStep of_sentence(options, vocabulary, step);
    ForEachTask(static_cast<int64_t>(open.size()), /*floats=*/0,
                [&](int64_t i, float*) {
                  of_sentence.Run(log_probabilities + i * width * vocabulary,
                                  &searches[open[static_cast<size_t>(i)]]);
                });
    std::vector<size_t> still_open;
    places.clear();
    for (size_t i = 0; i < open.size(); ++i) {
      if (!searches[open[i]].is_done(options.beam_size)) {
        still_open.push_back(open[i]);
        places.push_back(static_cast<int64_t>(i));
      }
    }
    open = std::move(still_open);
  }
  std::vector<std::vector<BeamHypothesis>> results;
  for (SentenceSearch& search : searches) {
    results.push_back(BestOf(std::move(search), options.num_best));
  }
  return results;
}

}  // namespace etc
