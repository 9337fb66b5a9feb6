// A model over a data set: every record once and in order, the same logits
// whatever the batches, no dropout, and the model's mode left as it was.
// Tolerance: sums in another order, in float32.

#include "tasks/train/evaluate.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/train/open_data.h"
#include "tasks/train/task_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

using ::testing::HasSubstr;

class EvaluateTest : public testing::Test {
 protected:
  EvaluateTest() {
    const std::string file = temporary_.Write("dev.jsonl", ToyRecords(11, 2));
    auto config = RunConfigFromJson(ToyConfigJson(file, file, ""), "toy");
    EXPECT_TRUE(config.ok()) << config.status();
    task_ = std::make_unique<ToyTask>(config->model);
    torch::manual_seed(4);
    model_ = std::make_unique<TaskModel>(MakeTaskModel(*config, *task_));
    // The same records again, with ids of their own.
    const std::string second = temporary_.Write(
        "second.jsonl",
        absl::StrReplaceAll(ToyRecords(11, 2), {{"\"id\":\"", "\"id\":\"b"}}));
    auto records = OpenRecords(*task_, {.patterns = {file, second}});
    EXPECT_TRUE(records.ok()) << records.status();
    records_ = *std::move(records);
  }

  Evaluation MustEvaluate(const EvaluateOptions& options) const {
    auto evaluation = Evaluate(model_.get(), *task_, *records_, options);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status();
    return *std::move(evaluation);
  }

  TemporaryDirectory temporary_;
  std::unique_ptr<ToyTask> task_;
  std::unique_ptr<TaskModel> model_;
  std::unique_ptr<ExampleSource> records_;
};

// The id of the first record of the test's file with that token.
std::string FirstRecordWith(int64_t token) {
  const std::string lines = ToyRecords(11, 2);
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const auto record = nlohmann::json::parse(line);
    for (const auto& found : record["tokens"]) {
      if (found == token) {
        return record["id"];
      }
    }
  }
  return "none";
}

torch::Tensor Logits(const Evaluation& evaluation) {
  return static_cast<const ToyPredictions&>(*evaluation.predictions).logits();
}

// A task whose records have no answers.
class UnansweredTask : public ToyTask {
 public:
  using ToyTask::ToyTask;
  absl::StatusOr<std::vector<std::shared_ptr<const Example>>> MakeExamples(
      const std::string&, const std::string&) const override {
    auto example = std::make_shared<ToyExample>();
    example->record_id = "unanswered";
    example->has_answer = false;
    return Examples{example};
  }
};

TEST_F(EvaluateTest, TakesOnlyAnsweredRecordsForTraining) {
  const std::string file = temporary_.Write("test.jsonl", ToyRecords(2, 1));
  const UnansweredTask task(model_->encoder()->config());
  const auto evaluation = OpenRecords(task, {.patterns = {file}});
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_TRUE((*evaluation)->Make({.record = 0}).ok());
  const auto training =
      OpenRecords(task, {.patterns = {file}, .use = RecordUse::kTraining});
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_THAT(std::string((*training)->Make({.record = 1}).status().message()),
              testing::AllOf(testing::HasSubstr("test.jsonl"),
                             testing::HasSubstr("has no answer")));
}

TEST_F(EvaluateTest, GivesTheSameLogitsForAnyBatches) {
  const torch::Tensor expected =
      Logits(MustEvaluate({.loader = {.batch_size = 1}}));
  ASSERT_EQ(expected.size(0), 22);
  EXPECT_GT(expected.std().item<double>(), 1e-3);
  for (const int64_t batch_size : {2, 8, 100}) {
    const Evaluation evaluation =
        MustEvaluate({.loader = {.batch_size = batch_size, .workers = 3}});
    EXPECT_EQ(evaluation.num_examples, 22);
    EXPECT_TRUE(torch::allclose(Logits(evaluation), expected, /*rtol=*/1e-4,
                                /*atol=*/1e-5))
        << "batches of " << batch_size;
  }
}

TEST_F(EvaluateTest, LeavesTheModeAsItWas) {
  for (const bool training : {true, false}) {
    model_->SetTraining(training);
    MustEvaluate({});
    EXPECT_EQ(model_->encoder()->is_training(), training);
    EXPECT_EQ(model_->head()->is_training(), training);
  }
}

TEST_F(EvaluateTest, ScoresWhatTheTaskScores) {
  const Evaluation evaluation = MustEvaluate({});
  EXPECT_EQ(evaluation.metrics, evaluation.predictions->Score());
}

TEST_F(EvaluateTest, EndsWhenStopped) {
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(absl::IsCancelled(
      Evaluate(model_.get(), *task_, *records_, {.context = {.stop = &stop}})
          .status()));
}

// Keeps the progress of an evaluation.
class EvaluationListener final : public RunReporter {
 public:
  void Message(absl::string_view /*text*/) override {}
  void Warn(absl::string_view /*text*/) override {}
  void Evaluating(const EvaluationProgress& progress) override {
    heard.push_back(progress);
  }

  std::vector<EvaluationProgress> heard;
};

TEST_F(EvaluateTest, ReportsRecordsAndTheTimeLeft) {
  EvaluationListener listener;
  MustEvaluate({.loader = {.batch_size = 8, .predicts = true},
                .context = {.reporter = &listener}});
  ASSERT_EQ(listener.heard.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const EvaluationProgress& progress = listener.heard[i];
    EXPECT_EQ(progress.records, i < 2 ? 8 * static_cast<int64_t>(i + 1) : 22);
    EXPECT_EQ(progress.num_records, 22);
    EXPECT_TRUE(progress.predicts);
  }
  EXPECT_GT(listener.heard.front().seconds_left, 0);
  EXPECT_EQ(listener.heard.back().seconds_left, 0);
}

// A score of weights that are not numbers says nothing.
TEST_F(EvaluateTest, NamesTheRecordWhoseLogitsAreNotFinite) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    const torch::NoGradGuard no_grad;
    model_->encoder()->named_parameters()["embedding.token.weight"][9].fill_(
        value);
    for (const int64_t batch_size : {1, 8}) {
      const absl::Status status =
          Evaluate(model_.get(), *task_, *records_,
                   {.loader = {.batch_size = batch_size}})
              .status();
      EXPECT_TRUE(absl::IsAborted(status)) << status;
      // The first record of ToyRecords(11, 2) that has token 9.
      EXPECT_THAT(std::string(status.message()),
                  testing::StartsWith(absl::StrCat(
                      "record ", FirstRecordWith(9), ": the model's logits")));
    }
  }
}

// A head for which there is no memory.
class LargeHead final : public ToyHead {
 public:
  using ToyHead::ToyHead;
  std::vector<torch::Tensor> forward(const EtcOutput& /*encoded*/,
                                     const Batch& /*batch*/) override {
    throw std::bad_alloc();
  }
};

TEST_F(EvaluateTest, SaysThatSmallerBatchesTakeLessMemory) {
  const EtcModel encoder = model_->encoder();
  TaskModel model(encoder,
                  std::make_shared<LargeHead>(encoder->config().hidden_size));
  const auto message = [&](int64_t batch_size) {
    const absl::Status status = WithBatchAdvice(
        Evaluate(&model, *task_, *records_,
                 {.loader = {.batch_size = batch_size, .predicts = true}})
            .status(),
        batch_size);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message(4),
            "out of memory while predicting 4 examples at a time; a batch size "
            "of 1 takes less");
  EXPECT_EQ(message(1), "out of memory while predicting 1 example at a time");
  EXPECT_EQ(WithBatchAdvice(absl::OkStatus(), 4), absl::OkStatus());
}

TEST_F(EvaluateTest, SkipsBadRecordsOrSaysWhereTheyAre) {
  const std::string file =
      temporary_.Write("bad.jsonl", ToyRecords(3, 2) + "{\"id\": \"x\"}\n");
  const auto records = OpenRecords(*task_, {.patterns = {file}});
  ASSERT_TRUE(records.ok());
  EXPECT_THAT(Evaluate(model_.get(), *task_, **records, {}).status().ToString(),
              HasSubstr("bad.jsonl"));
  const auto evaluation =
      Evaluate(model_.get(), *task_, **records,
               {.loader = {.on_bad_record = OnBadRecord::kSkip}});
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->num_examples, 3);
  EXPECT_EQ(evaluation->skipped.count, 1);
}

}  // namespace
}  // namespace etc
