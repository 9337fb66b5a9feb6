#include "bench/linear_products.h"

#include <torch/utils.h>

#include <vector>

#include "base/bfloat16.h"
#include "base/device_time.h"
#include "base/matrix_product.h"

namespace etc {
namespace {

double RateOf(const LayerProducts& layer) {
  constexpr int64_t kRuns = 5;
  const torch::NoGradGuard no_grad;
  std::vector<LinearProduct> products = {LinearProduct::kForward};
  if (layer.training) {
    products.insert(products.end(), {LinearProduct::kInputGradient,
                                     LinearProduct::kWeightGradient});
  }
  struct Linear {
    int64_t inputs;
    int64_t outputs;
    int count;
  };
  double flops = 0.0;
  double seconds = 0.0;
  for (const auto& [inputs, outputs, count] :
       {Linear{layer.hidden_size, layer.hidden_size, 4},
        Linear{layer.hidden_size, layer.intermediate_size, 1},
        Linear{layer.intermediate_size, layer.hidden_size, 1}}) {
    for (const LinearProduct product : products) {
      const ProductFactors factors =
          RandomFactors(product, layer.rows, inputs, outputs, layer.rounded);
      const auto multiply = [&] { MatrixProduct(factors.a, factors.b); };
      multiply();
      flops += 2.0 * count * static_cast<double>(layer.rows * inputs * outputs);
      seconds += count * MedianSecondsOn(torch::kCPU, kRuns, multiply);
    }
  }
  return flops / seconds;
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

LayerProductRate::LayerProductRate(const LayerProducts& products)
    : products_(products), before_(RateOf(products)) {}

double LayerProductRate::Around() const {
  return 0.5 * (before_ + RateOf(products_));
}

}  // namespace etc
