// StreamingHistogram against numbers that are known exactly.

#include "tasks/analysis/streaming_histogram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace etc {
namespace {

TEST(StreamingHistogramTest, MedianIsTheLowestPointOfHalfTheCount) {
  StreamingHistogram histogram(0, 1);
  for (const double value : {0.1, 0.2, 0.3, 0.4}) {
    histogram.Add(value);
  }
  EXPECT_NEAR(histogram.Quantile(0.5), 0.201, 1e-12);
}

TEST(StreamingHistogramTest, MergedPartsAreTheWhole) {
  StreamingHistogram whole(0, 6), first(0, 6), second(0, 6);
  for (int i = 0; i < 997; ++i) {
    const double value = 3.0 + 2.9 * std::sin(i * 0.7);
    whole.Add(value);
    (i < 300 ? first : second).Add(value);
  }
  StreamingHistogram empty(0, 6);
  first.Merge(empty);
  first.Merge(second);
  empty.Merge(first);
  EXPECT_EQ(empty.counts(), whole.counts());
  EXPECT_EQ(empty.count(), 997);
  EXPECT_NEAR(empty.mean(), whole.mean(), 1e-12);
  EXPECT_NEAR(empty.standard_deviation(), whole.standard_deviation(), 1e-12);
  EXPECT_EQ(empty.least(), whole.least());
  EXPECT_EQ(empty.greatest(), whole.greatest());
}

TEST(StreamingHistogramTest, NumbersAtAndBeyondTheEndsCountInTheLastBins) {
  StreamingHistogram histogram(0, 1, 10);
  histogram.Add(1.0);
  histogram.Add(1.0000001);
  histogram.Add(-1e-9);
  EXPECT_EQ(histogram.counts().back(), 2);
  EXPECT_EQ(histogram.counts().front(), 1);
}

}  // namespace
}  // namespace etc
