// A pass through the encoder ends in the middle once a flag is set: in the
// forward pass, in the backward pass, and in one that computes layers again.
// Hooks on the model's input and output set the flag, so the test knows how far
// the pass had come.

#include "base/stop_guard.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include "etc/config.h"
#include "etc/model.h"
#include "gtest/gtest.h"

namespace etc {
namespace {

EtcConfig Config(int64_t grad_checkpointing_period) {
  EtcConfig config;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.local_radius = 2;
  config.relative_pos_max_distance = 2;
  config.relative_vocab_size = 8;
  config.intermediate_size = 6;
  config.residual_attention = "sum";
  config.grad_checkpointing_period = grad_checkpointing_period;
  return config;
}

torch::Tensor Loss(EtcModel& model) {
  return model(EtcInput{.token_ids = torch::ones({1, 9}, torch::kInt64),
                        .global_token_ids = torch::ones({1, 2}, torch::kInt64)})
      .long_output.square()
      .sum();
}

TEST(StopGuardTest, EndsAForwardPass) {
  EtcModel model(Config(0));
  std::atomic<bool> stop = false;
  const StopGuard guard(&stop);
  EXPECT_NO_THROW(Loss(model));
  stop = true;
  EXPECT_THROW(Loss(model), Stopped);
  {
    const StopGuard inner(nullptr);
    EXPECT_NO_THROW(Loss(model));
  }
  EXPECT_THROW(Loss(model), Stopped);
}

TEST(StopGuardTest, CallsTheInnermostAtEachLayerUntilItStops) {
  EtcModel model(Config(0));
  std::atomic<bool> stop = false;
  int outer_layers = 0;
  int layers = 0;
  const StopGuard guard(nullptr, [&] { ++outer_layers; });
  {
    const StopGuard inner(&stop, [&] { stop = ++layers == 5; });
    Loss(model);
    EXPECT_EQ(layers, 3);
    EXPECT_THROW(Loss(model), Stopped);
    EXPECT_EQ(layers, 5);
    EXPECT_EQ(outer_layers, 0);
  }
  Loss(model);
  EXPECT_EQ(outer_layers, 3);
}

TEST(StopGuardTest, EndsABackwardPassBeforeItsEnd) {
  for (const int64_t period : {0, 1}) {
    EtcModel model(Config(period));
    model->train();
    std::atomic<bool> stop = false;
    const StopGuard guard(&stop);
    const torch::Tensor loss = Loss(model);
    loss.register_hook([&stop](const torch::Tensor&) { stop = true; });
    EXPECT_THROW(loss.backward(), Stopped) << period;
    EXPECT_FALSE(model->token_embedding_table().grad().defined()) << period;
    // The next pass is whole again, and its gradients are those of a model that
    // was never stopped.
    stop = false;
    model->zero_grad();
    torch::manual_seed(1);
    Loss(model).backward();
    const torch::Tensor after = model->token_embedding_table().grad().clone();
    model->zero_grad();
    torch::manual_seed(1);
    Loss(model).backward();
    EXPECT_TRUE(torch::equal(after, model->token_embedding_table().grad()));
  }
}

TEST(StopGuardTest, LeavesOtherPassesAlone) {
  EtcModel model(Config(0));
  {
    const std::atomic<bool> stop = true;
    const StopGuard guard(&stop);
    EXPECT_THROW(ThrowIfStopped(), Stopped);
  }
  EXPECT_NO_THROW(ThrowIfStopped());
  EXPECT_NO_THROW(Loss(model).backward());
}

}  // namespace
}  // namespace etc
