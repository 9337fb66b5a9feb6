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

MedianColour ColourBetween(double median, double low, double high) {
  if (median > high) {
    return MedianColour::kRed;
  }
  return median < low ? MedianColour::kBlue : MedianColour::kYellow;
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

PopulationStatistics MakePopulation(const PopulationShape& shape) {
  const bool is_long = shape.name == "long";
  const bool is_global = shape.name == "global";
  PopulationStatistics population{
      .name = shape.name,
      .own_name = is_long ? "l2l" : "g2g",
      .other_name = is_long ? "l2g" : (is_global ? "g2l" : ""),
      .max_keys = shape.max_keys,
      .radius = shape.radius,
      .kinds = shape.kinds};
  // Global tokens of ETC stand in no order that means anything.
  const size_t positions = is_global ? 0 : kPositionClasses;
  const size_t sentences = is_long ? kSentenceClasses : 0;
  HeadStatistics head(std::log(static_cast<double>(shape.max_keys)));
  head.sums.by_offset.assign(
      shape.radius > 0 ? static_cast<size_t>(2 * shape.radius + 1) : 0, 0.0);
  head.sums.kind_mass.assign(shape.kinds.size(), 0.0);
  head.sums.entropy_by_position.assign(positions, 0.0);
  head.sums.entropy_by_sentence.assign(sentences, 0.0);
  population.kind_share.assign(shape.kinds.size(), 0.0);
  population.rows_by_position.assign(positions, 0);
  population.rows_by_sentence.assign(sentences, 0);
  const auto count = static_cast<size_t>(shape.heads);
  const auto pairs =
      static_cast<size_t>(std::max<int64_t>(0, shape.layers - 1));
  population.heads.assign(static_cast<size_t>(shape.layers),
                          std::vector<HeadStatistics>(count, head));
  population.divergence.assign(
      pairs, std::vector<StreamingHistogram>(count, StreamingHistogram(0, 1)));
  population.similarity.assign(pairs, std::vector<double>(count * count, 0.0));
  return population;
}

int64_t PositionClass(int64_t position, int64_t length) {
  return position * kPositionClasses / length;
}

int64_t SentenceClass(int64_t tokens) {
  int64_t size = 0;
  while (size + 1 < kSentenceClasses && (int64_t{2} << size) <= tokens) {
    ++size;
  }
  return size;
}

std::vector<double> MeanByClass(const HeadStatistics& head,
                                std::vector<double> RowSums::*member,
                                const std::vector<int64_t>& rows) {
  std::vector<double> means;
  for (size_t c = 0; c < rows.size(); ++c) {
    means.push_back(rows[c] > 0
                        ? (head.sums.*member)[c] / static_cast<double>(rows[c])
                        : std::nan(""));
  }
  return means;
}

std::vector<KeyMass> MassesOf(const PopulationStatistics& population,
                              const HeadStatistics& head) {
  std::vector<KeyMass> masses;
  const int64_t rows = head.entropy.count();
  if (rows == 0) {
    return masses;
  }
  const auto add = [&](const std::string& keys, int64_t count, double mass,
                       double share) {
    const auto divisor = static_cast<double>(count);
    masses.push_back({.keys = keys,
                      .rows = count,
                      .mass = mass / divisor,
                      .share = share / divisor});
  };
  const RowSums& sums = head.sums;
  if (!population.other_name.empty()) {
    const auto all = static_cast<double>(rows);
    add(population.own_name, rows, sums.own_mass, sums.own_share);
    add(population.other_name, rows, all - sums.own_mass, all - sums.own_share);
  }
  if (population.rows_linked > 0) {
    add("linked", population.rows_linked, sums.linked_mass,
        population.linked_share);
  }
  for (size_t k = 0; k < population.kinds.size(); ++k) {
    add(population.kinds[k], rows, sums.kind_mass[k], population.kind_share[k]);
  }
  return masses;
}

double MeanSimilarity(const PopulationStatistics& population, size_t l,
                      size_t i, size_t j) {
  return population.similarity[l][i * population.heads[l].size() + j] /
         static_cast<double>(population.rows_sampled);
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

MedianColour ColourOfEntropy(double median) {
  return ColourBetween(median, 1.5, 4.5);
}

MedianColour ColourOfNormalisedEntropy(double median) {
  const double greatest = std::log(512.0);
  return ColourBetween(median, 1.5 / greatest, 4.5 / greatest);
}

MedianColour ColourOfDivergence(double median) {
  return ColourBetween(median, 0.25, 0.75);
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
