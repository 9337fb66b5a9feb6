#ifndef ETC_BENCH_LINEAR_PRODUCTS_H_
#define ETC_BENCH_LINEAR_PRODUCTS_H_

#include <torch/types.h>

#include <cstdint>

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

// Rows of products: 4096 long and 256 global tokens.
inline constexpr int64_t kProductRows = 4352;

// The products of an encoder layer's linear layers: four of hidden_size and
// both of the feed-forward block, forward, and in training both gradients.
struct LayerProducts {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t rows = kProductRows;
  bool rounded = false;
  bool training = false;
};

// FLOP per second of all products of a layer, one after the other, at the
// current number of threads, by MatrixProduct, which is what the layers call,
// with factors that are rounded already. Measured right before and right after
// the computation compared with it: of each product the median of some.
class LayerProductRate {
 public:
  explicit LayerProductRate(const LayerProducts& products);
  // Measures again; the mean of both.
  double Around() const;

 private:
  const LayerProducts products_;
  const double before_;
};

}  // namespace etc

#endif  // ETC_BENCH_LINEAR_PRODUCTS_H_
