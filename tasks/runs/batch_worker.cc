#include "tasks/runs/batch_worker.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/data/batch.h"
#include "tasks/train/device.h"
#include "tasks/train/evaluate.h"

namespace etc {
namespace {

// Rows of each tensor [B, ...], as [1, ...], in memory of their own.
std::vector<BatchWorker::Logits> RowsOf(
    const std::vector<torch::Tensor>& logits, int64_t batch_size) {
  std::vector<BatchWorker::Logits> rows(static_cast<size_t>(batch_size));
  for (const torch::Tensor& tensor : logits) {
    TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) == batch_size,
                "the head's logits should have a row for each of ", batch_size,
                " examples, but have the shape ", tensor.sizes());
    for (int64_t b = 0; b < batch_size; ++b) {
      rows[static_cast<size_t>(b)].push_back(tensor.narrow(0, b, 1).clone());
    }
  }
  return rows;
}

bool AreFinite(const BatchWorker::Logits& logits) {
  return std::all_of(logits.begin(), logits.end(),
                     [](const torch::Tensor& tensor) {
                       return torch::isfinite(tensor).all().item<bool>();
                     });
}

}  // namespace

absl::StatusOr<std::vector<BatchWorker::Logits>> BatchWorker::Request::Wait() {
  std::unique_lock<std::mutex> lock(worker_->mutex_);
  worker_->is_answered_.wait(lock, [this] { return missing_ == 0; });
  if (thrown_ != nullptr) {
    std::rethrow_exception(thrown_);
  }
  ETC_RETURN_IF_ERROR(status_);
  return std::move(logits_);
}

BatchWorker::BatchWorker(TaskModel model, Options options)
    : model_(std::move(model)), options_(options) {
  model_.SetTraining(false);
}

absl::StatusOr<std::unique_ptr<BatchWorker>> BatchWorker::Start(
    TaskModel model, Options options) {
  // The constructor is private: make_unique cannot see it.
  std::unique_ptr<BatchWorker> worker(
      new BatchWorker(std::move(model), options));
  std::promise<absl::Status> started;
  std::future<absl::Status> status = started.get_future();
  try {
    worker->thread_ =
        std::thread(&BatchWorker::Run, worker.get(), std::move(started));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the thread of the model: ", error.what()));
  }
  ETC_RETURN_IF_ERROR(status.get());
  return worker;
}

BatchWorker::~BatchWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  is_waiting_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

int64_t BatchWorker::LengthOf(const Example& example) {
  return example.long_length() + example.global_length();
}

std::vector<std::shared_ptr<BatchWorker::Request>> BatchWorker::Submit(
    const std::vector<Examples>& records) {
  std::vector<std::shared_ptr<Request>> requests;
  requests.reserve(records.size());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Examples& examples : records) {
      // The constructor is private: make_shared cannot see it.
      std::shared_ptr<Request> request(new Request(this));
      request->missing_ = examples.size();
      request->logits_.resize(examples.size());
      for (size_t i = 0; i < examples.size(); ++i) {
        by_length_.emplace(LengthOf(*examples[i]), next_ticket_);
        waiting_.emplace_hint(
            waiting_.end(), next_ticket_++,
            Item{.request = request, .index = i, .example = examples[i]});
      }
      requests.push_back(std::move(request));
    }
  }
  is_waiting_.notify_one();
  return requests;
}

void BatchWorker::Run(std::promise<absl::Status> started) {
  const torch::NoGradGuard no_grad;
  const CurrentDevice current(options_.device);
  // OpenMP's number belongs to the thread that sets it.
  started.set_value(
      SetThreads(options_.threads, options_.threads_field).status());
  while (true) {
    const std::vector<Item> batch = TakeBatch();
    if (batch.empty()) {
      return;
    }
    RunBatch(batch);
  }
}

std::vector<BatchWorker::Item> BatchWorker::TakeBatch() {
  std::unique_lock<std::mutex> lock(mutex_);
  is_waiting_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
  return stopped_ ? std::vector<Item>() : TakeNearest();
}

std::vector<BatchWorker::Item> BatchWorker::TakeNearest() {
  constexpr int64_t kMostPadded = 2;  // longest / shortest of a batch
  const auto first = waiting_.begin();
  const int64_t length = LengthOf(*first->second.example);
  // [begin, end) grows towards the nearer length on either side.
  auto begin = by_length_.find({length, first->first});
  auto end = std::next(begin);
  int64_t shortest = length;
  int64_t longest = length;
  for (int64_t size = 1; size < options_.batch_size; ++size) {
    const bool has_shorter = begin != by_length_.begin() &&
                             std::prev(begin)->first * kMostPadded >= longest;
    const bool has_longer =
        end != by_length_.end() && shortest * kMostPadded >= end->first;
    if (!has_shorter && !has_longer) {
      break;
    }
    if (has_longer && (!has_shorter || end->first - length <=
                                           length - std::prev(begin)->first)) {
      longest = end->first;
      ++end;
    } else {
      --begin;
      shortest = begin->first;
    }
  }
  std::vector<Item> batch;
  for (auto place = begin; place != end; ++place) {
    batch.push_back(std::move(waiting_.extract(place->second).mapped()));
  }
  by_length_.erase(begin, end);
  return batch;
}

absl::StatusOr<std::vector<BatchWorker::Logits>> BatchWorker::Forward(
    const std::vector<Item>& batch) {
  const auto size = static_cast<int64_t>(batch.size());
  const auto done = NamingOutOfMemory(
      [&] {
        return absl::StrCat("running the model on ", Counted(size, "example"));
      },
      [&]() -> absl::StatusOr<std::vector<Logits>> {
        Examples examples;
        for (const Item& item : batch) {
          examples.push_back(item.example);
        }
        std::vector<torch::Tensor> logits =
            model_.Forward(MakeBatch(std::move(examples), options_.device));
        for (torch::Tensor& tensor : logits) {
          tensor = tensor.cpu();
        }
        return RowsOf(logits, size);
      });
  ETC_RETURN_IF_ERROR(WithBatchAdvice(done.status(), size));
  return done;
}

std::vector<BatchWorker::Answered> BatchWorker::Compute(
    const std::vector<Item>& batch) {
  absl::StatusOr<std::vector<Logits>> rows = Forward(batch);
  std::vector<Answered> answers(batch.size(), {.status = rows.status()});
  for (size_t b = 0; b < batch.size() && rows.ok(); ++b) {
    answers[b].logits = std::move((*rows)[b]);
    if (!AreFinite(answers[b].logits)) {
      answers[b].status = absl::AbortedError(
          absl::StrCat("record ", batch[b].example->record_id,
                       ": the model's logits are infinite or not a number"));
    }
  }
  return answers;
}

void BatchWorker::RunBatch(const std::vector<Item>& batch) {
  std::exception_ptr thrown;
  std::vector<Answered> answers(batch.size());
  try {
    answers = Compute(batch);
  } catch (...) {
    // For the threads that wait for it.
    thrown = std::current_exception();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t b = 0; b < batch.size(); ++b) {
      Request& request = *batch[b].request;
      request.logits_[batch[b].index] = std::move(answers[b].logits);
      request.status_.Update(answers[b].status);
      if (thrown != nullptr) {
        request.thrown_ = thrown;
      }
      --request.missing_;
    }
  }
  is_answered_.notify_all();
}

}  // namespace etc
