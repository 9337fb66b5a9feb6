// The runs of a configuration: the examples of data that several settings share
// are counted once, and a run needs nobody who listens.
#include "tasks/train/train_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "etc/weights/checkpoint.h"
#include "tests/support/train_runs.h"
#include "tests/tasks/data/fake_source.h"
#include "tests/tasks/train/toy_run_fixture.h"

namespace etc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CheckRunsTest, CountsTheExamplesOfSharedDataOnce) {
  auto config = RunConfigFromJson(ToyConfigJson("a", "b", "c"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  config->train.seeds = {1, 2};
  auto records = std::make_unique<FakeSource>(3, std::vector<int>{4});
  const FakeSource& source = *records;
  const ToyTask task(config->model);
  RunData data;
  data.train = std::move(records);
  const auto first = CheckRuns(*config, task, &data, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->steps_left, 2 * 12);
  const int64_t made = source.made;
  EXPECT_GT(made, 0);
  for (const int64_t batch_size : {8, 4}) {
    config->train.batch_size = batch_size;
    EXPECT_TRUE(CheckRuns(*config, task, &data, {}).ok());
    EXPECT_EQ(source.made, made);
  }
  config->train.batch_size = 13;
  EXPECT_THAT(
      CheckRuns(*config, task, &data, {}).status().message(),
      HasSubstr("have 12 examples, which is less than one batch of 13"));
  EXPECT_GT(source.made, made);
}

// Another setting of a grid, which needs no scores, has opened them.
TEST(CheckRunsTest, RefusesSharedDataWithoutTheAnswersThatASettingNeeds) {
  auto config = RunConfigFromJson(ToyConfigJson("a", "b", "c"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  RunData data;
  data.train = std::make_unique<FakeSource>(3, std::vector<int>{4});
  data.dev = std::make_unique<FakeSource>(3, std::vector<int>{1});
  data.dev_counts = {.records = 3, .unanswered = 3};
  EXPECT_TRUE(CheckRuns(*config, task, &data, {}).ok());
  config->train.early_stopping = 1;
  EXPECT_THAT(CheckRuns(*config, task, &data, {}).status().message(),
              HasSubstr("train.early_stopping needs scores"));
}

TEST_F(ToyRunTest, TrainsWithNobodyWhoListens) {
  json_["output"] = Output("run");
  const auto config = RunConfigFromJson(json_, "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto result = TrainRuns(*config, task, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  FakeReporter reporter;
  ASSERT_TRUE(Run("heard", &reporter).ok());
  ExpectSameRun(Output("run") + "/seed-1", Output("heard") + "/seed-1");
}

// The largest omegas that messages name.
std::vector<double> OmegasSet(const FakeReporter& reporter) {
  std::vector<double> omegas;
  for (const absl::string_view message : reporter.messages) {
    absl::string_view rest = message;
    double omega = 0;
    if (absl::ConsumePrefix(&rest,
                            "sublayer admin: omegas are set by the first "
                            "micro-batch, up to ") &&
        absl::SimpleAtod(rest, &omega)) {
      omegas.push_back(omega);
    }
  }
  return omegas;
}

// From random weights, and once: a run that was stopped goes on with the same
// numbers, and one that starts from weights keeps their omegas.
TEST_F(ToyRunTest, SetsOmegasBeforeTheFirstUpdate) {
  json_["model"]["sublayer"] = "admin";
  json_["model"]["hidden_dropout_prob"] = 0.1;
  FakeReporter whole;
  ASSERT_TRUE(Run("whole", &whole).ok());
  ASSERT_THAT(OmegasSet(whole), SizeIs(1));
  EXPECT_GT(OmegasSet(whole)[0], 1.02);
  EXPECT_LT(OmegasSet(whole)[0], 3.0);
  const NamedTensors tensors =
      ReadAll(Output("whole") + "/seed-1/checkpoints/last/model.safetensors");
  const torch::Tensor omega = tensors.at("encoder.layers.1.feed_forward.omega");
  EXPECT_GT(omega.std().item<double>(), 0.0);  // one number no longer

  FakeReporter stopped;
  stopped.stop_after = 3;
  ASSERT_TRUE(Run("parts", &stopped).ok());
  EXPECT_EQ(OmegasSet(stopped), OmegasSet(whole));
  FakeReporter resumed;
  ASSERT_TRUE(Run("parts", &resumed, /*resume=*/true).ok());
  EXPECT_THAT(OmegasSet(resumed), IsEmpty());
  ExpectSameRun(Output("parts") + "/seed-1", Output("whole") + "/seed-1");

  json_["init"] = Output("whole");
  FakeReporter continued;
  ASSERT_TRUE(Run("continued", &continued).ok());
  EXPECT_THAT(OmegasSet(continued), IsEmpty());
}

// All seeds start from the weights that were the best when the run began, also
// if the run that they are of goes on meanwhile.
TEST_F(ToyRunTest, StartsAllSeedsFromTheSameWeights) {
  class MovesBest : public FakeReporter {
   public:
    explicit MovesBest(std::string link) : link_(std::move(link)) {}
    void Message(absl::string_view text) override {
      FakeReporter::Message(text);
      if (text == "seed 2") {
        std::filesystem::remove(link_);
        std::filesystem::create_directory_symlink("step-00000004", link_);
      }
    }

   private:
    const std::string link_;
  };
  json_["train"]["keep_last"] = 12;
  FakeReporter first;
  ASSERT_TRUE(Run("first", &first).ok());
  const std::string best = Output("first/seed-1/checkpoints/best");
  std::filesystem::remove(best);
  std::filesystem::create_directory_symlink("step-00000012", best);
  json_["init"] = best;
  json_["train"]["seeds"] = {1, 2};
  json_["train"]["evaluate_at_start"] = true;
  MovesBest reporter(best);
  ASSERT_TRUE(Run("second", &reporter).ok());
  const std::string start = "/checkpoints/step-00000000/model.safetensors";
  ExpectSameTensors(Output("second/seed-2") + start,
                    Output("second/seed-1") + start);
}

// With omegas of 1 a Post-LN model's weights compute the same as before.
TEST_F(ToyRunTest, LeavesOmegasOfWeightsThatHadNoneAtOne) {
  FakeReporter post_norm;
  ASSERT_TRUE(Run("post_norm", &post_norm).ok());
  json_["model"]["sublayer"] = "admin";
  json_["init"] = Output("post_norm");
  FakeReporter continued;
  ASSERT_TRUE(Run("continued", &continued).ok());
  EXPECT_THAT(OmegasSet(continued), IsEmpty());
}

// Stopped before its first update: its omegas are still to be set.
TEST_F(ToyRunTest, SetsOmegasOfARunThatIsResumedBeforeItsFirstUpdate) {
  json_["model"]["sublayer"] = "admin";
  FakeReporter whole;
  ASSERT_TRUE(Run("whole", &whole).ok());
  FakeReporter stopped;
  stopped.stop = true;
  const absl::Status status = Run("parts", &stopped).status();
  EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  EXPECT_THAT(OmegasSet(stopped), IsEmpty());
  FakeReporter resumed;
  ASSERT_TRUE(Run("parts", &resumed, /*resume=*/true).ok());
  EXPECT_EQ(OmegasSet(resumed), OmegasSet(whole));
  ExpectSameRun(Output("parts") + "/seed-1", Output("whole") + "/seed-1");
}

TEST_F(ToyRunTest, LearnsWithReZero) {
  json_["model"]["sublayer"] = "rezero";
  FakeReporter reporter;
  ASSERT_TRUE(Run("run", &reporter).ok());
  const NamedTensors tensors =
      ReadAll(Output("run") + "/seed-1/checkpoints/last/model.safetensors");
  EXPECT_NE(
      tensors.at("encoder.layers.0.global_attention_alpha").item<double>(), 0);
  EXPECT_FALSE(tensors.contains("encoder.layers.1.feed_forward.norm.weight"));
}

}  // namespace
}  // namespace etc
