#ifndef ETC_TASKS_ANALYSIS_DISTRIBUTION_H_
#define ETC_TASKS_ANALYSIS_DISTRIBUTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace etc {

// Statistics of attention weights, in double (doc/attention_analysis.md).

// Entropy -sum(p ln p) in nats; terms with p = 0 are 0.
double Entropy(absl::Span<const double> p);

// Entropy over the logarithm of the number of visible keys, at least 2.
double NormalisedEntropy(double entropy, int64_t visible_keys);

// Jensen-Shannon divergence of p and q, base 2, in [0, 1]; a divergence, not
// its square root:
//
//   sum over keys of 1/2 (p log2(2p / (p + q)) + q log2(2q / (p + q)))
//
// Both have the same keys in the same order.
double JensenShannon(absl::Span<const double> p, absl::Span<const double> q);

// A row of attention weights over two blocks of keys, with a the mass of its
// own block: H = h(a) + a H_own + (1 - a) H_other, h the binary entropy.
struct BlockEntropy {
  double own_mass = 0;  // a
  double between = 0;   // h(a), nats
  double own = 0;       // entropy of the renormalised block, nats
  double other = 0;     // idem; 0 for a block without mass
  // The entropy of the row by the identity above.
  double joint() const {
    return between + own_mass * own + (1.0 - own_mass) * other;
  }
};
BlockEntropy SplitEntropy(absl::Span<const double> own,
                          absl::Span<const double> other);

// A distribution as it is written in files.
struct HistogramParts {
  double lo = 0;
  double hi = 1;
  std::vector<int64_t> counts;
  double mean = 0;
  double standard_deviation = 0;
  double least = 0;
  double greatest = 0;
};

// Distribution of a stream of numbers in constant memory: counts in bins of
// equal width, and exact count, mean, variance, least and greatest.
class StreamingHistogram {
 public:
  // Bins of [lo, hi], lo < hi. Numbers beyond an end count in the bin there.
  StreamingHistogram(double lo, double hi, int64_t bins = 1000);
  // Numbers that were counted before. There must be a bin.
  explicit StreamingHistogram(HistogramParts parts);

  void Add(double value);
  // Adds all numbers of another histogram of the same bins (Chan et al.).
  void Merge(const StreamingHistogram& other);

  // The lowest point at which the cumulative count reaches share * count(),
  // linear within its bin; share in (0, 1]. Off by at most one bin. Not without
  // numbers.
  double Quantile(double share) const;

  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Population standard deviation; 0 without numbers.
  double standard_deviation() const;
  double least() const { return least_; }
  double greatest() const { return greatest_; }
  double lo() const { return lo_; }
  double hi() const { return hi_; }
  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  double lo_;
  double hi_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of (value - mean)^2
  double least_ = 0;
  double greatest_ = 0;
};

// Class of a median, by its unrounded value: above `high` red, below `low`
// blue, else yellow.
enum class MedianColour { kBlue, kYellow, kRed };
MedianColour ColourOfEntropy(double median);     // 1.5 and 4.5 nats
MedianColour ColourOfDivergence(double median);  // 0.25 and 0.75
// 1.5 and 4.5 nats as shares of ln 512: 0.2404 and 0.7213.
MedianColour ColourOfNormalisedEntropy(double median);

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_DISTRIBUTION_H_
