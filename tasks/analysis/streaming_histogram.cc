#include "tasks/analysis/streaming_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace etc {

StreamingHistogram::StreamingHistogram(double lo, double hi, int64_t bins)
    : lo_(lo), hi_(hi), counts_(static_cast<size_t>(bins), 0) {}

StreamingHistogram::StreamingHistogram(HistogramParts parts)
    : lo_(parts.lo),
      hi_(parts.hi),
      counts_(std::move(parts.counts)),
      count_(std::accumulate(counts_.begin(), counts_.end(), int64_t{0})),
      mean_(parts.mean),
      squares_(parts.standard_deviation * parts.standard_deviation *
               static_cast<double>(count_)),
      least_(parts.least),
      greatest_(parts.greatest) {}

void StreamingHistogram::Add(double value) {
  const auto bins = static_cast<double>(counts_.size());
  const double place = std::floor((value - lo_) / (hi_ - lo_) * bins);
  ++counts_[static_cast<size_t>(std::clamp(place, 0.0, bins - 1.0))];
  least_ = count_ == 0 ? value : std::min(least_, value);
  greatest_ = count_ == 0 ? value : std::max(greatest_, value);
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

void StreamingHistogram::Merge(const StreamingHistogram& other) {
  if (other.count_ == 0) {
    return;
  }
  for (size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] += other.counts_[i];
  }
  least_ = count_ == 0 ? other.least_ : std::min(least_, other.least_);
  greatest_ =
      count_ == 0 ? other.greatest_ : std::max(greatest_, other.greatest_);
  const auto here = static_cast<double>(count_);
  const auto there = static_cast<double>(other.count_);
  const double apart = other.mean_ - mean_;
  mean_ += apart * there / (here + there);
  squares_ += other.squares_ + apart * apart * here * there / (here + there);
  count_ += other.count_;
}

double StreamingHistogram::Quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  const double width = (hi_ - lo_) / static_cast<double>(counts_.size());
  double below = 0.0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto here = static_cast<double>(counts_[i]);
    if (here > 0.0 && below + here >= wanted) {
      return lo_ + width * (static_cast<double>(i) + (wanted - below) / here);
    }
    below += here;
  }
  return hi_;
}

double StreamingHistogram::standard_deviation() const {
  return count_ == 0 ? 0.0 : std::sqrt(squares_ / static_cast<double>(count_));
}

}  // namespace etc
