#include "tasks/data/loader.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/random.h"
#include "base/shuffle.h"
#include "base/status_macros.h"
#include "tasks/data/deal.h"
#include "tasks/data/example_count.h"

namespace etc {
namespace {

// Cuts `examples` into parts of `size`; the last has the rest.
std::vector<ExampleOutlines> Cut(const ExampleOutlines& examples,
                                 int64_t size) {
  std::vector<ExampleOutlines> parts;
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

// A process's part of the prefetched records of a pool. Where there are several
// processes, the memory is for two streams.
ExampleStreamOptions StreamOptions(const TrainingLoaderOptions& options) {
  const int64_t processes = options.group.size;
  return {.workers = options.workers,
          .prefetch = PoolSize(options) / processes + (processes > 1 ? 1 : 0),
          .max_prefetch_bytes =
              options.max_prefetch_bytes / (processes > 1 ? 2 : 1),
          .stop = options.stop};
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
                               const TrainingLoaderOptions& options,
                               LoaderPosition start)
    : options_(options),
      num_records_(source->size()),
      gate_(RecordUse::kTraining, options.on_bad_record, source->size()),
      requested_(start),
      pool_end_(start),
      next_batch_(start.batch),
      outlines_(
          source, [this] { return NextRequest(); }, StreamOptions(options),
          options.group, options.batch_size) {
  pool_end_.batch = 0;
  if (options.group.size > 1) {
    stream_ = std::make_unique<ExampleStream>(
        source,
        [this]() -> std::optional<RecordRequest> {
          if (wanted_.empty()) {
            return std::nullopt;
          }
          const RecordRequest request = wanted_.front();
          wanted_.pop_front();
          return request;
        },
        StreamOptions(options));
  }
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

void TrainingLoader::CutPool(ExampleOutlines examples) {
  const auto batch_size = static_cast<size_t>(options_.batch_size);
  // Before sorting, or the longest examples would be the ones left out.
  examples.resize(examples.size() / batch_size * batch_size);
  std::stable_sort(examples.begin(), examples.end(),
                   [](const auto& left, const auto& right) {
                     return std::tie(left.long_length, left.global_length) <
                            std::tie(right.long_length, right.global_length);
                   });
  const std::vector<ExampleOutlines> batches =
      Cut(examples, options_.batch_size);
  pool_.clear();
  for (const int64_t batch :
       RandomOrder(static_cast<int64_t>(batches.size()),
                   CombineSeeds(
                       {options_.seed, static_cast<uint64_t>(pool_begin_.epoch),
                        static_cast<uint64_t>(pool_begin_.record),
                        static_cast<uint64_t>(pool_begin_.example)}))) {
    pool_.push_back(
        Cut(batches[static_cast<size_t>(batch)], options_.micro_batch_size));
  }
  // A start in the middle of a pool needs no batch before it.
  for (auto i = static_cast<size_t>(next_batch_); i < pool_.size(); ++i) {
    TakeShare(&pool_[i]);
  }
  if (stream_ != nullptr) {
    stream_->Prefetch();
  }
}

void TrainingLoader::TakeShare(MicroBatches* batch) {
  const std::vector<bool> is_here =
      DealMicroBatches(*batch, options_.group.size, options_.group.rank);
  for (size_t i = 0; i < batch->size(); ++i) {
    if (!is_here[i]) {
      (*batch)[i].clear();
    }
    for (ExampleOutline& outline : (*batch)[i]) {
      if (outline.example != nullptr) {
        continue;
      }
      std::vector<ExampleOutline*>& of_record =
          incomplete_[outline.request.record];
      if (of_record.empty()) {
        wanted_.push_back(outline.request);
      }
      of_record.push_back(&outline);
    }
  }
}

absl::Status TrainingLoader::MakeWanted() {
  const std::optional<ExampleStream::Made> made = stream_->Next();
  ETC_RETURN_IF_ERROR(made->examples.status());
  const auto of_record = incomplete_.extract(made->record);
  for (ExampleOutline* const outline : of_record.mapped()) {
    ETC_RETURN_IF_ERROR(SetExample(*made->examples, outline));
  }
  return absl::OkStatus();
}

double TrainingLoader::seconds_waited() const {
  return outlines_.seconds_waited() +
         (stream_ == nullptr ? 0 : stream_->seconds_waited());
}

absl::Status TrainingLoader::FillPool() {
  pool_begin_ = pool_end_;
  const auto wanted = static_cast<size_t>(PoolSize(options_));
  ExampleOutlines examples;
  int64_t bytes = 0;  // of those that each process makes, on average
  while (examples.size() < wanted && pool_end_.record < num_records_) {
    if (!record_.has_value()) {
      ETC_ASSIGN_OR_RETURN(OutlineStream::Outlined* const next,
                           outlines_.Next());
      ETC_ASSIGN_OR_RETURN(record_,
                           gate_.Pass(next->record, std::move(next->examples)));
      for (const ExampleOutline& example : *record_) {
        bytes += example.bytes / options_.group.size;
      }
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
      return TooFewExamples(static_cast<int64_t>(found), options_.batch_size,
                            gate_.skipped());
    }
    pool_end_ = {.epoch = pool_end_.epoch + 1};
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingBatch> TrainingLoader::Next() {
  if (pool_end_.record < 0 || pool_end_.example < 0 || next_batch_ < 0 ||
      pool_end_.record >= std::max<int64_t>(num_records_, 1)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "training should go on at record ", pool_end_.record, ", example ",
        pool_end_.example, " and batch ", next_batch_, ", but the data have ",
        Counted(num_records_, "record")));
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
  MicroBatches& next = pool_[static_cast<size_t>(next_batch_)];
  for (const ExampleOutlines& outlines : next) {
    for (const ExampleOutline& outline : outlines) {
      while (outline.example == nullptr) {
        ETC_RETURN_IF_ERROR(MakeWanted());
      }
    }
    batch.micro_batches.push_back(ExamplesOf(outlines));
  }
  next.clear();
  ++next_batch_;
  batch.next = pool_end_;
  if (next_batch_ < static_cast<int64_t>(pool_.size())) {
    batch.next = pool_begin_;
    batch.next.batch = next_batch_;
  }
  return batch;
}

}  // namespace etc
