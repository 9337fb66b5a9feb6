#include "tasks/pretrain/corpus/batch_stream.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace etc {

BatchStream::BatchStream(CorpusReader* reader, const CorpusTokenizer* tokenizer,
                         const BatchTokenizerOptions* tokenizer_options,
                         const Options& options)
    : reader_(reader),
      tokenizer_(tokenizer),
      tokenizer_options_(tokenizer_options),
      options_(options) {
  StartWorkers();
}

BatchStream::~BatchStream() { StopWorkers(); }

void BatchStream::StartWorkers() {
  try {
    threads_.reserve(static_cast<size_t>(options_.threads));
    for (int64_t i = 0; i < options_.threads; ++i) {
      threads_.emplace_back([this] { WorkUntilStopped(); });
    }
  } catch (const std::exception& error) {
    // std::system_error or std::bad_alloc: the system has no more of them.
    const size_t count = threads_.size();
    StopWorkers();
    started_ = absl::ResourceExhaustedError(absl::StrCat(
        "only ", count, " of ", options_.threads,
        " threads that tokenize could be started: ", error.what()));
  }
}

void BatchStream::StopWorkers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  may_read_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

absl::StatusOr<std::optional<TokenizedBatch>> BatchStream::Next() {
  // Signal handlers set the flag, and cannot notify.
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  if (!started_.ok()) {
    return started_;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  const auto has_answer = [this] {
    return slots_.empty() ? at_end_ : slots_.front().is_done;
  };
  do {
    if (options_.stop != nullptr && options_.stop->load()) {
      return absl::CancelledError("the tokenizing was stopped");
    }
  } while (!is_done_.wait_for(lock, kBetweenLooks, has_answer));
  if (slots_.empty()) {
    return std::nullopt;
  }
  Slot next = std::move(slots_.front());
  slots_.pop_front();
  lock.unlock();
  may_read_.notify_one();
  if (next.thrown != nullptr) {
    std::rethrow_exception(next.thrown);
  }
  if (!next.result.ok()) {
    return std::move(next.result).status();
  }
  return *std::move(next.result);
}

void BatchStream::WorkUntilStopped() {
  BatchTokenizer tokenizer(tokenizer_, tokenizer_options_);
  CorpusBatch batch;
  while (Slot* const slot = ReadBatch(&batch)) {
    // An error of the reader is the answer already.
    if (slot->result.ok() && slot->thrown == nullptr) {
      try {
        slot->result = tokenizer.Tokenize(batch);
      } catch (...) {
        // Next() rethrows it.
        slot->thrown = std::current_exception();
      }
    }
    Finish(slot);
  }
}

BatchStream::Slot* BatchStream::ReadBatch(CorpusBatch* batch) {
  const std::lock_guard<std::mutex> reading(reading_);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto most = static_cast<size_t>(2 * options_.threads + 2);
    may_read_.wait(lock, [this, most] {
      return stopped_ || at_end_ || slots_.size() < most;
    });
    if (stopped_ || at_end_) {
      return nullptr;
    }
  }
  Slot slot = {.result = TokenizedBatch()};
  bool has_batch = true;
  try {
    const absl::StatusOr<bool> read = reader_->Next(batch);
    has_batch = !read.ok() || *read;
    slot.result = read.ok() ? absl::StatusOr<TokenizedBatch>(TokenizedBatch())
                            : read.status();
  } catch (...) {
    slot.thrown = std::current_exception();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  at_end_ = !has_batch || !slot.result.ok() || slot.thrown != nullptr;
  if (!has_batch) {
    is_done_.notify_one();
    return nullptr;
  }
  // A deque's elements stay where they are when others are added at its end or
  // removed from its front.
  slots_.push_back(std::move(slot));
  return &slots_.back();
}

void BatchStream::Finish(Slot* slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  slot->is_done = true;
  is_done_.notify_one();
}

}  // namespace etc
