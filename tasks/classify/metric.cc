#include "tasks/classify/metric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/label_metrics.h"
#include "tasks/task/label_table.h"

namespace etc {
namespace {

// Gold and prediction of each document that has both.
struct Pair {
  const ClassifyAnswer& gold;
  const ClassifyAnswer& predicted;
  const std::vector<std::pair<std::string, double>>& probabilities;
};

std::vector<Pair> Pairs(const ById<ClassifyAnswer>& gold,
                        const ById<ClassifyPrediction>& predictions) {
  const auto found = PredictionsFor(gold, predictions);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < gold.size(); ++i) {
    if (found[i] != nullptr) {
      pairs.push_back(
          {gold[i].second, found[i]->answer, found[i]->probabilities});
    }
  }
  return pairs;
}

std::map<std::string, LabelCounts> CountLabels(const std::vector<Pair>& pairs) {
  std::map<std::string, LabelCounts> counts;
  for (const auto& [gold, predicted, probabilities] : pairs) {
    for (const std::string& label : gold.labels) {
      ++counts[label].gold;
    }
    for (const std::string& label : predicted.labels) {
      ++counts[label].predicted;
    }
    std::vector<std::string> right;
    std::set_intersection(gold.labels.begin(), gold.labels.end(),
                          predicted.labels.begin(), predicted.labels.end(),
                          std::back_inserter(right));
    for (const std::string& label : right) {
      ++counts[label].right;
    }
  }
  return counts;
}

double MicroF1(const std::map<std::string, LabelCounts>& labels) {
  LabelCounts sum;
  for (const auto& [label, counts] : labels) {
    sum.right += counts.right;
    sum.gold += counts.gold;
    sum.predicted += counts.predicted;
  }
  return sum.f1();
}

double MacroF1(const std::map<std::string, LabelCounts>& labels) {
  double sum = 0;
  for (const auto& [label, counts] : labels) {
    sum += counts.f1();
  }
  return Share(sum, static_cast<int64_t>(labels.size()));
}

// The largest micro F1 of all thresholds, and the largest threshold that gives
// it; nothing where a prediction has no probabilities, or all of them are 0.
std::optional<std::pair<double, double>> BestMicroF1(
    const std::vector<Pair>& pairs) {
  LabelCounts counts;
  std::vector<std::pair<double, bool>> candidates;  // and whether it is right
  for (const auto& [gold, predicted, probabilities] : pairs) {
    counts.gold += static_cast<int64_t>(gold.labels.size());
    if (probabilities.empty()) {
      return std::nullopt;
    }
    for (const auto& [label, probability] : probabilities) {
      candidates.emplace_back(probability,
                              absl::c_binary_search(gold.labels, label));
    }
  }
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  std::optional<std::pair<double, double>> best;
  for (size_t i = 0; i < candidates.size() && candidates[i].first > 0; ++i) {
    ++counts.predicted;
    counts.right += candidates[i].second ? 1 : 0;
    const double next = i + 1 < candidates.size() ? candidates[i + 1].first : 0;
    // Equal probabilities are predicted together.
    if (next < candidates[i].first &&
        (!best.has_value() || counts.f1() > best->first)) {
      best = {counts.f1(), (candidates[i].first + next) / 2};
    }
  }
  return best;
}

// The share of documents whose labels are those of the gold.
double Exact(const std::vector<Pair>& pairs, size_t documents) {
  const auto right =
      std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) {
        return pair.gold.labels == pair.predicted.labels;
      });
  return Share(static_cast<double>(right), static_cast<int64_t>(documents));
}

void AddConfusion(const std::vector<Pair>& pairs, Metrics* metrics) {
  std::map<std::pair<std::string, std::string>, int64_t> cells;
  for (const auto& [gold, predicted, probabilities] : pairs) {
    ++cells[{gold.labels.at(0), predicted.labels.at(0)}];
  }
  for (const auto& [cell, count] : cells) {
    metrics->emplace_back(absl::StrCat("confusion[", LabelInName(cell.first),
                                       ",", LabelInName(cell.second), "]"),
                          static_cast<double>(count));
  }
}

double Mcc(const std::vector<Pair>& pairs) {
  std::vector<std::string> gold;
  std::vector<std::string> predicted;
  gold.reserve(pairs.size());
  predicted.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    gold.push_back(pair.gold.labels.at(0));
    predicted.push_back(pair.predicted.labels.at(0));
  }
  return MatthewsCorrelation(gold, predicted);
}

// Errors of numbers near the largest ones are beyond them.
double Finite(double error) {
  return std::min(error, std::numeric_limits<double>::max());
}

Scores ScoreNumbers(const std::vector<Pair>& pairs) {
  std::vector<double> gold;
  std::vector<double> predicted;
  gold.reserve(pairs.size());
  predicted.reserve(pairs.size());
  double squares = 0;
  double distances = 0;
  for (const Pair& pair : pairs) {
    gold.push_back(pair.gold.number);
    predicted.push_back(pair.predicted.number);
    const double distance = pair.gold.number - pair.predicted.number;
    squares += distance * distance;
    distances += std::abs(distance);
  }
  const auto size = static_cast<int64_t>(pairs.size());
  return {.metrics = {{"pearson", PearsonCorrelation(gold, predicted)},
                      {"spearman", SpearmanCorrelation(gold, predicted)},
                      {"mse", Finite(Share(squares, size))},
                      {"mae", Finite(Share(distances, size))}}};
}

}  // namespace

Scores ScoreClassify(const ById<ClassifyAnswer>& gold,
                     const ById<ClassifyPrediction>& predictions,
                     ClassifyType type) {
  const std::vector<Pair> pairs = Pairs(gold, predictions);
  if (type == ClassifyType::kNumber) {
    return ScoreNumbers(pairs);
  }
  const std::map<std::string, LabelCounts> labels = CountLabels(pairs);
  const double micro_f1 = MicroF1(labels);
  const double macro_f1 = MacroF1(labels);
  const double exact = Exact(pairs, gold.size());
  Scores scores = {.diagnostics = LabelTable(labels)};
  if (type == ClassifyType::kSeveral) {
    scores.metrics = {
        {"micro_f1", micro_f1}, {"macro_f1", macro_f1}, {"exact_match", exact}};
    if (const auto best = BestMicroF1(pairs)) {
      scores.metrics.emplace_back("best_micro_f1", best->first);
      scores.metrics.emplace_back("best_micro_f1_thresh", best->second);
    }
    return scores;
  }
  scores.metrics = {{"accuracy", exact},
                    {"macro_f1", macro_f1},
                    {"micro_f1", micro_f1},
                    {"mcc", Mcc(pairs)}};
  AddConfusion(pairs, &scores.diagnostics);
  return scores;
}

std::string ClassifyRemark(const ById<ClassifyAnswer>& gold,
                           const ById<ClassifyPrediction>& predictions,
                           ClassifyType type) {
  std::string same = SameAnswersRemark(gold, std::identity(), predictions,
                                       &ClassifyPrediction::answer);
  if (same.empty() || type != ClassifyType::kSeveral ||
      !predictions.front().second.answer.labels.empty()) {
    return same;
  }
  const auto best = BestMicroF1(Pairs(gold, predictions));
  return absl::StrCat(
      "no label of any prediction reaches the threshold",
      best.has_value() ? absl::StrFormat("; best_micro_f1 %s at %.3g",
                                         FormatScore(best->first), best->second)
                       : "");
}

}  // namespace etc
