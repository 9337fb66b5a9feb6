#include "tasks/nq/metric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

// Annotators that must have given an answer for the document to have one.
constexpr int64_t kAnnotatorsNeeded = 2;

bool AnyMatches(const NqSpan& span, const std::vector<NqSpan>& others) {
  return std::any_of(others.begin(), others.end(), [&](const NqSpan& other) {
    return NqSpansMatch(span, other);
  });
}

bool AllMatch(const std::vector<NqSpan>& spans,
              const std::vector<NqSpan>& others) {
  return std::all_of(spans.begin(), spans.end(), [&](const NqSpan& span) {
    return span.is_null() || AnyMatches(span, others);
  });
}

bool HasShortAnswer(const std::vector<NqSpan>& spans, NqYesNo yes_no) {
  return yes_no != NqYesNo::kNone ||
         std::any_of(spans.begin(), spans.end(),
                     [](const NqSpan& span) { return !span.is_null(); });
}

// kAnnotatorsNeeded, or by the default rules all annotators if they are fewer.
int64_t NeededAnnotators(const std::vector<NqAnnotation>& annotations,
                         ScoringRules rules) {
  const int64_t annotators =
      std::max<int64_t>(static_cast<int64_t>(annotations.size()), 1);
  return rules == ScoringRules::kOfficial
             ? kAnnotatorsNeeded
             : std::min(kAnnotatorsNeeded, annotators);
}

void Append(const std::string& prefix, const NqThresholdScores& best,
            Metrics* scores) {
  scores->emplace_back(prefix + "f1", best.f1);
  scores->emplace_back(prefix + "precision", best.precision);
  scores->emplace_back(prefix + "recall", best.recall);
  scores->emplace_back(prefix + "threshold", best.threshold);
  for (size_t i = 0; i < kNqPrecisions.size(); ++i) {
    scores->emplace_back(
        absl::StrCat(prefix, "recall_at_precision_", kNqPrecisions[i]),
        best.recall_at_precision[i]);
  }
}

}  // namespace

bool NqSpansMatch(const NqSpan& a, const NqSpan& b) {
  const auto known = [](int64_t start, int64_t end) {
    return start >= 0 && end >= 0;
  };
  const bool same_bytes = known(a.start_byte, a.end_byte) &&
                          a.start_byte == b.start_byte &&
                          a.end_byte == b.end_byte;
  const bool same_tokens = known(a.start_token, a.end_token) &&
                           a.start_token == b.start_token &&
                           a.end_token == b.end_token;
  return same_bytes || same_tokens;
}

bool NqSpanSetsMatch(const std::vector<NqSpan>& a,
                     const std::vector<NqSpan>& b) {
  return AllMatch(a, b) && AllMatch(b, a);
}

NqVerdict JudgeLongAnswer(const std::vector<NqAnnotation>& annotations,
                          const NqPrediction& prediction, int64_t threshold) {
  const auto with_answer = std::count_if(
      annotations.begin(), annotations.end(),
      [](const NqAnnotation& gold) { return !gold.long_answer.is_null(); });
  NqVerdict verdict = {.has_gold = with_answer >= threshold,
                       .has_prediction = !prediction.long_answer.is_null(),
                       .score = prediction.long_answer_score};
  verdict.is_correct =
      verdict.has_gold && verdict.has_prediction &&
      std::any_of(annotations.begin(), annotations.end(),
                  [&](const NqAnnotation& gold) {
                    return NqSpansMatch(gold.long_answer,
                                        prediction.long_answer);
                  });
  return verdict;
}

NqVerdict JudgeShortAnswers(const std::vector<NqAnnotation>& annotations,
                            const NqPrediction& prediction, int64_t threshold) {
  const auto with_answer = std::count_if(
      annotations.begin(), annotations.end(), [](const NqAnnotation& gold) {
        return HasShortAnswer(gold.short_answers, gold.yes_no);
      });
  NqVerdict verdict = {.has_gold = with_answer >= threshold,
                       .has_prediction = HasShortAnswer(
                           prediction.short_answers, prediction.yes_no),
                       .score = prediction.short_answers_score};
  const auto is_right = [&](const NqAnnotation& gold) {
    return prediction.yes_no != NqYesNo::kNone
               ? gold.yes_no == prediction.yes_no
               : NqSpanSetsMatch(gold.short_answers, prediction.short_answers);
  };
  verdict.is_correct =
      verdict.has_gold && verdict.has_prediction &&
      std::any_of(annotations.begin(), annotations.end(), is_right);
  return verdict;
}

NqThresholdScores BestThreshold(std::vector<NqVerdict> verdicts) {
  int64_t num_gold = 0;
  for (NqVerdict& verdict : verdicts) {
    num_gold += verdict.has_gold ? 1 : 0;
    if (std::isnan(verdict.score)) {
      verdict.score = -std::numeric_limits<double>::infinity();
    }
  }
  std::sort(
      verdicts.begin(), verdicts.end(),
      [](const NqVerdict& a, const NqVerdict& b) { return a.score > b.score; });
  NqThresholdScores best;
  int64_t correct = 0;
  int64_t given = 0;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    correct += verdicts[i].is_correct ? 1 : 0;
    given += verdicts[i].has_prediction ? 1 : 0;
    if (i + 1 < verdicts.size() && verdicts[i + 1].score == verdicts[i].score) {
      continue;
    }
    const double precision = Share(static_cast<double>(correct), given);
    const double recall = Share(static_cast<double>(correct), num_gold);
    const double f1 =
        correct == 0 ? 0 : 2 * precision * recall / (precision + recall);
    if (f1 > best.f1) {
      best.f1 = f1;
      best.precision = precision;
      best.recall = recall;
      best.threshold = verdicts[i].score;
    }
    for (size_t p = 0; p < kNqPrecisions.size(); ++p) {
      if (precision >= kNqPrecisions[p]) {
        best.recall_at_precision[p] =
            std::max(best.recall_at_precision[p], recall);
      }
    }
  }
  return best;
}

Metrics ScoreNq(const ById<std::vector<NqAnnotation>>& gold,
                const ById<NqPrediction>& predictions, ScoringRules rules) {
  if (gold.empty()) {
    return {};
  }
  const auto found = PredictionsFor(gold, predictions);
  std::vector<NqVerdict> long_verdicts;
  std::vector<NqVerdict> short_verdicts;
  for (size_t i = 0; i < gold.size(); ++i) {
    const std::vector<NqAnnotation>& annotations = gold[i].second;
    const NqPrediction prediction =
        found[i] == nullptr ? NqPrediction{} : *found[i];
    const int64_t needed = NeededAnnotators(annotations, rules);
    long_verdicts.push_back(JudgeLongAnswer(annotations, prediction, needed));
    short_verdicts.push_back(
        JudgeShortAnswers(annotations, prediction, needed));
  }
  const NqThresholdScores long_best = BestThreshold(std::move(long_verdicts));
  const NqThresholdScores short_best = BestThreshold(std::move(short_verdicts));
  Metrics scores = {{"average_f1", (long_best.f1 + short_best.f1) / 2}};
  Append("long_", long_best, &scores);
  Append("short_", short_best, &scores);
  return scores;
}

double ScoreNqRecord(const std::vector<NqAnnotation>& annotations,
                     const NqPrediction& prediction, ScoringRules rules) {
  const int64_t needed = NeededAnnotators(annotations, rules);
  double sum = 0;
  for (const NqVerdict& verdict :
       {JudgeLongAnswer(annotations, prediction, needed),
        JudgeShortAnswers(annotations, prediction, needed)}) {
    const bool is_empty = !verdict.has_gold && !verdict.has_prediction;
    sum += is_empty || verdict.is_correct ? 1 : 0;
  }
  return sum / 2;
}

absl::StatusOr<std::pair<std::string, std::optional<std::vector<NqAnnotation>>>>
ParseNqGold(const std::string& text, const std::string& where) {
  using Annotations = std::vector<NqAnnotation>;
  using Gold = std::pair<int64_t, Annotations>;
  const auto read = [](JsonObjectReader& reader, Gold* gold) {
    ReadNqExampleId(reader, &gold->first);
    const auto* annotations = reader.Raw("annotations", /*required=*/false);
    if (annotations == nullptr) {
      return;
    }
    reader.Assign(ReadList<NqAnnotation>(
                      *annotations, reader.Where("annotations"), "objects",
                      [](const auto& json, const auto& place) {
                        return NqAnnotationFromJson(json, /*required=*/true,
                                                    place);
                      }),
                  &gold->second);
  };
  ETC_ASSIGN_OR_RETURN(Gold gold, ParseObject<Gold>(text, where, read));
  return std::pair(absl::StrCat(gold.first),
                   gold.second.empty()
                       ? std::nullopt
                       : std::optional<Annotations>(std::move(gold.second)));
}

}  // namespace etc
