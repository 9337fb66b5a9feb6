// The estimated memory of activations on a CUDA device against that of real
// passes, on a stand-in for the device (tests/support/stand_in_cuda.h): its
// memory is limited until a pass of forward and backward just fits. A narrow
// model with many heads, so that all parts weigh something: activations,
// scores, what attention needs for a moment; weights rounded to bfloat16 only
// in the case for them.
//
// The fused kernels are idle ones, as memory does not depend on values.
//
// Tolerance: a fifth, as on the CPU (step_memory_test.cc). Not shown: what the
// allocator of a real device keeps between tensors.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/out_of_memory.h"
#include "etc/model.h"
#include "etc/step_cost.h"
#include "tests/support/idle_cuda_kernels.h"
#include "tests/support/stand_in_cuda.h"

namespace etc {
namespace {

constexpr double kTolerance = 0.2;
const torch::Device kDevice(torch::kCUDA, 0);

constexpr StepShape kShape = {
    .batch = 1, .long_length = 1024, .global_length = 48};

struct Case {
  std::string residual = "off";
  LinearPrecision precision = LinearPrecision::kFloat32;
  StepBackend backend = StepBackend::kCudaKernels;
  double dropout = 0.1;
  int64_t hidden = 64;
  int64_t period = 0;
};

EtcConfig ConfigOf(const Case& c) {
  EtcConfig config;
  config.vocab_size = 50;
  config.hidden_size = c.hidden;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 8;
  config.intermediate_size = 4 * c.hidden;
  config.local_radius = 20;
  config.hidden_dropout_prob = c.dropout;
  config.attention_probs_dropout_prob = 0.1;
  config.residual_attention = c.residual;
  config.grad_checkpointing_period = c.period;
  return config;
}

// A model that has gradients, and its input.
class Passes {
 public:
  explicit Passes(const Case& c) : model_(ConfigOf(c)) {
    model_->to(kDevice);
    model_->set_linear_precision(c.precision);
    model_->set_attention_implementation(
        c.backend == StepBackend::kCudaKernels
            ? AttentionImplementation::kKernel
            : AttentionImplementation::kBlocked);
    const auto ids = [](int64_t length) {
      return torch::arange(length).remainder(50).unsqueeze(0).to(kDevice);
    };
    input_.token_ids = ids(kShape.long_length);
    input_.global_token_ids = ids(kShape.global_length);
    for (const torch::Tensor& parameter : model_->parameters()) {
      torch::Tensor(parameter).mutable_grad() = torch::zeros_like(parameter);
    }
  }

  void Run() {
    const EtcOutput output = model_->forward(input_);
    (output.long_output.sum() + output.global_output.sum()).backward();
  }

  bool Fits(int64_t bytes) {
    const StandInMemoryLimit limit(StandInMemoryInUse() + bytes);
    try {
      Run();
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error)) {
        throw;
      }
      return false;
    }
    return true;
  }

 private:
  EtcModel model_;
  EtcInput input_;
};

// Bytes of a pass beside weights, gradients and inputs, to a percent.
double PeakOf(const Case& c) {
  Passes passes(c);
  passes.Run();
  int64_t fits = int64_t{1} << 32;
  int64_t too_few = 0;
  while (fits - too_few > fits / 100) {
    const int64_t middle = (fits + too_few) / 2;
    (passes.Fits(middle) ? fits : too_few) = middle;
  }
  return static_cast<double>(fits);
}

class CudaStepMemoryTest : public testing::Test {
 protected:
  CudaStepMemoryTest() { UseIdleCudaKernels(); }

  static void ExpectEstimateIsClose(const Case& c) {
    const ActivationBytes bytes = EstimateActivations(
        ConfigOf(c), kShape, {.precision = c.precision, .backend = c.backend});
    const double measured = PeakOf(c);
    std::cout << "measured " << measured / 1e6 << " MB, estimated "
              << bytes.total() / 1e6 << " MB: saved " << bytes.saved / 1e6
              << ", scores " << bytes.residual_scores / 1e6 << ", inputs "
              << bytes.attention_inputs / 1e6 << ", temporaries "
              << bytes.working / 1e6 << "\n";
    EXPECT_NEAR(bytes.total(), measured, kTolerance * measured);
  }
};

TEST_F(CudaStepMemoryTest, IsCloseWithKernels) {
  ExpectEstimateIsClose({});
  ExpectEstimateIsClose({.dropout = 0});
}

TEST_F(CudaStepMemoryTest, IsCloseWithKernelsAndScores) {
  ExpectEstimateIsClose({.residual = "sum"});
  ExpectEstimateIsClose({.residual = "sum", .period = 1});
}

TEST_F(CudaStepMemoryTest, IsCloseInBfloat16) {
  ExpectEstimateIsClose({.precision = LinearPrecision::kBfloat16});
  ExpectEstimateIsClose({.residual = "sum",
                         .precision = LinearPrecision::kBfloat16,
                         .hidden = 256});
}

TEST_F(CudaStepMemoryTest, IsCloseWithOperations) {
  ExpectEstimateIsClose({.backend = StepBackend::kCudaOperations});
  ExpectEstimateIsClose(
      {.residual = "sum", .backend = StepBackend::kCudaOperations});
  ExpectEstimateIsClose({.precision = LinearPrecision::kBfloat16,
                         .backend = StepBackend::kCudaOperations});
}

}  // namespace
}  // namespace etc
