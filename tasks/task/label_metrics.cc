#include "tasks/task/label_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>

#include "absl/strings/string_view.h"
#include "tasks/metrics.h"

namespace etc {
namespace {

template <typename T>
void CheckSameSize(absl::Span<const T> gold, absl::Span<const T> predicted) {
  if (gold.size() != predicted.size()) {
    throw std::invalid_argument(
        "gold and predictions should be of the same size");
  }
}

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

// The mean of equal values may differ from them in the last bit.
bool IsConstant(absl::Span<const double> values) {
  return std::adjacent_find(values.begin(), values.end(),
                            std::not_equal_to<>()) == values.end();
}

// Returns ranks from 1 on.
std::vector<double> Ranks(absl::Span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    }
    begin = end;
  }
  return ranks;
}

}  // namespace

double LabelAccuracy(absl::Span<const std::string> gold,
                     absl::Span<const std::string> predicted) {
  CheckSameSize(gold, predicted);
  int64_t equal = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    equal += gold[i] == predicted[i] ? 1 : 0;
  }
  return Share(static_cast<double>(equal), static_cast<int64_t>(gold.size()));
}

double LabelF1(absl::Span<const std::string> gold,
               absl::Span<const std::string> predicted,
               const std::string& positive) {
  CheckSameSize(gold, predicted);
  int64_t right = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    right += gold[i] == positive && predicted[i] == positive ? 1 : 0;
  }
  return Share(2 * static_cast<double>(right),
               std::count(gold.begin(), gold.end(), positive) +
                   std::count(predicted.begin(), predicted.end(), positive));
}

double MatthewsCorrelation(absl::Span<const std::string> gold,
                           absl::Span<const std::string> predicted) {
  CheckSameSize(gold, predicted);
  struct Counts {
    double gold = 0;
    double predicted = 0;
  };
  std::map<absl::string_view, Counts> counts;
  double correct = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    ++counts[gold[i]].gold;
    ++counts[predicted[i]].predicted;
    correct += gold[i] == predicted[i] ? 1 : 0;
  }
  // Doubles: the products are beyond 64 bits for large data.
  const auto size = static_cast<double>(gold.size());
  double both = 0;
  double gold_squares = 0;
  double predicted_squares = 0;
  for (const auto& [label, count] : counts) {
    both += count.gold * count.predicted;
    gold_squares += count.gold * count.gold;
    predicted_squares += count.predicted * count.predicted;
  }
  const double divisor = std::sqrt(size * size - predicted_squares) *
                         std::sqrt(size * size - gold_squares);
  return divisor > 0 ? (correct * size - both) / divisor : 0;
}

ScaledNumbers Scaled(absl::Span<const double> numbers) {
  double largest = 0;
  for (const double number : numbers) {
    largest = std::max(largest, std::abs(number));
  }
  ScaledNumbers scaled;
  std::frexp(largest, &scaled.exponent);
  scaled.values.reserve(numbers.size());
  for (const double number : numbers) {
    scaled.values.push_back(std::ldexp(number, -scaled.exponent));
  }
  return scaled;
}

double PearsonCorrelation(absl::Span<const double> all_gold,
                          absl::Span<const double> all_predicted) {
  CheckSameSize(all_gold, all_predicted);
  const std::vector<double> gold = Scaled(all_gold).values;
  const std::vector<double> predicted = Scaled(all_predicted).values;
  if (IsConstant(gold) || IsConstant(predicted)) {
    return 0;
  }
  const double gold_mean = Mean(gold);
  const double predicted_mean = Mean(predicted);
  double covariance = 0;
  double gold_squares = 0;
  double predicted_squares = 0;
  for (size_t i = 0; i < gold.size(); ++i) {
    const double gold_part = gold[i] - gold_mean;
    const double predicted_part = predicted[i] - predicted_mean;
    covariance += gold_part * predicted_part;
    gold_squares += gold_part * gold_part;
    predicted_squares += predicted_part * predicted_part;
  }
  const double divisor = std::sqrt(gold_squares) * std::sqrt(predicted_squares);
  return divisor > 0 ? std::clamp(covariance / divisor, -1.0, 1.0) : 0;
}

double SpearmanCorrelation(absl::Span<const double> gold,
                           absl::Span<const double> predicted) {
  CheckSameSize(gold, predicted);
  return PearsonCorrelation(Ranks(gold), Ranks(predicted));
}

}  // namespace etc
