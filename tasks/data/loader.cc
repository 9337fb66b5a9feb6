#include "tasks/data/loader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "tasks/data/example_count.h"
#include "tasks/data/shuffle.h"

namespace etc {
namespace {

// Cuts `examples` into parts of `size`; the last has what is left.
std::vector<Examples> Cut(const Examples& examples, int64_t size) {
  std::vector<Examples> parts;
  for (auto begin = examples.begin(); begin != examples.end();) {
    const auto end = begin + std::min<int64_t>(size, examples.end() - begin);
    parts.emplace_back(begin, end);
    begin = end;
  }
  return parts;
}

// bucket_batches * batch_size, or the largest number if that is larger.
int64_t PoolSize(const TrainingLoaderOptions& options) {
  int64_t size = 0;
  return __builtin_mul_overflow(options.bucket_batches, options.batch_size,
                                &size)
             ? std::numeric_limits<int64_t>::max()
             : size;
}

absl::Status PoolTakesTooMuch(const TrainingLoaderOptions& options,
                              size_t examples) {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "batches are cut from a pool of data.bucket_batches (%d) times "
      "train.batch_size (%d) examples, of which %d already take more than "
      "%.2f GB, the share of this process's memory for them; choose a smaller "
      "data.bucket_batches",
      options.bucket_batches, options.batch_size, examples,
      1e-9 * static_cast<double>(options.max_pool_bytes)));
}

}  // namespace

TrainingLoader::TrainingLoader(const ExampleSource* source,
                               TrainingLoaderOptions options,
                               LoaderPosition start)
    : options_(options),
      num_records_(source->size()),
      gate_(RecordUse::kTraining, options.on_bad_record, source->size()),
      requested_(start),
      pool_end_(start),
      next_batch_(start.batch),
      stream_(source, [this] { return NextRequest(); },
              {.workers = options.workers,
               .prefetch = PoolSize(options),
               .max_prefetch_bytes = options.max_prefetch_bytes,
               .stop = options.stop}) {
  pool_end_.batch = 0;
}

RecordRequest TrainingLoader::NextRequest() {
  if (order_.empty()) {
    order_ = RandomOrder(
        num_records_,
        CombineSeeds({options_.seed, static_cast<uint64_t>(requested_.epoch)}));
  }
  const RecordRequest request =
      RequestInEpoch(options_.seed, requested_.epoch,
                     order_[static_cast<size_t>(requested_.record)]);
  if (++requested_.record == num_records_) {
    requested_ = {.epoch = requested_.epoch + 1};
    order_.clear();
  }
  return request;
}

void TrainingLoader::CutPool(Examples examples) {
  const auto batch_size = static_cast<size_t>(options_.batch_size);
  // Before sorting, or the longest examples would be the ones left out.
  examples.resize(examples.size() / batch_size * batch_size);
  std::stable_sort(
      examples.begin(), examples.end(),
      [](const auto& left, const auto& right) {
        return std::make_tuple(left->long_length(), left->global_length()) <
               std::make_tuple(right->long_length(), right->global_length());
      });
  std::vector<Examples> batches = Cut(examples, options_.batch_size);
  pool_.clear();
  for (const int64_t batch :
       RandomOrder(static_cast<int64_t>(batches.size()),
                   CombineSeeds(
                       {options_.seed, static_cast<uint64_t>(pool_begin_.epoch),
                        static_cast<uint64_t>(pool_begin_.record),
                        static_cast<uint64_t>(pool_begin_.example)}))) {
    pool_.push_back(std::move(batches[static_cast<size_t>(batch)]));
  }
}

absl::Status TrainingLoader::FillPool() {
  pool_begin_ = pool_end_;
  const auto wanted = static_cast<size_t>(PoolSize(options_));
  Examples examples;
  int64_t bytes = 0;
  while (examples.size() < wanted && pool_end_.record < num_records_) {
    if (!record_.has_value()) {
      ETC_ASSIGN_OR_RETURN(record_, gate_.Pass(*stream_.Next()));
      bytes += ExampleBytes(*record_);
      if (bytes > options_.max_pool_bytes) {
        return PoolTakesTooMuch(options_, examples.size());
      }
    }
    for (; examples.size() < wanted &&
           pool_end_.example < static_cast<int64_t>(record_->size());
         ++pool_end_.example) {
      examples.push_back((*record_)[static_cast<size_t>(pool_end_.example)]);
    }
    if (pool_end_.example >= static_cast<int64_t>(record_->size())) {
      record_.reset();
      pool_end_.example = 0;
      ++pool_end_.record;
    }
  }
  const size_t found = examples.size();
  CutPool(std::move(examples));
  if (pool_end_.record == num_records_) {
    const bool whole_epoch =
        pool_begin_.record == 0 && pool_begin_.example == 0;
    if (whole_epoch && pool_.empty()) {
      return TooFewExamples(static_cast<int64_t>(found), options_.batch_size);
    }
    pool_end_ = {.epoch = pool_end_.epoch + 1};
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingBatch> TrainingLoader::Next() {
  if (pool_end_.record < 0 ||
      pool_end_.record >= std::max<int64_t>(num_records_, 1)) {
    return absl::FailedPreconditionError(
        absl::StrCat("training should go on at record ", pool_end_.record,
                     ", but the data have ", num_records_));
  }
  while (next_batch_ >= static_cast<int64_t>(pool_.size())) {
    // A start in the middle of a pool comes here with that pool yet to fill.
    next_batch_ = pool_.empty() ? next_batch_ : 0;
    ETC_RETURN_IF_ERROR(FillPool());
    if (next_batch_ > 0 && next_batch_ >= static_cast<int64_t>(pool_.size())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "training should go on at batch ", next_batch_, " of a pool of ",
          pool_.size(), ": the data are not those that it began with"));
    }
  }
  TrainingBatch batch;
  batch.epoch = pool_begin_.epoch;
  batch.micro_batches =
      Cut(pool_[static_cast<size_t>(next_batch_)], options_.micro_batch_size);
  ++next_batch_;
  batch.next = pool_end_;
  if (next_batch_ < static_cast<int64_t>(pool_.size())) {
    batch.next = pool_begin_;
    batch.next.batch = next_batch_;
  }
  return batch;
}

EvaluationLoader::EvaluationLoader(const ExampleSource* source, Options options)
    : options_(options),
      gate_(RecordUse::kEvaluation, options.on_bad_record, source->size()),
      stream_(source,
              [this, size = source->size()]() -> std::optional<RecordRequest> {
                if (requested_ == size) {
                  return std::nullopt;
                }
                return RequestForEvaluation(requested_++);
              },
              {.workers = options.workers,
               .prefetch = std::min(options.batch_size, source->size()) * 2,
               .max_prefetch_bytes = options.max_prefetch_bytes,
               .stop = options.stop}) {}

absl::StatusOr<Examples> EvaluationLoader::Next() {
  const auto batch_size = static_cast<size_t>(options_.batch_size);
  while (left_.size() < batch_size) {
    std::optional<ExampleStream::Made> made = stream_.Next();
    if (!made.has_value()) {
      break;
    }
    ETC_ASSIGN_OR_RETURN(const Examples examples, gate_.Pass(*std::move(made)));
    left_.insert(left_.end(), examples.begin(), examples.end());
  }
  const auto end = left_.begin() + static_cast<std::ptrdiff_t>(
                                       std::min(batch_size, left_.size()));
  Examples batch(std::make_move_iterator(left_.begin()),
                 std::make_move_iterator(end));
  left_.erase(left_.begin(), end);
  return batch;
}

}  // namespace etc
