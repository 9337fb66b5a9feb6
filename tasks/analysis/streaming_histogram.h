#ifndef ETC_TASKS_ANALYSIS_STREAMING_HISTOGRAM_H_
#define ETC_TASKS_ANALYSIS_STREAMING_HISTOGRAM_H_

#include <cstdint>
#include <vector>

namespace etc {

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

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_STREAMING_HISTOGRAM_H_
