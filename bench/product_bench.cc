// Products of linear layers in bfloat16, at the sizes of the base model over
// 4096 long and 256 global tokens: a layer's of one kind, forward, and both of
// its gradients.
//
//   Product/<fp32|onednn|amx>/<forward|input_gradient|weight_gradient>/
//     inputs:I/outputs:O/threads:T
//
// fp32 is oneDNN's in float32; onednn and amx multiply factors that are rounded
// already (base/linear.h). `amx` is there on CPUs that have it.
//
//   flop_per_second

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <utility>

#include "base/amx.h"
#include "base/bfloat16.h"
#include "base/matrix_product.h"
#include "bench/linear_products.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"

namespace etc {
namespace {

struct Variant {
  const char* name;
  bool rounded;
  ProductCode code;
};

void ProductBench(benchmark::State& state, const Variant& variant,
                  LinearProduct product) {
  const int64_t inputs = state.range(0);
  const int64_t outputs = state.range(1);
  at::set_num_threads(static_cast<int>(state.range(2)));
  torch::manual_seed(1);
  const auto [a, b] =
      RandomFactors(product, kProductRows, inputs, outputs, variant.rounded);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        MatrixProduct(a, b, /*bias=*/{}, variant.code).data_ptr());
  }
  state.counters["flop_per_second"] = benchmark::Counter(
      2.0 * static_cast<double>(kProductRows * inputs * outputs),
      benchmark::Counter::kIsIterationInvariantRate);
}

void RegisterAll() {
  const Variant variants[] = {
      {"fp32", false, ProductCode::kOnednn},
      {"onednn", true, ProductCode::kOnednn},
      {"amx", true, ProductCode::kAmx},
  };
  for (const Variant& variant : variants) {
    if (variant.code == ProductCode::kAmx
            ? !kernels::HasAmx()
            : variant.rounded && kernels::Bfloat16ProductsOfThisCpu() ==
                                     kernels::Bfloat16Products::kNone) {
      continue;
    }
    for (const auto& [name, product] :
         {std::pair("forward", LinearProduct::kForward),
          std::pair("input_gradient", LinearProduct::kInputGradient),
          std::pair("weight_gradient", LinearProduct::kWeightGradient)}) {
      AddBenchmark(std::string("Product/") + variant.name + "/" + name,
                   [variant, product = product](benchmark::State& state) {
                     ProductBench(state, variant, product);
                   })
          ->ArgNames({"inputs", "outputs", "threads"})
          ->ArgsProduct({{768}, {768, 3072}, {1, 2}})
          ->ArgsProduct({{3072}, {768}, {1, 2}})
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
