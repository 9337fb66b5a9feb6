#ifndef ETC_BENCH_LINEAR_PRODUCTS_H_
#define ETC_BENCH_LINEAR_PRODUCTS_H_

#include <torch/types.h>

#include <cstdint>

#include "etc/config.h"

namespace etc {

// A matrix product of a linear layer.
enum class LinearProduct { kForward, kInputGradient, kWeightGradient };

// Random factors of a product a b.
struct ProductFactors {
  torch::Tensor a;
  torch::Tensor b;
};

// Factors as of a linear layer with a weight [outputs, inputs] over an input
// [rows, inputs], float32 or rounded to bfloat16.
ProductFactors RandomFactors(LinearProduct product, int64_t rows,
                             int64_t inputs, int64_t outputs, bool rounded);

// FLOP per second of all products of an encoder layer's linear layers, one
// after the other: four of hidden_size and both of the feed-forward block, over
// `tokens` rows (at most kMostRows); forward, and in training both gradients.
// At the current number of threads, by MatrixProduct, which is what the layers
// call, with factors that are rounded already. Measured right before and right
// after the computation compared with it: of each product the median of some.
class LayerProductRate {
 public:
  static constexpr int64_t kMostRows = 4352;

  LayerProductRate(const EtcConfig& config, int64_t tokens, bool rounded,
                   bool training);
  // Measures again; the mean of both.
  double Around() const;

 private:
  double Measure() const;

  const int64_t hidden_;
  const int64_t intermediate_;
  const int64_t rows_;
  const bool rounded_;
  const bool training_;
  const double before_;
};

}  // namespace etc

#endif  // ETC_BENCH_LINEAR_PRODUCTS_H_
