#include "tasks/data/loader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "etc/formats/status_macros.h"
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

}  // namespace

RecordGate::RecordGate(RecordUse use, OnBadRecord on_bad_record,
                       int64_t num_records)
    : use_(use),
      on_bad_record_(on_bad_record),
      is_counted_(static_cast<size_t>(num_records)) {}

absl::StatusOr<Examples> RecordGate::Pass(ExampleStream::Made made) {
  const auto record = static_cast<size_t>(made.record);
  const bool is_new = !is_counted_[record];
  is_counted_[record] = true;
  if (absl::IsInvalidArgument(made.examples.status()) &&
      on_bad_record_ == OnBadRecord::kSkip) {
    if (skipped_.count == 0) {
      skipped_.first_message = std::string(made.examples.status().message());
    }
    skipped_.count += is_new ? 1 : 0;
    return Examples();
  }
  if (made.examples.ok() && use_ == RecordUse::kTraining) {
    std::erase_if(*made.examples, [&](const auto& example) {
      if (is_new && !example->left_out.empty()) {
        ++skipped_.left_out[example->left_out];
      }
      return !example->left_out.empty();
    });
  }
  return std::move(made.examples);
}

TrainingLoader::TrainingLoader(const ExampleSource* source,
                               TrainingLoaderOptions options,
                               LoaderPosition start)
    : options_(options),
      num_records_(source->size()),
      gate_(RecordUse::kTraining, options.on_bad_record, source->size()),
      requested_(start),
      pool_end_(start),
      next_batch_(start.batch),
      stream_(source, [this] { return NextRecord(); },
              {.workers = options.workers,
               .ahead = options.bucket_batches * options.batch_size}) {
  pool_end_.batch = 0;
}

std::optional<int64_t> TrainingLoader::NextRecord() {
  if (order_.empty()) {
    order_ = RandomOrder(
        num_records_,
        CombineSeeds({options_.seed, static_cast<uint64_t>(requested_.epoch)}));
  }
  const int64_t record = order_[static_cast<size_t>(requested_.record)];
  if (++requested_.record == num_records_) {
    requested_ = {.epoch = requested_.epoch + 1};
    order_.clear();
  }
  return record;
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
  const auto wanted =
      static_cast<size_t>(options_.bucket_batches * options_.batch_size);
  Examples examples;
  while (examples.size() < wanted && pool_end_.record < num_records_) {
    if (!record_.has_value()) {
      ETC_ASSIGN_OR_RETURN(record_, gate_.Pass(*stream_.Next()));
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
      return absl::FailedPreconditionError(absl::StrCat(
          "the training data have ", found, " examples, which is less than ",
          "one batch of ", options_.batch_size));
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
              [this, size = source->size()]() -> std::optional<int64_t> {
                if (requested_ == size) {
                  return std::nullopt;
                }
                return requested_++;
              },
              {.workers = options.workers, .ahead = 2 * options.batch_size}) {}

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
