#include "tasks/analysis/attention_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <numeric>

namespace etc {
namespace {

// The sum of weight(|offset|) * mass, over the mass of all offsets.
template <typename Weight>
double OverOffsets(const std::vector<double>& by_offset, Weight weight) {
  const auto radius = static_cast<int64_t>(by_offset.size() / 2);
  double sum = 0;
  double mass = 0;
  for (size_t i = 0; i < by_offset.size(); ++i) {
    sum += by_offset[i] * weight(std::abs(static_cast<int64_t>(i) - radius));
    mass += by_offset[i];
  }
  return mass > 0 ? sum / mass : 0;
}

}  // namespace

double MeanDistance(const RowSums& sums) {
  return OverOffsets(sums.by_offset, [](int64_t distance) {
    return static_cast<double>(distance);
  });
}

double EdgeShare(const RowSums& sums) {
  const auto radius = static_cast<int64_t>(sums.by_offset.size() / 2);
  return OverOffsets(sums.by_offset, [&](int64_t distance) {
    return 10 * distance > 9 * radius ? 1.0 : 0.0;
  });
}

double MassAt(const RowSums& sums, int64_t offset) {
  const auto radius = static_cast<int64_t>(sums.by_offset.size() / 2);
  return std::abs(offset) > radius || sums.by_offset.empty()
             ? 0
             : sums.by_offset[static_cast<size_t>(offset + radius)];
}

PopulationStatistics MakePopulation(const std::string& name, int64_t layers,
                                    int64_t heads, int64_t max_keys,
                                    int64_t radius) {
  PopulationStatistics population{
      .name = name,
      .own_name = name == "long" ? "l2l" : "g2g",
      .other_name = name == "long" ? "l2g" : (name == "global" ? "g2l" : ""),
      .max_keys = max_keys,
      .radius = radius};
  HeadStatistics head(std::log(static_cast<double>(max_keys)));
  head.sums.by_offset.assign(
      radius > 0 ? static_cast<size_t>(2 * radius + 1) : 0, 0.0);
  const auto count = static_cast<size_t>(heads);
  population.heads.assign(static_cast<size_t>(layers),
                          std::vector<HeadStatistics>(count, head));
  population.divergence.assign(
      static_cast<size_t>(std::max<int64_t>(0, layers - 1)),
      std::vector<StreamingHistogram>(count, StreamingHistogram(0, 1)));
  return population;
}

std::vector<int64_t> HeadOrder(const std::vector<HeadStatistics>& heads) {
  std::vector<double> medians;
  medians.reserve(heads.size());
  for (const HeadStatistics& head : heads) {
    medians.push_back(head.entropy.count() > 0 ? head.entropy.Quantile(0.5)
                                               : HUGE_VAL);
  }
  std::vector<int64_t> order(heads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return medians[static_cast<size_t>(a)] < medians[static_cast<size_t>(b)];
  });
  return order;
}

MedianColour EntropyColour(const AttentionAnalysis& analysis,
                           const HeadStatistics& head) {
  return analysis.normalised_colours
             ? ColourOfNormalisedEntropy(head.normalised.Quantile(0.5))
             : ColourOfEntropy(head.entropy.Quantile(0.5));
}

MedianColour DivergenceColour(const AttentionAnalysis& analysis,
                              const StreamingHistogram& divergence) {
  const double median = divergence.Quantile(0.5);
  return ColourOfDivergence(analysis.jsd_distance ? median * median : median);
}

}  // namespace etc
