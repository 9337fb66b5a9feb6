// The result of a request whose examples run in several batches.
#include "tasks/runs/batch_worker.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tasks/train/toy_task.h"

namespace etc {
namespace {

// A mistake of a task: throws for the record "bad".
class ThrowingHead final : public ToyHead {
 public:
  using ToyHead::ToyHead;

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    for (const auto& example : batch.examples) {
      if (example->record_id == "bad") {
        throw std::runtime_error("a broken promise");
      }
    }
    return ToyHead::forward(encoded, batch);
  }
};

// Returns the example of the record `id`.
std::shared_ptr<const Example> ExampleOf(const ToyTask& task,
                                         const std::string& id) {
  const auto made = task.MakeExamples(
      R"({"tokens": [2, 7, 9], "id": ")" + id + R"("})", "test");
  EXPECT_TRUE(made.ok()) << made.status();
  return made->front();
}

TEST(BatchWorkerTest, RethrowsAnErrorThatALaterBatchDoesNotHave) {
  const auto config =
      RunConfigFromJson(ToyConfigJson("train", "dev", "output"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto worker = BatchWorker::Start(
      TaskModel(EtcModel(config->model),
                std::make_shared<ThrowingHead>(config->model.hidden_size)),
      {.batch_size = 1, .threads = 1});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const auto bad = ExampleOf(task, "bad");
  const auto good = ExampleOf(task, "good");
  const auto requests = (*worker)->Submit({{bad, good}, {good, good}});
  EXPECT_THROW(static_cast<void>(requests[0]->Wait()), c10::Error);
  const auto logits = requests[1]->Wait();
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->size(), 2u);
}

// A mistake of a task: logits of the first example of a batch alone.
class OneRowHead final : public ToyHead {
 public:
  using ToyHead::ToyHead;

  std::vector<torch::Tensor> forward(const EtcOutput& encoded,
                                     const Batch& batch) override {
    return {ToyHead::forward(encoded, batch)[0].narrow(0, 0, 1)};
  }
};

TEST(BatchWorkerTest, RethrowsTheErrorOfLogitsThatAreNotOneRowAnExample) {
  const auto config =
      RunConfigFromJson(ToyConfigJson("train", "dev", "output"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto worker = BatchWorker::Start(
      TaskModel(EtcModel(config->model),
                std::make_shared<OneRowHead>(config->model.hidden_size)),
      {.batch_size = 2, .threads = 1});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const auto example = ExampleOf(task, "a");
  const auto requests = (*worker)->Submit({{example, example}, {example}});
  EXPECT_THROW(static_cast<void>(requests[0]->Wait()), c10::Error);
  const auto logits = requests[1]->Wait();
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->size(), 1u);
}

// In one batch with another, which is answered.
TEST(BatchWorkerTest, GivesAnErrorForLogitsThatAreNoNumbers) {
  const auto config =
      RunConfigFromJson(ToyConfigJson("train", "dev", "output"), "toy");
  ASSERT_TRUE(config.ok()) << config.status();
  const ToyTask task(config->model);
  const auto head = std::make_shared<ToyHead>(config->model.hidden_size);
  head->nan_logits_record = "broken";
  const auto worker =
      BatchWorker::Start(TaskModel(EtcModel(config->model), head),
                         {.batch_size = 2, .threads = 1});
  ASSERT_TRUE(worker.ok()) << worker.status();
  const auto requests = (*worker)->Submit(
      {{ExampleOf(task, "broken")}, {ExampleOf(task, "whole")}});
  const absl::Status broken = requests[0]->Wait().status();
  EXPECT_TRUE(absl::IsAborted(broken)) << broken;
  EXPECT_EQ(broken.message(),
            "record broken: the model's logits are infinite or not a number");
  const auto logits = requests[1]->Wait();
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->size(), 1u);
}

}  // namespace
}  // namespace etc
