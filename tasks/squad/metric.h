#ifndef ETC_TASKS_SQUAD_METRIC_H_
#define ETC_TASKS_SQUAD_METRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The gold answers to a question.
struct SquadGold {
  // Empty: it has no answer.
  std::vector<std::string> answers;
  // True if its record has the field, as in version 2.0.
  bool has_is_impossible = false;

  // True if its data are of version 2.0, which has such questions.
  bool is_version_2() const { return has_is_impossible || answers.empty(); }
};

// A verdict to score against SquadGold.
struct SquadVerdict {
  // Empty for no answer.
  std::string text;
  // The answer if there has to be one.
  std::string best_text;
  // The margin by which no answer beats `best_text`; absent if no answer was
  // not considered.
  std::optional<double> null_odds;
};

// The metric of version 1.1 in percent (doc/squad.md 9): "exact_match" and "f1"
// against the gold answer with the best score, 0 for a question without
// prediction.
Metrics ScoreSquad1(const ById<SquadGold>& gold,
                    const ById<SquadVerdict>& verdicts);

// Scores by version 2.0 (doc/squad.md 10): "exact", "f1" and "total", the same
// of questions with and without answer as "HasAns_..." and "NoAns_...", in
// percent but for the totals. Questions without prediction do not count.
//
// If all verdicts have null odds, also "best_exact" and "best_f1", the scores
// with the thresholds "best_exact_thresh" and "best_f1_thresh" for the odds:
// `best_text` counts where the odds are not above. Officially they are made
// from `text`; the two are equal if every question was answered.
//
// By the official rules a threshold may give less than its score: questions of
// equal odds are not grouped, it is 0 where no question is to be answered, and
// a text without words is a wrong answer to a question without one.
Metrics ScoreSquad2(const ById<SquadGold>& gold,
                    const ById<SquadVerdict>& verdicts, ScoringRules rules);

}  // namespace etc

#endif  // ETC_TASKS_SQUAD_METRIC_H_
