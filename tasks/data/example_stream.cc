#include "tasks/data/example_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace etc {
namespace {

// The options with bounds: no more prefetched records than the source has, no
// more threads than records to make at a time.
ExampleStreamOptions Bounded(ExampleStreamOptions options,
                             const ExampleSource& source) {
  options.prefetch = options.workers > 0 ? std::clamp<int64_t>(options.prefetch,
                                                               0, source.size())
                                         : 0;
  options.workers = std::min(options.workers, options.prefetch + 1);
  return options;
}

}  // namespace

ExampleStream::ExampleStream(const ExampleSource* source, Sequence sequence,
                             ExampleStreamOptions options)
    : source_(source),
      sequence_(std::move(sequence)),
      options_(Bounded(options, *source)) {
  StartWorkers();
}

ExampleStream::~ExampleStream() { StopWorkers(); }

void ExampleStream::StartWorkers() {
  try {
    threads_.reserve(static_cast<size_t>(options_.workers));
    for (int64_t i = 0; i < options_.workers; ++i) {
      threads_.emplace_back([this] { MakeExamplesUntilStopped(); });
    }
  } catch (const std::exception& error) {
    // std::system_error or std::bad_alloc: the system has no more of them.
    const size_t count = threads_.size();
    StopWorkers();
    started_ = absl::ResourceExhaustedError(absl::StrCat(
        "only ", count, " of ", options_.workers,
        " threads that make examples (data.workers) could be started: ",
        error.what()));
  }
}

void ExampleStream::StopWorkers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  may_begin_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void ExampleStream::FillSlots() {
  const auto wanted = static_cast<size_t>(options_.prefetch) + 1;
  // Only this thread adds slots and takes them away.
  while (slots_.size() < wanted) {
    const std::optional<RecordRequest> request = sequence_();
    if (!request.has_value()) {
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      slots_.emplace_back().request = *request;
    }
    may_begin_.notify_one();
  }
}

std::optional<ExampleStream::Made> ExampleStream::Next() {
  FillSlots();
  if (slots_.empty()) {
    return std::nullopt;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!started_.ok()) {
    return Made{slots_.front().request.record, started_};
  }
  if (!WaitForFirst(&lock)) {
    return Made{slots_.front().request.record,
                absl::CancelledError("the making of examples was stopped")};
  }
  Slot next = std::move(slots_.front());
  slots_.pop_front();
  --begun_;
  prefetched_bytes_ -= next.bytes;
  lock.unlock();
  may_begin_.notify_all();
  seconds_waited_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (next.thrown != nullptr) {
    std::rethrow_exception(next.thrown);
  }
  return Made{next.request.record, std::move(next.examples)};
}

bool ExampleStream::IsStopped() const {
  return options_.stop != nullptr && options_.stop->load();
}

bool ExampleStream::WaitForFirst(std::unique_lock<std::mutex>* lock) {
  // Signal handlers set the flag, and cannot notify.
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  if (IsStopped()) {
    return false;
  }
  if (options_.workers <= 0) {
    begun_ = 1;
    Make(&slots_.front());
    prefetched_bytes_ += slots_.front().bytes;
    return true;
  }
  while (!is_made_.wait_for(*lock, kBetweenLooks,
                            [this] { return slots_.front().is_made; })) {
    if (IsStopped()) {
      return false;
    }
  }
  return true;
}

bool ExampleStream::MayBegin() const {
  return begun_ < slots_.size() &&
         (begun_ < static_cast<size_t>(options_.workers) ||
          prefetched_bytes_ < options_.max_prefetch_bytes);
}

void ExampleStream::Make(Slot* slot) const {
  try {
    slot->examples = source_->Make(slot->request);
  } catch (...) {
    // Next() rethrows it.
    slot->thrown = std::current_exception();
  }
  slot->bytes = slot->examples.ok() ? ExampleBytes(*slot->examples) : 0;
}

void ExampleStream::MakeExamplesUntilStopped() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    may_begin_.wait(lock, [this] { return stopped_ || MayBegin(); });
    if (stopped_ || IsStopped()) {
      return;
    }
    // A deque's elements stay where they are when others are added at its end
    // or removed from its front.
    Slot& slot = slots_[begun_++];
    lock.unlock();
    Make(&slot);
    lock.lock();
    slot.is_made = true;
    prefetched_bytes_ += slot.bytes;
    is_made_.notify_one();
  }
}

}  // namespace etc
