#include "tasks/squad/prediction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "tasks/text/answer_projection.h"
#include "tasks/text/text_folding.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

// Both ends of a candidate, positions in a window. That for no answer is (0,
// 0).
struct Ends {
  const SquadExample* example = nullptr;
  int64_t start = 0;
  int64_t end = 0;
  double start_logit = 0;
  double end_logit = 0;

  double score() const { return start_logit + end_logit; }
};

// The places of the largest of `logits`, at most `most`; of equals the first.
std::vector<size_t> LargestFirst(const std::vector<double>& logits,
                                 int64_t most) {
  std::vector<size_t> places(logits.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const auto kept = std::min(places.size(), static_cast<size_t>(most));
  std::partial_sort(places.begin(), places.begin() + static_cast<int64_t>(kept),
                    places.end(), [&logits](size_t a, size_t b) {
                      return logits[a] != logits[b] ? logits[a] > logits[b]
                                                    : a < b;
                    });
  places.resize(kept);
  return places;
}

// Returns true if a window's positions `start` to `end` are an answer.
bool IsAnswer(const SquadExample& example, int64_t start, int64_t end,
              int64_t max_length) {
  return example.PieceAt(start).has_value() &&
         example.PieceAt(end).has_value() &&
         example.has_most_context[static_cast<size_t>(
             start - example.first_position())] &&
         end >= start && end - start < max_length;
}

void AddCandidates(const SquadWindowLogits& window, const SquadOptions& options,
                   std::vector<Ends>* candidates) {
  const std::vector<size_t> ends =
      LargestFirst(window.ends, options.n_best_size);
  for (const size_t start : LargestFirst(window.starts, options.n_best_size)) {
    for (const size_t end : ends) {
      if (IsAnswer(*window.example, static_cast<int64_t>(start),
                   static_cast<int64_t>(end), options.max_answer_length)) {
        candidates->push_back({.example = window.example.get(),
                               .start = static_cast<int64_t>(start),
                               .end = static_cast<int64_t>(end),
                               .start_logit = window.starts[start],
                               .end_logit = window.ends[end]});
      }
    }
  }
}

// No answer: the window that makes it least likely decides. A window without
// pieces has no say.
Ends NoAnswer(const std::vector<SquadWindowLogits>& windows) {
  Ends least;
  bool is_first = true;
  for (const SquadWindowLogits& window : windows) {
    const Ends ends = {.start_logit = window.starts.front(),
                       .end_logit = window.ends.front()};
    if (window.example->part.length > 0 &&
        (is_first || ends.score() < least.score())) {
      least = ends;
      is_first = false;
    }
  }
  return least;
}

// Returns the context from the first byte of a piece to the last of another
// one and of the combining marks behind it.
std::string TextBetween(const SquadDocument& document, size_t first,
                        size_t last) {
  const int64_t begin = document.pieces[first].bytes.begin;
  const absl::string_view context = document.context;
  const int64_t end =
      BehindMarks(context, std::max(begin, document.pieces[last].bytes.end));
  return std::string(StripWhiteSpace(context.substr(
      static_cast<size_t>(begin), static_cast<size_t>(end - begin))));
}

// The text of an answer (doc/squad.md 7).
std::string TextOf(const Ends& ends, const SquadOptions& options,
                   const Tokenizer& tokenizer) {
  const SquadDocument& document = *ends.example->document;
  const auto first = static_cast<size_t>(*ends.example->PieceAt(ends.start));
  const auto last = static_cast<size_t>(*ends.example->PieceAt(ends.end));
  const std::string words =
      JoinSquadWords(document.context, document.words,
                     {.first = document.pieces[first].word,
                      .last = document.pieces[last].word});
  if (options.input.tokenizer_kind != TokenizerKind::kWordPiece) {
    const std::string text = TextBetween(document, first, last);
    return text.empty() ? words : text;
  }
  std::vector<int32_t> ids;
  ids.reserve(last - first + 1);
  for (size_t i = first; i <= last; ++i) {
    ids.push_back(document.pieces[i].id);
  }
  return ProjectAnswer(WordsOfPieces(ids, tokenizer), words,
                       BasicOptionsOf(tokenizer));
}

// Returns the candidates with different texts, at most n_best_size, and no
// answer, which has a place of its own in version 2.0.
std::vector<SquadCandidate> DifferentTexts(const std::vector<Ends>& sorted,
                                           const std::optional<Ends>& no_answer,
                                           const SquadOptions& options,
                                           const Tokenizer& tokenizer) {
  const auto most = static_cast<size_t>(options.n_best_size);
  std::vector<SquadCandidate> different;
  std::set<std::string> texts;
  const auto add = [&](const Ends& ends, std::string text) {
    if (texts.insert(text).second) {
      different.push_back({.text = std::move(text),
                           .start_logit = ends.start_logit,
                           .end_logit = ends.end_logit});
    }
  };
  for (const Ends& ends : sorted) {
    if (different.size() >= most) {
      break;
    }
    add(ends, ends.start > 0 ? TextOf(ends, options, tokenizer) : "");
  }
  if (no_answer.has_value()) {
    add(*no_answer, "");
  }
  if (different.empty()) {
    different.push_back({.text = "empty"});
  }
  return different;
}

void SetProbabilities(std::vector<SquadCandidate>* candidates) {
  double largest = candidates->front().score();
  for (const SquadCandidate& candidate : *candidates) {
    largest = std::max(largest, candidate.score());
  }
  double sum = 0;
  for (SquadCandidate& candidate : *candidates) {
    candidate.probability = std::exp(candidate.score() - largest);
    sum += candidate.probability;
  }
  for (SquadCandidate& candidate : *candidates) {
    candidate.probability /= sum;
  }
}

}  // namespace

SquadPrediction DecodeSquad(std::vector<SquadWindowLogits> windows,
                            const SquadOptions& options,
                            const Tokenizer& tokenizer) {
  std::stable_sort(windows.begin(), windows.end(),
                   [](const SquadWindowLogits& a, const SquadWindowLogits& b) {
                     return a.example->window < b.example->window;
                   });
  std::vector<Ends> candidates;
  for (const SquadWindowLogits& window : windows) {
    AddCandidates(window, options, &candidates);
  }
  std::optional<Ends> no_answer;
  if (options.version == SquadVersion::k2) {
    no_answer = NoAnswer(windows);
    candidates.push_back(*no_answer);
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Ends& a, const Ends& b) { return a.score() > b.score(); });
  SquadPrediction prediction = {
      .candidates = DifferentTexts(candidates, no_answer, options, tokenizer)};
  SetProbabilities(&prediction.candidates);
  ChooseSquadText(options, &prediction);
  return prediction;
}

SquadVerdict JudgeSquad(const SquadPrediction& prediction) {
  // Officially the score of no answer before any is known.
  constexpr double kOnlyNoAnswer = 1e6;
  if (prediction.candidates.empty()) {
    return {.text = prediction.text, .best_text = prediction.text};
  }
  const SquadCandidate* no_answer = nullptr;
  const SquadCandidate* best = nullptr;
  for (const SquadCandidate& candidate : prediction.candidates) {
    const SquadCandidate*& place = candidate.text.empty() ? no_answer : best;
    place = place == nullptr ? &candidate : place;
  }
  if (best == nullptr) {
    return {.text = prediction.text, .null_odds = kOnlyNoAnswer};
  }
  SquadVerdict verdict = {.text = prediction.text, .best_text = best->text};
  if (no_answer != nullptr) {
    verdict.null_odds =
        no_answer->score() - best->start_logit - best->end_logit;
  }
  return verdict;
}

void ChooseSquadText(const SquadOptions& options, SquadPrediction* prediction) {
  const SquadVerdict verdict = JudgeSquad(*prediction);
  const double threshold = options.null_score_diff_threshold.value_or(0);
  // Odds that are absent are above nothing.
  prediction->text = verdict.null_odds > threshold ? "" : verdict.best_text;
}

}  // namespace etc
