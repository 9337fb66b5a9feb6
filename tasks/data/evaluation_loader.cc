#include "tasks/data/evaluation_loader.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/out_of_memory.h"
#include "base/status_macros.h"

namespace etc {

EvaluationLoader::EvaluationLoader(const ExampleSource* source, Options options)
    : options_(std::move(options)),
      gate_(RecordUse::kEvaluation, options_.on_bad_record, source->size()),
      ids_(source, options_.predicts),
      stream_(source,
              [this, size = source->size()]() -> std::optional<RecordRequest> {
                if (is_first() && requested_ < size) {
                  return RequestForEvaluation(requested_++);
                }
                if (wanted_.empty()) {
                  return std::nullopt;
                }
                const RecordRequest request = wanted_.front();
                wanted_.pop_front();
                return request;
              },
              {.workers = options_.workers,
               .prefetch = std::min(options_.batch_size, source->size()) * 2,
               .max_prefetch_bytes = options_.max_prefetch_bytes,
               .stop = options_.stop}) {}

absl::StatusOr<ExampleOutlines> EvaluationLoader::TakeBatch() {
  const auto batch_size = static_cast<size_t>(options_.batch_size);
  while (left_.size() < batch_size) {
    const std::optional<ExampleStream::Made> made = stream_.Next();
    if (!made.has_value()) {
      break;
    }
    ETC_ASSIGN_OR_RETURN(
        ExampleOutlines examples,
        gate_.Pass(made->record, OutlinesOf(RequestForEvaluation(made->record),
                                            made->examples)));
    if (!examples.empty()) {
      const Example& example = *examples.front().example;
      ETC_RETURN_IF_ERROR(
          ids_.Add(made->record, example.record_id, example.id_kind));
    }
    left_.insert(left_.end(), std::make_move_iterator(examples.begin()),
                 std::make_move_iterator(examples.end()));
  }
  const auto end = left_.begin() + static_cast<std::ptrdiff_t>(
                                       std::min(batch_size, left_.size()));
  ExampleOutlines batch(std::make_move_iterator(left_.begin()),
                        std::make_move_iterator(end));
  left_.erase(left_.begin(), end);
  return batch;
}

absl::StatusOr<EvaluationLoader::BatchOutlines> EvaluationLoader::TakeRound() {
  BatchOutlines round;
  while (static_cast<int64_t>(round.size()) < options_.group.size) {
    ETC_ASSIGN_OR_RETURN(ExampleOutlines batch, TakeBatch());
    if (batch.empty()) {
      break;
    }
    round.push_back(std::move(batch));
  }
  return round;
}

absl::Status EvaluationLoader::Announce() {
  if (is_first()) {
    // Broadcasts an error as well: the other ranks wait for this one.
    absl::StatusOr<BatchOutlines> taken = NamingOutOfMemory(
        [] { return "making examples"; }, [&] { return TakeRound(); });
    if (options_.group.size > 1) {
      std::vector<absl::StatusOr<ExampleOutlines>> told;
      if (taken.ok()) {
        told.assign(taken->begin(), taken->end());
      } else {
        told.emplace_back(taken.status());
      }
      ETC_RETURN_IF_ERROR(
          options_.group.gather(OutlinesToBytes(told)).status());
    }
    ETC_RETURN_IF_ERROR(taken.status());
    rounds_.push_back(*std::move(taken));
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       options_.group.gather(""));
  ETC_ASSIGN_OR_RETURN(std::vector<absl::StatusOr<ExampleOutlines>> told,
                       OutlinesFromBytes(all.front()));
  BatchOutlines& round = rounds_.emplace_back();
  for (absl::StatusOr<ExampleOutlines>& batch : told) {
    ETC_RETURN_IF_ERROR(batch.status());
    round.push_back(*std::move(batch));
  }
  const auto rank = static_cast<size_t>(options_.group.rank);
  if (rank < round.size()) {
    // The examples of a record are one behind the other.
    for (size_t i = 0; i < round[rank].size(); ++i) {
      if (i == 0 || round[rank][i].request != round[rank][i - 1].request) {
        wanted_.push_back(round[rank][i].request);
      }
    }
    stream_.Prefetch();
  }
  return absl::OkStatus();
}

absl::Status EvaluationLoader::CompleteOwn(ExampleOutlines* batch) {
  std::optional<ExampleStream::Made> made;
  for (size_t i = 0; i < batch->size(); ++i) {
    ExampleOutline& outline = (*batch)[i];
    if (i == 0 || outline.request != (*batch)[i - 1].request) {
      made = stream_.Next();
      ETC_RETURN_IF_ERROR(made->examples.status());
    }
    ETC_RETURN_IF_ERROR(SetExample(*made->examples, &outline));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationRound> EvaluationLoader::Next() {
  const size_t announced = options_.group.size > 1 ? 2 : 1;
  while (rounds_.size() < announced &&
         (rounds_.empty() || !rounds_.back().empty())) {
    ETC_RETURN_IF_ERROR(Announce());
  }
  BatchOutlines next = std::move(rounds_.front());
  if (!next.empty()) {  // the end stays
    rounds_.pop_front();
  }
  const auto rank = static_cast<size_t>(options_.group.rank);
  if (!is_first() && rank < next.size()) {
    ETC_RETURN_IF_ERROR(CompleteOwn(&next[rank]));
  }
  EvaluationRound round;
  for (size_t i = 0; i < next.size(); ++i) {
    round.num_examples += static_cast<int64_t>(next[i].size());
    round.num_records = next[i].back().request.record + 1;
    round.batches.push_back(is_first() || i == rank ? ExamplesOf(next[i])
                                                    : Examples());
  }
  return round;
}

}  // namespace etc
