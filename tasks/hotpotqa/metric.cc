#include "tasks/hotpotqa/metric.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tasks/hotpotqa/task.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"

namespace etc {
namespace {

// Returns true for a normalised answer that is right or wrong as a whole.
bool IsWhole(absl::string_view normalized) {
  return normalized == "yes" || normalized == "no" || normalized == "noanswer";
}

char KindOfGold(absl::string_view normalized) {
  return normalized == "yes" ? 'Y' : normalized == "no" ? 'N' : 'A';
}

// See Hotpotqa::Score.
char KindOfPrediction(absl::string_view predicted, absl::string_view gold) {
  if (predicted == "yes") {
    return 'Y';
  }
  if (predicted == "no") {
    return 'N';
  }
  if (predicted.empty()) {
    return 'E';
  }
  return KindOfGold(gold) != 'A' || predicted == gold ? 'A' : 'B';
}

// The scores of all questions added up.
class Sums {
 public:
  void Add(const HotpotqaPrediction& prediction, const HotpotqaGold& gold) {
    ++questions_;
    HotpotqaPartScore answer;
    HotpotqaPartScore facts;
    if (prediction.answer.has_value()) {
      answered_ += prediction.answer->empty() ? 0 : 1;
      answer = ScoreHotpotqaAnswer(*prediction.answer, gold.answer);
      answer_.Add(answer);
    }
    if (prediction.facts.has_value()) {
      with_facts_ += prediction.facts->empty() ? 0 : 1;
      facts = ScoreHotpotqaFacts(*prediction.facts, gold.facts);
      facts_.Add(facts);
    }
    if (prediction.answer.has_value() && prediction.facts.has_value()) {
      joint_.Add(JointHotpotqaScore(answer, facts));
    }
    const std::string normalized = NormalizeAnswer(gold.answer);
    const std::string predicted =
        NormalizeAnswer(prediction.answer.value_or(""));
    const std::string kind(1, KindOfGold(normalized));
    ++kinds_[kind];
    ++kinds_[absl::StrCat(
        kind, "_", std::string(1, KindOfPrediction(predicted, normalized)))];
  }

  Metrics Means() const {
    Metrics means;
    for (const auto& [prefix, part] :
         {std::pair("", answer_), std::pair("sp_", facts_),
          std::pair("joint_", joint_)}) {
      for (const auto& [name, sum] :
           {std::pair("em", part.exact), std::pair("f1", part.f1),
            std::pair("prec", part.precision),
            std::pair("recall", part.recall)}) {
        means.emplace_back(absl::StrCat(prefix, name), Share(sum, questions_));
      }
    }
    return means;
  }

  double JointF1() const { return Share(joint_.f1, questions_); }

  Metrics Diagnostics() const {
    Metrics shares = {
        {"answered", Share(static_cast<double>(answered_), questions_)},
        {"sp_answered", Share(static_cast<double>(with_facts_), questions_)}};
    for (const auto& [kind, count] : kinds_) {
      if (kind.size() > 1) {
        shares.emplace_back(
            absl::StrCat("kinds/", kind),
            Share(static_cast<double>(count), kinds_.at(kind.substr(0, 1))));
      }
    }
    return shares;
  }

 private:
  struct Part : F1Scores {
    double exact = 0;

    void Add(const HotpotqaPartScore& score) {
      exact += score.exact;
      f1 += score.overlap.f1();
      precision += score.overlap.precision;
      recall += score.overlap.recall;
    }
  };

  int64_t questions_ = 0;
  int64_t answered_ = 0;
  int64_t with_facts_ = 0;
  Part answer_;
  Part facts_;
  Part joint_;
  std::map<std::string, int64_t> kinds_;
};

// The prediction by threshold number `threshold`; the one as it is without a
// number.
const HotpotqaPrediction& AtThreshold(const HotpotqaPrediction& prediction,
                                      std::optional<size_t> threshold) {
  return threshold.has_value() ? prediction.by_threshold.at(*threshold)
                               : prediction;
}

Sums SumsOf(const ById<HotpotqaGold>& gold,
            const ById<HotpotqaPrediction>& predictions,
            std::optional<size_t> threshold) {
  const std::vector<const HotpotqaPrediction*> found =
      PredictionsFor(gold, predictions);
  const HotpotqaPrediction none;
  Sums sums;
  for (size_t i = 0; i < gold.size(); ++i) {
    sums.Add(found[i] == nullptr ? none : AtThreshold(*found[i], threshold),
             gold[i].second);
  }
  return sums;
}

// Returns nothing if there is no choice.
std::optional<size_t> BestThreshold(
    const ById<HotpotqaGold>& gold,
    const ById<HotpotqaPrediction>& predictions) {
  if (gold.empty() || predictions.empty() ||
      predictions.front().second.by_threshold.empty()) {
    return std::nullopt;
  }
  size_t best = 0;
  double best_f1 = -1;
  for (size_t i = 0; i < kHotpotqaThresholds.size(); ++i) {
    const double f1 = SumsOf(gold, predictions, i).JointF1();
    if (f1 > best_f1) {
      best = i;
      best_f1 = f1;
    }
  }
  return best;
}

}  // namespace

HotpotqaPartScore ScoreHotpotqaAnswer(absl::string_view predicted,
                                      absl::string_view gold) {
  const std::string normalized = NormalizeAnswer(predicted);
  const std::string right = NormalizeAnswer(gold);
  HotpotqaPartScore score{.exact = normalized == right ? 1.0 : 0.0};
  if (normalized == right || (!IsWhole(normalized) && !IsWhole(right))) {
    score.overlap = WordOverlap(normalized, right);
  }
  return score;
}

HotpotqaPartScore ScoreHotpotqaFacts(const std::vector<HotpotqaFact>& predicted,
                                     const std::vector<HotpotqaFact>& gold) {
  const std::set<HotpotqaFact> found(predicted.begin(), predicted.end());
  const std::set<HotpotqaFact> right(gold.begin(), gold.end());
  int64_t shared = 0;
  for (const HotpotqaFact& fact : found) {
    shared += right.contains(fact) ? 1 : 0;
  }
  return {.exact = found == right ? 1.0 : 0.0,
          .overlap = {.precision = Share(static_cast<double>(shared),
                                         static_cast<int64_t>(found.size())),
                      .recall = Share(static_cast<double>(shared),
                                      static_cast<int64_t>(right.size()))}};
}

HotpotqaPartScore JointHotpotqaScore(const HotpotqaPartScore& answer,
                                     const HotpotqaPartScore& facts) {
  return {.exact = answer.exact * facts.exact,
          .overlap = {
              .precision = answer.overlap.precision * facts.overlap.precision,
              .recall = answer.overlap.recall * facts.overlap.recall}};
}

Scores Hotpotqa::Score(const Answers& answers) const {
  const std::optional<size_t> best =
      BestThreshold(answers.gold, answers.predictions);
  const Sums sums = SumsOf(answers.gold, answers.predictions, best);
  Scores scores = {.metrics = sums.Means(), .diagnostics = sums.Diagnostics()};
  if (best.has_value()) {
    scores.metrics.emplace_back("threshold", kHotpotqaThresholds[*best]);
  }
  return scores;
}

std::string Hotpotqa::Remark(const Answers& answers) const {
  const std::optional<size_t> best =
      BestThreshold(answers.gold, answers.predictions);
  if (!best.has_value()) {
    return "";
  }
  const Sums own = SumsOf(answers.gold, answers.predictions, std::nullopt);
  return own.JointF1() >=
                 SumsOf(answers.gold, answers.predictions, best).JointF1()
             ? ""
             : absl::StrCat(
                   "the scores are those of threshold ",
                   kHotpotqaThresholds[*best], "; predict takes ",
                   options().supporting_fact_threshold, ", which has ",
                   FormatMainScore(own.Means(), main_metric()),
                   ", unless --set hotpotqa.supporting_fact_threshold=",
                   kHotpotqaThresholds[*best]);
}

ById<HotpotqaPrediction> WithBestHotpotqaThreshold(
    const ById<HotpotqaGold>& gold,
    const ById<HotpotqaPrediction>& predictions) {
  const std::optional<size_t> best = BestThreshold(gold, predictions);
  ById<HotpotqaPrediction> chosen;
  for (const auto& [id, prediction] : predictions) {
    chosen.emplace_back(id, AtThreshold(prediction, best));
  }
  return chosen;
}

}  // namespace etc
