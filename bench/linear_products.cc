#include "bench/linear_products.h"

#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/bfloat16.h"
#include "base/matrix_product.h"

namespace etc {
namespace {

double MedianSeconds(const ProductFactors& factors) {
  constexpr int kProducts = 5;
  MatrixProduct(factors.a, factors.b);
  std::array<double, kProducts> seconds = {};
  for (double& taken : seconds) {
    const auto start = std::chrono::steady_clock::now();
    MatrixProduct(factors.a, factors.b);
    taken =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  std::nth_element(seconds.begin(), seconds.begin() + kProducts / 2,
                   seconds.end());
  return seconds[kProducts / 2];
}

}  // namespace

ProductFactors RandomFactors(LinearProduct product, int64_t rows,
                             int64_t inputs, int64_t outputs, bool rounded) {
  const auto matrix = [&](int64_t height, int64_t width) {
    const torch::Tensor values = torch::randn({height, width});
    return rounded ? ToBfloat16(values) : values;
  };
  switch (product) {
    case LinearProduct::kForward:
      return {.a = matrix(rows, inputs), .b = matrix(outputs, inputs).t()};
    case LinearProduct::kInputGradient:
      return {.a = matrix(rows, outputs), .b = matrix(outputs, inputs)};
    case LinearProduct::kWeightGradient:
      return {.a = matrix(rows, outputs).t(), .b = matrix(rows, inputs)};
  }
  TORCH_CHECK(false, "no such product");
}

LayerProductRate::LayerProductRate(const EtcConfig& config, int64_t tokens,
                                   bool rounded, bool training)
    : hidden_(config.hidden_size),
      intermediate_(config.intermediate_size),
      rows_(std::min(tokens, kMostRows)),
      rounded_(rounded),
      training_(training),
      before_(Measure()) {}

double LayerProductRate::Around() const { return 0.5 * (before_ + Measure()); }

double LayerProductRate::Measure() const {
  const torch::NoGradGuard no_grad;
  std::vector<LinearProduct> products = {LinearProduct::kForward};
  if (training_) {
    products.insert(products.end(), {LinearProduct::kInputGradient,
                                     LinearProduct::kWeightGradient});
  }
  struct Layer {
    int64_t inputs;
    int64_t outputs;
    int count;
  };
  double flops = 0.0;
  double seconds = 0.0;
  for (const Layer& layer :
       {Layer{hidden_, hidden_, 4}, Layer{hidden_, intermediate_, 1},
        Layer{intermediate_, hidden_, 1}}) {
    for (const LinearProduct product : products) {
      flops += 2.0 * layer.count *
               static_cast<double>(rows_ * layer.inputs * layer.outputs);
      seconds += layer.count *
                 MedianSeconds(RandomFactors(product, rows_, layer.inputs,
                                             layer.outputs, rounded_));
    }
  }
  return flops / seconds;
}

}  // namespace etc
