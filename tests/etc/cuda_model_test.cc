// The encoder on a CUDA device against the same in float64 on the CPU: outputs
// and the gradients of all parameters, in each mode of residual scores.
//
// float32 may be off from float64 four times as much as float32 on the CPU is,
// gradients six times. bfloat16 has 8 bits, and four layers of it, on a
// stand-in for the device, moved all outputs by 0.0035 of their length and all
// gradients by 0.0045; three times that is allowed.
//
// Skipped without a device; with LibTorch 1 on a stand-in
// (tests/support/stand_in_cuda.h).

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "base/linear.h"
#include "etc/config.h"
#include "etc/model.h"
#include "tests/support/cuda_device.h"
#include "tests/support/exactness.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr int64_t kLongs = 70;
constexpr int64_t kGlobals = 12;

EtcConfig SmallConfig(const std::string& residual) {
  EtcConfig config;
  config.vocab_size = 90;
  config.hidden_size = 64;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.intermediate_size = 96;
  config.local_radius = 8;
  config.relative_pos_max_distance = 4;
  config.relative_vocab_size = 12;
  config.hidden_dropout_prob = 0.0;
  config.attention_probs_dropout_prob = 0.0;
  config.initializer_range = 0.1;
  config.residual_attention = residual;
  return config;
}

// Two examples, of which the second is shorter.
EtcInput SmallInput() {
  std::mt19937_64 random(3);
  const PatternOptions options = {
      .local_radius = 8, .relative_pos_max_distance = 4, .hard_g2l = true};
  std::vector<AttentionPattern> patterns;
  patterns.push_back(RandomMultihopPattern(kLongs, kGlobals, options, &random));
  patterns.push_back(
      RandomMultihopPattern(kLongs / 2, kGlobals / 2, options, &random));
  torch::manual_seed(4);
  return {.token_ids = torch::randint(90, {2, kLongs}, torch::kInt64),
          .global_token_ids = torch::randint(90, {2, kGlobals}, torch::kInt64),
          .attention = AttentionInputs(std::move(patterns))};
}

struct Passes {
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> gradients;
};

// A forward and a backward pass of a copy of `model`; results on the CPU.
Passes RunPasses(const EtcModel& model, torch::ScalarType type,
                 const torch::Device& device,
                 LinearPrecision precision = LinearPrecision::kFloat32) {
  EtcModel copy(std::dynamic_pointer_cast<EtcModelImpl>(model->clone(device)));
  copy->to(type);
  copy->set_linear_precision(precision);
  EtcInput input = SmallInput();
  input.token_ids = input.token_ids.to(device);
  input.global_token_ids = input.global_token_ids.to(device);
  const EtcOutput output = copy->forward(input);
  EXPECT_EQ(output.long_output.device(), device);
  (output.long_output.sin().sum() + output.global_output.cos().sum())
      .backward();
  Passes passes;
  passes.outputs = {output.long_output.detach().cpu(),
                    output.global_output.detach().cpu()};
  for (const torch::Tensor& parameter : copy->parameters()) {
    EXPECT_EQ(parameter.grad().device(), device);
    passes.gradients.push_back(parameter.grad().cpu());
  }
  return passes;
}

class EtcModelOnCudaTest : public CudaDeviceTest,
                           public testing::WithParamInterface<const char*> {
 protected:
  EtcModelOnCudaTest() {
    torch::manual_seed(5);
    model_ = EtcModel(SmallConfig(GetParam()));
    model_->train();
  }
  EtcModel model_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Modes, EtcModelOnCudaTest,
                         testing::Values("off", "sum", "mean", "decay", "gate"),
                         [](const auto& mode) {
                           return std::string(mode.param);
                         });

TEST_P(EtcModelOnCudaTest, IsAsExactAsOnTheCpu) {
  const Passes exact = RunPasses(model_, torch::kFloat64, torch::kCPU);
  const Passes cpu = RunPasses(model_, torch::kFloat32, torch::kCPU);
  const Passes cuda = RunPasses(model_, torch::kFloat32, kFirstCudaDevice);
  ExpectAsExact(cuda.outputs, cpu.outputs, exact.outputs, 4.0, "output");
  ExpectAsExact(cuda.gradients, cpu.gradients, exact.gradients, 6.0,
                "gradient");
}

// Length of a difference over the length of what it should be.
double RelativeError(const std::vector<torch::Tensor>& actual,
                     const std::vector<torch::Tensor>& exact) {
  double difference = 0.0;
  double length = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += (actual[i] - exact[i]).square().sum().item<double>();
    length += exact[i].square().sum().item<double>();
  }
  return std::sqrt(difference / length);
}

TEST_P(EtcModelOnCudaTest, IsRoundedInBfloat16) {
  const Passes exact = RunPasses(model_, torch::kFloat64, torch::kCPU);
  const Passes rounded = RunPasses(model_, torch::kFloat32, kFirstCudaDevice,
                                   LinearPrecision::kBfloat16);
  const double outputs = RelativeError(rounded.outputs, exact.outputs);
  const double gradients = RelativeError(rounded.gradients, exact.gradients);
  EXPECT_GT(outputs, 1e-4);
  EXPECT_LT(outputs, 0.0105);
  EXPECT_LT(gradients, 0.0135);
}

}  // namespace
}  // namespace etc
