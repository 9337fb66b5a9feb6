#include "tasks/data/example_stream.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace etc {

ExampleStream::ExampleStream(const ExampleSource* source, Sequence sequence,
                             ExampleStreamOptions options)
    : source_(source), sequence_(std::move(sequence)), options_(options) {
  for (int64_t i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this] { MakeExamplesUntilStopped(); });
  }
}

ExampleStream::~ExampleStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ExampleStream::Request() {
  const std::optional<int64_t> record = sequence_();
  if (!record.has_value()) {
    at_end_ = true;
    return;
  }
  Work work(
      [source = source_, index = *record] { return source->Make(index); });
  pending_.push_back({*record, work.get_future()});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

std::optional<ExampleStream::Made> ExampleStream::Next() {
  const auto ahead = static_cast<size_t>(
      threads_.empty() ? 0 : std::max<int64_t>(options_.ahead, 0));
  while (!at_end_ && pending_.size() < ahead + 1) {
    Request();
  }
  if (pending_.empty()) {
    return std::nullopt;
  }
  const auto begin = std::chrono::steady_clock::now();
  if (threads_.empty()) {
    work_.front()();
    work_.pop_front();
  }
  Pending next = std::move(pending_.front());
  pending_.pop_front();
  next.examples.wait();
  seconds_waited_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return Made{next.record, next.examples.get()};
}

void ExampleStream::MakeExamplesUntilStopped() {
  while (true) {
    Work work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !work_.empty(); });
      if (stopped_) {
        return;
      }
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace etc
