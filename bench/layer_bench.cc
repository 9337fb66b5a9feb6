// The operations between the products of a layer, fused and by LibTorch, at
// base size.
//
//   Layer/<bias_gelu|dropout_norm>/<fused|aten>/<forward|training>/rows:R/
//     threads:T
//   Layer/whole/<fp32|bf16>/<forward|training>/long:L/threads:T
//   Layer/<bert_adamw|lamb|adamw>/<fused|aten>/update/parameters:P/threads:T
//
// Training is forward and backward. Biases are left out of the `aten` sides,
// where the product before adds them; the gradient of gelu's is taken. The
// update's `aten` side is UpdateByDefinition_, one parameter after the other.
// Whole layers have 256 global tokens, a radius of 84 and dropout in training.
//
//   items_per_second  numbers; of whole layers long tokens

#include <benchmark/benchmark.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "attention/pattern_builders.h"
#include "base/linear.h"
#include "bench/machine.h"
#include "bench/run_benchmarks.h"
#include "etc/config.h"
#include "etc/encoder_layer.h"
#include "etc/nn/feed_forward.h"
#include "etc/nn/residual_norm.h"
#include "tasks/train/adam_update.h"

namespace etc {
namespace {

constexpr int64_t kHidden = 768;
constexpr int64_t kIntermediate = 3072;
constexpr double kDropout = 0.1;

void SetUp(int64_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  torch::manual_seed(1);
}

void BiasGeluBench(benchmark::State& state, Activation activation, bool fused,
                   bool training) {
  SetUp(state.range(1));
  const char* const form = activation == Activation::kGelu ? "tanh" : "none";
  const torch::Tensor bias = torch::randn({kIntermediate});
  const torch::Tensor gradient = torch::randn({state.range(0), kIntermediate});
  torch::Tensor input = torch::randn_like(gradient);
  torch::Tensor scratch = torch::empty_like(gradient);
  for (auto _ : state) {
    if (fused) {
      benchmark::DoNotOptimize(BiasGelu(activation, input, bias));
      if (training) {
        // It is overwritten, in the encoder as well; not copied there.
        benchmark::DoNotOptimize(
            BiasGeluBackward_(activation, input, bias, scratch));
      }
    } else {
      benchmark::DoNotOptimize(torch::gelu(input, form));
      if (training) {
        const torch::Tensor back = torch::gelu_backward(gradient, input, form);
        benchmark::DoNotOptimize(back.sum(0));
      }
    }
  }
  state.SetItemsProcessed(input.numel() * state.iterations());
}

void DropoutNormBench(benchmark::State& state, bool fused, bool training) {
  SetUp(state.range(1));
  const auto leaf = [&](std::vector<int64_t> shape) {
    return torch::randn(shape).requires_grad_(training);
  };
  const ResidualInput input = {.change = leaf({state.range(0), kHidden}),
                               .residual = leaf({state.range(0), kHidden}),
                               .dropout = kDropout};
  const NormParameters norm = {.weight = leaf({kHidden}),
                               .bias = leaf({kHidden})};
  const torch::Tensor gradient = torch::randn({state.range(0), kHidden});
  for (auto _ : state) {
    const torch::Tensor output =
        fused ? ResidualNorm(input, norm) : ResidualNormReference(input, norm);
    benchmark::DoNotOptimize(output.data_ptr());
    if (training) {
      benchmark::DoNotOptimize(torch::autograd::grad(
          {output}, {input.change, input.residual, norm.weight, norm.bias},
          {gradient}));
    }
  }
  state.SetItemsProcessed(gradient.numel() * state.iterations());
}

void UpdateBench(benchmark::State& state, bool fused, bool by_norms,
                 double correction) {
  SetUp(state.range(1));
  constexpr int64_t kRows = 1024;
  std::vector<AdamUpdate> updates;
  for (int64_t i = 0; i < 8; ++i) {
    const std::vector<int64_t> shape = {kRows, state.range(0) / 8 / kRows};
    updates.push_back({.parameter = torch::randn(shape),
                       .gradient = torch::randn(shape),
                       .mean = torch::randn(shape),
                       .mean_square = torch::rand(shape),
                       .gradient_factor = 0.5,
                       .mean_correction = correction,
                       .square_correction = correction,
                       .weight_decay = 0.01,
                       .by_norms = by_norms,
                       .learning_rate = 1e-5});
  }
  for (auto _ : state) {
    if (fused) {
      UpdateAll_(updates);
    } else {
      for (const AdamUpdate& update : updates) {
        UpdateByDefinition_(update);
      }
    }
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}

void WholeLayerBench(benchmark::State& state, LinearPrecision precision,
                     bool training) {
  SetUp(state.range(1));
  constexpr int64_t kGlobals = 256;
  const int64_t longs = state.range(0);
  EtcConfig config = *EtcConfigPreset("base");
  EtcEncoderLayer layer(EncoderLayerOptions(config));
  layer->set_linear_precision(precision);
  layer->train(training);
  const AttentionInputs attention(std::vector{UnrestrictedPattern(
      longs, kGlobals, config.local_radius, config.relative_pos_max_distance)});
  const EncoderState input = {
      .long_states = torch::randn({1, longs, kHidden}).requires_grad_(training),
      .global_states =
          torch::randn({1, kGlobals, kHidden}).requires_grad_(training)};
  const torch::Tensor gradient = torch::randn({1, longs, kHidden});
  const torch::AutoGradMode gradients(training);
  for (auto _ : state) {
    const EncoderState output = layer->forward(input, attention);
    benchmark::DoNotOptimize(output.long_states.data_ptr());
    if (training) {
      torch::autograd::backward(
          {output.long_states, output.global_states},
          {gradient, torch::ones_like(output.global_states)});
    }
  }
  state.SetItemsProcessed(longs * state.iterations());
}

void Register(const std::string& name, const char* size_name, int64_t size,
              const std::function<void(benchmark::State&)>& function) {
  auto* family = AddBenchmark(name, function);
  family->ArgNames({size_name, "threads"})->Unit(benchmark::kMillisecond);
  family->MeasureProcessCPUTime()->UseRealTime();
  for (const int64_t threads : {1, 2}) {
    family->Args({size, threads});
  }
}

void RegisterAll() {
  for (const bool training : {false, true}) {
    for (const bool rounded : {false, true}) {
      Register(std::string("Layer/whole/") + (rounded ? "bf16/" : "fp32/") +
                   (training ? "training" : "forward"),
               "long", 4096, [=](benchmark::State& state) {
                 WholeLayerBench(state,
                                 rounded ? LinearPrecision::kBfloat16
                                         : LinearPrecision::kFloat32,
                                 training);
               });
    }
  }
  for (const bool fused : {true, false}) {
    const std::string side = fused ? "/fused/" : "/aten/";
    for (const bool training : {false, true}) {
      const std::string pass = training ? "training" : "forward";
      Register("Layer/bias_gelu" + side + pass, "rows", 4096,
               [=](benchmark::State& state) {
                 BiasGeluBench(state, Activation::kGelu, fused, training);
               });
      Register("Layer/bias_gelu_erf" + side + pass, "rows", 4096,
               [=](benchmark::State& state) {
                 BiasGeluBench(state, Activation::kGeluErf, fused, training);
               });
      Register("Layer/dropout_norm" + side + pass, "rows", 4096,
               [=](benchmark::State& state) {
                 DropoutNormBench(state, fused, training);
               });
    }
    struct Kind {
      const char* name;
      bool by_norms;
      double correction;
    };
    for (const Kind& kind :
         {Kind{"bert_adamw", false, 1.0}, Kind{"lamb", true, 1.0},
          Kind{"adamw", false, 0.5}}) {
      Register(std::string("Layer/") + kind.name + side + "update",
               "parameters", int64_t{1} << 24, [=](benchmark::State& state) {
                 UpdateBench(state, fused, kind.by_norms, kind.correction);
               });
    }
  }
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  return etc::RunTensorBenchmarks(argc, argv, etc::RegisterAll);
}
