// Several threads at once: inference on one model, in both precisions, in
// normal and in inference mode; and training, each thread a model of its own.
// Results are those of one thread alone, to the bit.

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/bfloat16.h"
#include "etc/model.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

constexpr int kThreads = 3;
constexpr int kRounds = 20;

// Runs work(thread) on several threads at once.
template <typename Work>
void OnThreads(const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&work, i] {
      at::set_num_threads(1);
      work(i);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

EtcModel Model(LinearPrecision precision) {
  torch::manual_seed(1);
  EtcConfig config = ToyConfig();
  config.initializer_range = 0.3;
  config.residual_attention = "sum";
  EtcModel model(config);
  model->set_linear_precision(precision);
  model->eval();
  return model;
}

class SharedModelTest : public testing::TestWithParam<LinearPrecision> {
 protected:
  void SetUp() override {
    if (GetParam() == LinearPrecision::kBfloat16 &&
        kernels::Bfloat16ProductsOfThisCpu() ==
            kernels::Bfloat16Products::kNone) {
      GTEST_SKIP() << "this CPU has no products of bfloat16";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Precisions, SharedModelTest,
                         testing::Values(LinearPrecision::kFloat32,
                                         LinearPrecision::kBfloat16),
                         [](const auto& precision) {
                           return precision.param == LinearPrecision::kFloat32
                                      ? "float32"
                                      : "bfloat16";
                         });

TEST_P(SharedModelTest, InfersOnSeveralThreadsAsOnOne) {
  const EtcInput input = ToyInput();
  torch::Tensor alone;
  {
    const torch::NoGradGuard no_grad;
    alone = Model(GetParam())->forward(input).long_output;
  }
  for (int round = 0; round < kRounds; ++round) {
    // A new one: what a model keeps of its weights is made by the first pass.
    EtcModel model = Model(GetParam());
    std::vector<torch::Tensor> outputs(kThreads);
    OnThreads([&](int i) {
      const torch::NoGradGuard no_grad;
      outputs[static_cast<size_t>(i)] = model->forward(input).long_output;
    });
    for (const torch::Tensor& output : outputs) {
      ASSERT_TRUE(output.equal(alone)) << round;
    }
  }
}

TEST_P(SharedModelTest, MayBeMadeInInferenceMode) {
  const EtcInput input = ToyInput();
  EtcModel normal = Model(GetParam());
  const torch::Tensor expected = normal->forward(input).long_output.detach();
  const c10::InferenceMode inference;
  EtcModel model = Model(GetParam());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_TRUE(model->forward(ToyInput()).long_output.equal(expected));
  }
  // Weights of inference mode have no count of their changes.
  for (torch::Tensor& parameter : model->parameters()) {
    parameter.mul_(0.5);
  }
  const torch::Tensor halved = model->forward(ToyInput()).long_output;
  EXPECT_FALSE(halved.equal(expected));
  std::vector<torch::Tensor> outputs(kThreads);
  OnThreads([&](int i) {
    const c10::InferenceMode here_too;
    outputs[static_cast<size_t>(i)] = model->forward(ToyInput()).long_output;
  });
  for (const torch::Tensor& output : outputs) {
    EXPECT_TRUE(output.equal(halved));
  }
}

TEST_P(SharedModelTest, TrainsAfterInferenceMode) {
  for (const AttentionImplementation implementation :
       {AttentionImplementation::kBlocked, AttentionImplementation::kKernel}) {
    EtcModel model = Model(GetParam());
    model->set_attention_implementation(implementation);
    const EtcInput input = ToyInput();
    {
      const c10::InferenceMode inference;
      model->forward(input);
    }
    model->forward(input).long_output.sin().sum().backward();
    EXPECT_TRUE(model->token_embedding_table().grad().defined());
  }
}

// A model with dropout, recomputed in backward, of the number `seed`.
std::vector<torch::Tensor> Gradients(int seed, std::mutex* forward_passes) {
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 6;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.3;
  config.residual_attention = "sum";
  config.grad_checkpointing_period = 2;
  EtcModel model = nullptr;
  torch::Tensor loss;
  {
    // LibTorch's generator is that of all threads: what is drawn for a model is
    // set here, for its forward pass. Backward passes overlap.
    const std::lock_guard<std::mutex> lock(*forward_passes);
    torch::manual_seed(static_cast<uint64_t>(seed));
    model = EtcModel(config);
    const EtcOutput output = model->forward(ToyInput());
    loss = output.long_output.sin().sum() + output.global_output.cos().sum();
  }
  loss.backward();
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : model->parameters()) {
    gradients.push_back(parameter.grad());
  }
  return gradients;
}

TEST(ModelThreadsTest, TrainModelsOfTheirOwnAsAlone) {
  std::mutex forward_passes;
  std::vector<std::vector<torch::Tensor>> alone;
  for (int i = 0; i < kThreads; ++i) {
    alone.push_back(Gradients(i, &forward_passes));
  }
  OnThreads([&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<torch::Tensor> together = Gradients(i, &forward_passes);
      for (size_t p = 0; p < together.size(); ++p) {
        ASSERT_EQ(together[p].defined(),
                  alone[static_cast<size_t>(i)][p].defined());
        ASSERT_TRUE(!together[p].defined() ||
                    together[p].equal(alone[static_cast<size_t>(i)][p]))
            << "thread " << i << " round " << round << " parameter " << p;
      }
    }
  });
}

// Nobody else's draws are repeated, either.
TEST(ModelThreadsTest, BackwardLeavesTheGeneratorAsItIs) {
  std::mutex forward_passes;
  Gradients(1, &forward_passes);
  const torch::Tensor after = torch::rand({4});
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = 6;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.3;
  config.residual_attention = "sum";
  config.grad_checkpointing_period = 2;
  torch::manual_seed(1);
  EtcModel model(config);
  const EtcOutput output = model->forward(ToyInput());
  EXPECT_TRUE(torch::rand({4}).equal(after));
}

}  // namespace
}  // namespace etc
