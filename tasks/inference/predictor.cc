#include "tasks/inference/predictor.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/runs/batch_worker.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/task/benchmark_task.h"
#include "tasks/train/device.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_context.h"
#include "tasks/train/run_plan.h"

namespace etc {

struct Predictor::Model {
  OpenedCheckpoint checkpoint;
  const RecordTask* task = nullptr;  // of checkpoint
  std::unique_ptr<BatchWorker> worker;
};

struct Predictor::Pending::State {
  // Makes the examples of the record at `of_place`; there is no request yet.
  State(std::shared_ptr<const Model> of_model, std::string of_place,
        const std::function<absl::StatusOr<Examples>()>& make_examples)
      : model(std::move(of_model)),
        place(std::move(of_place)),
        examples(NamingOutOfMemory(
            [this] { return absl::StrCat("making examples of ", place); },
            make_examples)) {}

  std::shared_ptr<const Model> model;
  std::string place;
  // Or the reason why there is no request.
  absl::StatusOr<Examples> examples;
  std::shared_ptr<BatchWorker::Request> request;
  // True once Get was called.
  std::atomic<bool> is_taken = false;
};

namespace {

absl::Status CheckLength(absl::string_view record, const std::string& place,
                         uint64_t most) {
  return record.size() <= most
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(absl::StrCat(
                   place, ": a record should have at most ", most,
                   " bytes (data.max_record_megabytes), but has more"));
}

}  // namespace

absl::StatusOr<Predictor> Predictor::Open(const std::string& checkpoint,
                                          const PredictorOptions& options) {
  if (options.batch_size.has_value() && *options.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--batch-size should be at least 1, but is ", *options.batch_size));
  }
  CallbackReporter reporter(options.callbacks.message,
                            options.callbacks.warning);
  const RunContext context = {.reporter = &reporter};
  auto model = std::make_shared<Model>();
  ETC_ASSIGN_OR_RETURN(
      model->checkpoint,
      OpenCheckpoint({.checkpoint = checkpoint,
                      .task = options.task,
                      .overrides = options.overrides,
                      .residual_attention = options.residual_attention,
                      .device = options.device,
                      .predicts = true,
                      .threads = options.threads,
                      .batch_size = options.batch_size,
                      .context = context}));
  const OpenedCheckpoint& opened = model->checkpoint;
  model->task = dynamic_cast<const RecordTask*>(opened.setup.task.get());
  TORCH_CHECK(model->task != nullptr, opened.config.task,
              " should predict for records");
  const CurrentDevice current(opened.device.device);
  const TrainConfig& train = opened.config.train;
  const std::string threads = ThreadsField(options.threads);
  context.Warn(ThreadsWarning(train.threads, threads));
  ETC_ASSIGN_OR_RETURN(TaskModel loaded, LoadModelOfRun(opened, context));
  ETC_ASSIGN_OR_RETURN(
      model->worker,
      BatchWorker::Start(std::move(loaded),
                         {.batch_size = train.evaluation_batch_size,
                          .threads = train.threads,
                          .threads_field = threads,
                          .device = opened.device.device}));
  return Predictor(std::move(model));
}

absl::StatusOr<RecordPrediction> Predictor::Pending::Get() {
  TORCH_CHECK(!state_->is_taken.exchange(true),
              "Get should be called once for a prediction, but is called again "
              "for ",
              state_->place);
  ETC_RETURN_IF_ERROR(state_->examples.status());
  ETC_ASSIGN_OR_RETURN(const std::vector<BatchWorker::Logits> logits,
                       state_->request->Wait());
  return NamingOutOfMemory(
      [&] { return absl::StrCat("predicting for ", state_->place); },
      [&]() -> absl::StatusOr<RecordPrediction> {
        return state_->model->task->PredictRecord(*state_->examples, logits);
      });
}

Predictor::Pending Predictor::Prepare(absl::string_view record,
                                      const std::string& place) const {
  return Pending(std::make_shared<Pending::State>(
      model_, place, [&]() -> absl::StatusOr<Examples> {
        ETC_RETURN_IF_ERROR(CheckLength(record, place, max_record_bytes()));
        return model_->task->MakeExamplesToPredict(std::string(record), place);
      }));
}

void Predictor::Submit(absl::Span<const Pending> records) const {
  std::vector<Examples> examples;
  for (const Pending& record : records) {
    if (record.state_->examples.ok()) {
      examples.push_back(*record.state_->examples);
    }
  }
  const auto requests = model_->worker->Submit(examples);
  auto request = requests.begin();
  for (const Pending& record : records) {
    if (record.state_->examples.ok()) {
      record.state_->request = *request++;
    }
  }
}

Predictor::Pending Predictor::Start(absl::string_view record,
                                    const std::string& place) const {
  Pending pending = Prepare(record, place);
  Submit({pending});
  return pending;
}

absl::StatusOr<RecordPrediction> Predictor::Predict(
    absl::string_view record) const {
  return Start(record).Get();
}

absl::StatusOr<RecordPrediction> Predictor::PredictAny(
    const std::any& record) const {
  const std::string place = "record 0";
  Pending pending(std::make_shared<Pending::State>(model_, place, [&] {
    return model_->task->MakeExamplesOf(record, place);
  }));
  Submit({pending});
  return pending.Get();
}

// Several batches of records at a time: the examples of the next ones are made
// while the model runs.
std::vector<absl::StatusOr<RecordPrediction>> Predictor::Predict(
    absl::Span<const std::string> records) const {
  constexpr size_t kBatches = 16;
  const size_t step = kBatches * static_cast<size_t>(batch_size());
  std::vector<absl::StatusOr<RecordPrediction>> predictions;
  predictions.reserve(records.size());
  std::vector<Pending> running;
  const auto finish = [&] {
    for (Pending& pending : running) {
      predictions.push_back(pending.Get());
    }
  };
  for (size_t begin = 0; begin < records.size(); begin += step) {
    std::vector<Pending> next;
    const size_t end = std::min(records.size(), begin + step);
    for (size_t i = begin; i < end; ++i) {
      next.push_back(Prepare(records[i], absl::StrCat("record ", i)));
    }
    Submit(next);
    finish();
    running = std::move(next);
  }
  finish();
  return predictions;
}

std::string Predictor::FileOf(
    absl::Span<const RecordPrediction> predictions) const {
  return model_->task->FileOf(predictions);
}

const std::string& Predictor::task() const {
  return model_->checkpoint.config.task;
}

const std::string& Predictor::checkpoint() const {
  return model_->checkpoint.directory;
}

int64_t Predictor::batch_size() const {
  return model_->checkpoint.config.train.evaluation_batch_size;
}

uint64_t Predictor::max_record_bytes() const {
  return RecordLimitsOf(model_->checkpoint.config.data).max_record_bytes;
}

}  // namespace etc
