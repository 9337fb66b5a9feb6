#include "tasks/squad/metric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tasks/text/answer_normalization.h"

namespace etc {
namespace {

constexpr double kPercent = 100;

struct PairScores {
  double exact = 0;
  double f1 = 0;
};

// Scores a text against each gold answer and returns the best exact match and
// the best F1, each by itself.
template <typename F1>
PairScores BestOf(const std::string& text,
                  const std::vector<std::string>& answers, F1 f1) {
  const std::string normalized = NormalizeAnswer(text);
  PairScores best;
  for (const std::string& answer : answers) {
    const std::string gold = NormalizeAnswer(answer);
    best.exact = std::max(best.exact, normalized == gold ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, f1(normalized, gold));
  }
  return best;
}

// F1 of version 2.0: nothing equals nothing, and only that.
double F1OrBothEmpty(const std::string& text, const std::string& gold) {
  return text.empty() || gold.empty() ? (text == gold ? 1.0 : 0.0)
                                      : WordOverlap(text, gold).f1();
}

// A question that has a prediction, in version 2.0.
struct Scored {
  bool has_answer = false;
  double null_odds = 0;
  // Scores of the text, of the best text, and of no answer.
  PairScores scores;
  PairScores best;
  PairScores unanswered;
};

// The answers that count: those that are something after normalization, or no
// answer.
std::vector<std::string> CountedAnswers(const SquadGold& gold) {
  std::vector<std::string> answers;
  for (const std::string& answer : gold.answers) {
    if (!NormalizeAnswer(answer).empty()) {
      answers.push_back(answer);
    }
  }
  return answers.empty() ? std::vector<std::string>{""} : answers;
}

Scored ScoreQuestion(const SquadGold& gold, const SquadVerdict& verdict) {
  const std::vector<std::string> answers = CountedAnswers(gold);
  return {.has_answer = !gold.answers.empty(),
          .null_odds = verdict.null_odds.value_or(0),
          .scores = BestOf(verdict.text, answers, F1OrBothEmpty),
          .best = BestOf(verdict.best_text, answers, F1OrBothEmpty),
          .unanswered = BestOf("", answers, F1OrBothEmpty)};
}

// Adds the scores of the questions for which `counts` is true, if there are
// any.
template <typename Counts>
void AddMeans(const std::string& prefix, const std::vector<Scored>& all,
              Counts counts, Metrics* metrics) {
  PairScores sum;
  int64_t total = 0;
  for (const Scored& scored : all) {
    if (counts(scored)) {
      sum.exact += scored.scores.exact;
      sum.f1 += scored.scores.f1;
      ++total;
    }
  }
  if (total > 0) {
    metrics->insert(
        metrics->end(),
        {{absl::StrCat(prefix, "exact"), kPercent * Share(sum.exact, total)},
         {absl::StrCat(prefix, "f1"), kPercent * Share(sum.f1, total)},
         {absl::StrCat(prefix, "total"), static_cast<double>(total)}});
  }
}

// Sets the scores by which the official program looks for a threshold: of a
// question without answer only a text that is empty before normalization is
// right.
void ScoreOfficially(const SquadVerdict& verdict, Scored* scored) {
  if (!scored->has_answer) {
    const double right = verdict.best_text.empty() ? 1 : 0;
    scored->best = {.exact = right, .f1 = right};
  }
  const double right = scored->has_answer ? 0 : 1;
  scored->unanswered = {.exact = right, .f1 = right};
}

// The best mean of score `name` that a threshold can give, and the threshold.
// `sorted` by null odds. The official program does not group questions of equal
// odds, and its threshold is 0 where no question is to be answered.
void AddBestThreshold(const std::string& name, double PairScores::*score,
                      const std::vector<Scored>& sorted, ScoringRules rules,
                      Metrics* metrics) {
  const bool official = rules == ScoringRules::kOfficial;
  // Starts with nothing answered, then answers one question more each time.
  double running = 0;
  for (const Scored& scored : sorted) {
    running += scored.unanswered.*score;
  }
  double best = running;
  const double least = sorted.front().null_odds;
  double threshold =
      official ? 0
               : std::min(least - 1,
                          std::nextafter(
                              least, -std::numeric_limits<double>::infinity()));
  for (size_t i = 0; i < sorted.size(); ++i) {
    running += sorted[i].best.*score - sorted[i].unanswered.*score;
    const bool is_last_of_equals =
        i + 1 == sorted.size() || sorted[i + 1].null_odds > sorted[i].null_odds;
    if (running > best && (official || is_last_of_equals)) {
      best = running;
      threshold = sorted[i].null_odds;
    }
  }
  metrics->emplace_back(
      absl::StrCat("best_", name),
      kPercent * Share(best, static_cast<int64_t>(sorted.size())));
  metrics->emplace_back(absl::StrCat("best_", name, "_thresh"), threshold);
}

}  // namespace

Metrics ScoreSquad1(const ById<SquadGold>& gold,
                    const ById<SquadVerdict>& verdicts) {
  const auto found = PredictionsFor(gold, verdicts);
  const auto f1 = [](const std::string& text, const std::string& answer) {
    return WordOverlap(text, answer).f1();
  };
  PairScores sum;
  for (size_t i = 0; i < gold.size(); ++i) {
    if (found[i] != nullptr) {
      const PairScores scores =
          BestOf(found[i]->text, gold[i].second.answers, f1);
      sum.exact += scores.exact;
      sum.f1 += scores.f1;
    }
  }
  const auto total = static_cast<int64_t>(gold.size());
  return {{"exact_match", kPercent * Share(sum.exact, total)},
          {"f1", kPercent * Share(sum.f1, total)}};
}

Metrics ScoreSquad2(const ById<SquadGold>& gold,
                    const ById<SquadVerdict>& verdicts, ScoringRules rules) {
  const auto found = PredictionsFor(gold, verdicts);
  std::vector<Scored> all;
  bool has_null_odds = true;
  for (size_t i = 0; i < gold.size(); ++i) {
    if (const SquadVerdict* verdict = found[i]) {
      all.push_back(ScoreQuestion(gold[i].second, *verdict));
      if (rules == ScoringRules::kOfficial) {
        ScoreOfficially(*verdict, &all.back());
      }
      has_null_odds &= verdict->null_odds.has_value();
    }
  }
  Metrics metrics;
  AddMeans(
      "", all, [](const Scored&) { return true; }, &metrics);
  AddMeans(
      "HasAns_", all, [](const Scored& scored) { return scored.has_answer; },
      &metrics);
  AddMeans(
      "NoAns_", all, [](const Scored& scored) { return !scored.has_answer; },
      &metrics);
  if (has_null_odds && !all.empty()) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Scored& a, const Scored& b) {
                       return a.null_odds < b.null_odds;
                     });
    AddBestThreshold("exact", &PairScores::exact, all, rules, &metrics);
    AddBestThreshold("f1", &PairScores::f1, all, rules, &metrics);
  }
  return metrics;
}

}  // namespace etc
