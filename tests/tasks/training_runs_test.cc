// Whole training runs of the demos, with the sizes of real layers and with
// dropout.
//
// Weights and the optimizer's state after an update or two are the same bits on
// one thread and on several: embedding, layers (both orders of LayerNorm),
// heads, losses, optimizer. Layers are as wide as ETC's base model, so that
// products, LayerNorms and sums are beyond the sizes from which libraries share
// them out; more threads than cores are no obstacle.
//
// Losses with dropout are what they were when this was written. They change
// with each draw of random numbers and with what a dropped element is; change
// them only where that is meant. Tolerance as in the tasks' own tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "etc/weights/checkpoint.h"
#include "tests/support/shipped_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

// All tensors that a run leaves in files, by path within `directory` and name.
NamedTensors Tensors(const std::string& directory) {
  NamedTensors tensors;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (entry.is_symlink() || !absl::EndsWith(path, ".safetensors")) {
      continue;
    }
    const auto file = TensorReader::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    for (const std::string& name : file->Names()) {
      const auto tensor = file->Read(name);
      EXPECT_TRUE(tensor.ok()) << tensor.status();
      tensors[absl::StrCat(std::filesystem::relative(path, directory).string(),
                           ": ", name)] = *tensor;
    }
  }
  return tensors;
}

struct DemoCase {
  const char* task;
  const char* train;
  std::vector<std::string> overrides;
};

NamedTensors TensorsAfter(const DemoCase& demo, int threads) {
  const TemporaryDirectory directory;
  std::vector<std::string> overrides = {
      "train.steps=2", absl::StrCat("train.threads=", threads),
      "model.hidden_dropout_prob=0.1",
      "model.attention_probs_dropout_prob=0.1"};
  overrides.insert(overrides.end(), demo.overrides.begin(),
                   demo.overrides.end());
  RunDemo(demo.task, demo.train, overrides, directory.path());
  return Tensors(directory.path());
}

class TrainingRunTest : public testing::TestWithParam<DemoCase> {};

TEST_P(TrainingRunTest, LeavesTheSameBitsAtAnyNumberOfThreads) {
  const NamedTensors expected = TensorsAfter(GetParam(), 1);
  // Tensors of each parameter: its value and the two means of its gradient.
  ASSERT_GE(expected.size(), 100u);
  for (const int threads : {2, 3}) {
    const NamedTensors actual = TensorsAfter(GetParam(), threads);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      const auto found = actual.find(name);
      ASSERT_NE(found, actual.end()) << name;
      EXPECT_TRUE(torch::equal(found->second, tensor))
          << name << " differs on " << threads << " threads by "
          << MaxError(found->second, tensor);
    }
  }
}

std::vector<DemoCase> DemoCases() {
  const std::vector<std::string> wide = {"model.hidden_size=768",
                                         "model.num_attention_heads=12",
                                         "model.intermediate_size=3072",
                                         "train.batch_size=3",
                                         "train.micro_batch_size=2",
                                         "data.max_long_length=512",
                                         "train.steps=1"};
  const auto plus = [&](std::vector<std::string> more) {
    more.insert(more.begin(), wide.begin(), wide.end());
    return more;
  };
  return {
      {"wikihop", "train.json", {}},
      {"wikihop", "train.json", plus({"model.use_pre_activation_order=true"})},
      {"hotpotqa", "train.json", plus({"model.hidden_act=tanh"})},
      {"openkp", "train.jsonl", plus({"model.embedding_size=100"})},
      {"nq", "train.jsonl.gz", plus({"model.share_qkv_projections=false"})}};
}

INSTANTIATE_TEST_SUITE_P(Demos, TrainingRunTest, testing::ValuesIn(DemoCases()),
                         [](const auto& demo) {
                           return std::string(demo.param.task) +
                                  (demo.param.overrides.empty() ? "Small"
                                                                : "Wide");
                         });

TEST(LossCurveWithDropoutTest, IsAsItWas) {
  const std::vector<double> expected = {6.51604, 6.52347, 6.16521, 6.13142,
                                        6.1233,  6.11271, 6.13648, 6.11057,
                                        6.01933, 6.00834};
  constexpr double kTolerance = 5e-4;
  EXPECT_THAT(DemoLosses("openkp", "train.jsonl", "sum",
                         {"model.hidden_dropout_prob=0.3",
                          "model.attention_probs_dropout_prob=0.2"}),
              testing::Pointwise(testing::DoubleNear(kTolerance), expected));
}

}  // namespace
}  // namespace etc
