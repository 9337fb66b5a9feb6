// Gradient checkpointing: the chains of doc/model.md 4.4, and gradients that
// are those of the plain model, dropout and residual scores included, however
// the latter are stored.

#include "etc/nn/gradient_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/dropout_seeds.h"
#include "etc/model.h"
#include "tests/support/error_message.h"
#include "tests/support/tensor_matchers.h"
#include "tests/support/toy_model.h"

namespace etc {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(CheckpointChainsTest, PutTheRemainderFirst) {
  EXPECT_THAT(CheckpointChains(5, 3), ElementsAre(Pair(0, 2), Pair(2, 5)));
  EXPECT_THAT(CheckpointChains(6, 2),
              ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 6)));
  EXPECT_THAT(CheckpointChains(2, 1), ElementsAre(Pair(0, 1), Pair(1, 2)));
  EXPECT_THAT(CheckpointChains(4, 0), ElementsAre(Pair(0, 4)));
  EXPECT_THAT(CheckpointChains(4, 9), ElementsAre(Pair(0, 4)));
}

// Layers, period (doc/model.md 12.6), residual mode, and whether the loss needs
// the last layer's attention of global tokens, which else has no backward pass.
struct Case {
  int64_t layers, period;
  const char* residual;
  bool needs_globals = true;
};

// Loss and gradients of a model with dropout at a fixed seed. In float32 the
// kernels compute attention.
std::vector<torch::Tensor> Gradients(
    const Case& c, int64_t period, bool freeze_embedding,
    torch::ScalarType dtype = torch::kFloat64,
    ScoreStorage storage = ScoreStorage::kStore) {
  EtcConfig config = ToyConfig();
  config.num_hidden_layers = c.layers;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.3;
  config.initializer_range = 0.3;
  config.residual_attention = c.residual;
  config.grad_checkpointing_period = period;
  torch::manual_seed(1);
  EtcModel model(config);
  model->to(dtype);
  model->set_score_storage(storage);
  if (freeze_embedding) {
    for (const auto& parameter : model->named_parameters()) {
      if (parameter.key().rfind("embedding.", 0) == 0) {
        parameter.value().requires_grad_(false);
      }
    }
  }
  torch::manual_seed(2);
  const EtcOutput output = model->forward(ToyInput());
  const bool in_buffer =
      dtype == torch::kFloat32 && storage != ScoreStorage::kStore;
  for (const ScoreTensor* scores : {&output.scores.l2l, &output.scores.g2g}) {
    EXPECT_EQ(scores->live().buffer != nullptr, in_buffer);
    if (storage == ScoreStorage::kReverse && period <= 1) {
      // One buffer for all layers.
      EXPECT_EQ(scores->live().layers, c.layers);
    }
  }
  torch::Tensor loss = output.long_output.sin().sum();
  if (c.needs_globals) {
    loss = loss + output.global_output.cos().sum();
  }
  loss.backward();
  std::vector<torch::Tensor> all = {loss.detach(), torch::rand({1})};
  for (const torch::Tensor& parameter : model->parameters()) {
    all.push_back(parameter.grad());
  }
  return all;
}

// Zeros in its place would be as large as the output.
TEST(GradientCheckpointTest, AnOutputThatNobodyReadGivesNoGradient) {
  const torch::Tensor read = torch::ones({2}).requires_grad_(true);
  const torch::Tensor unread = torch::ones({3}).requires_grad_(true);
  const std::vector<torch::Tensor> outputs = CheckpointGradients(
      [](const std::vector<torch::Tensor>& inputs) {
        return std::vector<torch::Tensor>{2 * inputs[0], 3 * inputs[1]};
      },
      {read, unread}, /*parameters=*/{});
  outputs[0].sum().backward();
  EXPECT_TRUE(torch::equal(read.grad(), torch::full({2}, 2.0)));
  EXPECT_FALSE(unread.grad().defined());
}

TEST(GradientCheckpointTest, ChangesNoGradient) {
  for (const Case& c : std::vector<Case>{
           {2, 1, "off"}, {6, 2, "sum"}, {5, 3, "mean"}, {5, 1, "sum"}}) {
    for (const bool freeze_embedding : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.layers << " layers, period "
                                      << c.period << ", " << c.residual);
      const std::vector<torch::Tensor> plain =
          Gradients(c, 0, freeze_embedding);
      const std::vector<torch::Tensor> recomputed =
          Gradients(c, c.period, freeze_embedding);
      ASSERT_EQ(plain.size(), recomputed.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        EXPECT_TRUE(IsClose(recomputed[i], plain[i], 1e-12)) << i;
      }
    }
  }
}

TEST(GradientCheckpointTest, ChangesNoGradientHoweverScoresAreStored) {
  for (const Case& c : std::vector<Case>{{6, 2, "sum"},
                                         {5, 3, "mean"},
                                         {5, 1, "sum"},
                                         {5, 1, "sum", false},
                                         {4, 1, "mean"},
                                         {4, 1, "decay"},
                                         {4, 1, "gate"},
                                         {1, 1, "sum"}}) {
    for (const bool freeze_embedding : {false, true}) {
      const std::vector<torch::Tensor> stored =
          Gradients(c, 0, freeze_embedding, torch::kFloat32);
      for (const ScoreStorage storage :
           {ScoreStorage::kReverse, ScoreStorage::kRecompute}) {
        for (const int64_t period : {int64_t{0}, c.period}) {
          SCOPED_TRACE(testing::Message()
                       << c.layers << " layers, period " << period << ", "
                       << c.residual << (c.needs_globals ? "" : ", longs only")
                       << ", storage " << static_cast<int>(storage));
          const std::vector<torch::Tensor> other =
              Gradients(c, period, freeze_embedding, torch::kFloat32, storage);
          ASSERT_EQ(stored.size(), other.size());
          for (size_t i = 0; i < stored.size(); ++i) {
            EXPECT_TRUE(IsClose(other[i], stored[i], 2e-5)) << i;
          }
        }
      }
    }
  }
}

TEST(GradientCheckpointTest, RunsTheFunctionAgainInTheBackwardPassOnly) {
  int calls = 0;
  const auto square = [&](const std::vector<torch::Tensor>& inputs) {
    ++calls;
    return std::vector<torch::Tensor>{inputs[0] * inputs[0]};
  };
  const torch::Tensor x = torch::full({1}, 3.0).requires_grad_(true);
  const torch::Tensor y = CheckpointGradients(square, {x}, {})[0];
  EXPECT_EQ(calls, 1);
  y.backward();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(x.grad().item<double>(), 6.0);

  const torch::NoGradGuard no_grad;
  CheckpointGradients(square, {x}, {});
  EXPECT_EQ(calls, 3);
}

// A function in another mode than that of its first call.
TEST(GradientCheckpointTest, RefusesASecondCallThatDrawsOtherSeeds) {
  for (const int64_t again : {0, 1, 3}) {
    int64_t draws = 2;
    const torch::Tensor x = torch::full({1}, 3.0).requires_grad_(true);
    const torch::Tensor y = CheckpointGradients(
        [&](const std::vector<torch::Tensor>& inputs) {
          for (int64_t i = 0; i < draws; ++i) {
            DrawDropoutSeed();
          }
          return std::vector<torch::Tensor>{inputs[0] * inputs[0]};
        },
        {x}, {})[0];
    draws = again;
    EXPECT_THAT(MessageOf([&] { y.backward(); }),
                testing::HasSubstr("seeds of"))
        << again;
  }
}

TEST(GradientCheckpointTest, RefusesDoubleBackward) {
  const torch::Tensor x = torch::full({1}, 3.0).requires_grad_(true);
  const torch::Tensor y = CheckpointGradients(
      [](const std::vector<torch::Tensor>& inputs) {
        return std::vector<torch::Tensor>{inputs[0].pow(3)};
      },
      {x}, {})[0];
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               c10::Error);
}

}  // namespace
}  // namespace etc
