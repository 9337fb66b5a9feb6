#include "tasks/glue/metric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>

#include "tasks/scoring.h"

namespace etc {
namespace {

int64_t CountEqual(GlueLabels gold, GlueLabels predicted) {
  int64_t equal = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    equal += gold[i] == predicted[i] ? 1 : 0;
  }
  return equal;
}

double Mean(absl::Span<const double> values) {
  return Share(std::accumulate(values.begin(), values.end(), 0.0),
               static_cast<int64_t>(values.size()));
}

// From 1 on; equal values have the mean of their ranks.
std::vector<double> Ranks(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    // Ranks begin + 1 to end.
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) {
      ranks[order[begin]] = rank;
    }
  }
  return ranks;
}

}  // namespace

double LabelAccuracy(GlueLabels gold, GlueLabels predicted) {
  return Share(static_cast<double>(CountEqual(gold, predicted)),
               static_cast<int64_t>(gold.size()));
}

double LabelF1(GlueLabels gold, GlueLabels predicted,
               const std::string& positive) {
  int64_t right = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    right += gold[i] == positive && predicted[i] == positive ? 1 : 0;
  }
  return Share(2 * static_cast<double>(right),
               std::count(gold.begin(), gold.end(), positive) +
                   std::count(predicted.begin(), predicted.end(), positive));
}

double MatthewsCorrelation(GlueLabels gold, GlueLabels predicted) {
  struct Counts {
    double gold = 0;
    double predicted = 0;
  };
  std::map<std::string, Counts> classes;
  for (size_t i = 0; i < gold.size(); ++i) {
    ++classes[gold[i]].gold;
    ++classes[predicted[i]].predicted;
  }
  // Doubles: products of QQP's counts exceed 64 bits.
  const auto size = static_cast<double>(gold.size());
  double both = 0;
  double gold_squares = 0;
  double predicted_squares = 0;
  for (const auto& [label, counts] : classes) {
    both += counts.gold * counts.predicted;
    gold_squares += counts.gold * counts.gold;
    predicted_squares += counts.predicted * counts.predicted;
  }
  const double root = std::sqrt(size * size - predicted_squares) *
                      std::sqrt(size * size - gold_squares);
  const auto right = static_cast<double>(CountEqual(gold, predicted));
  return root > 0 ? (right * size - both) / root : 0;
}

double PearsonCorrelation(absl::Span<const double> a,
                          absl::Span<const double> b) {
  const double mean_a = Mean(a);
  const double mean_b = Mean(b);
  double covariance = 0;
  double variance_a = 0;
  double variance_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    covariance += (a[i] - mean_a) * (b[i] - mean_b);
    variance_a += (a[i] - mean_a) * (a[i] - mean_a);
    variance_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const auto is_constant = [](absl::Span<const double> values) {
    // The mean of equal values may differ from them in the last bit.
    return std::adjacent_find(values.begin(), values.end(),
                              std::not_equal_to<>()) == values.end();
  };
  if (is_constant(a) || is_constant(b)) {
    return 0;
  }
  const double root = std::sqrt(variance_a) * std::sqrt(variance_b);
  return root > 0 ? std::clamp(covariance / root, -1.0, 1.0) : 0;
}

double SpearmanCorrelation(absl::Span<const double> a,
                           absl::Span<const double> b) {
  return PearsonCorrelation(Ranks(a), Ranks(b));
}

}  // namespace etc
