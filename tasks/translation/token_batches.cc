#include "tasks/translation/token_batches.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/shuffle.h"
#include "base/status_macros.h"

namespace etc {
namespace {

// Purposes of random numbers.
constexpr uint64_t kMembers = 0x7472616e736c6174;
constexpr uint64_t kOrder = 0x6f72646572;

}  // namespace

std::vector<int64_t> CutByTokens(const std::vector<int64_t>& tokens,
                                 const TokenBatchOptions& options) {
  std::vector<int64_t> sizes;
  size_t begin = 0;
  int64_t count = 0;
  int64_t longest = 0;
  const auto close = [&] {
    const int64_t kept = std::max(options.multiple * (count / options.multiple),
                                  count % options.multiple);
    sizes.push_back(kept);
    begin += static_cast<size_t>(kept);
    count -= kept;
    longest = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(count); ++i) {
      longest = std::max(longest, tokens[i]);
    }
  };
  for (const int64_t length : tokens) {
    // Once, as in fairseq: what is left of a batch may be too much already.
    if (count > 0 &&
        ((count + 1) * std::max(longest, length) > options.max_tokens ||
         count == options.max_sentences)) {
      close();
    }
    ++count;
    longest = std::max(longest, length);
  }
  if (count > 0) {
    sizes.push_back(count);
  }
  return sizes;
}

std::vector<std::vector<int64_t>> MakeTokenBatches(
    const std::vector<PairLengths>& pairs, const TokenBatchOptions& options,
    uint64_t seed) {
  std::vector<int64_t> order = RandomOrder(static_cast<int64_t>(pairs.size()),
                                           CombineSeeds({seed, kMembers}));
  const auto of = [&](int64_t i) { return pairs[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::pair(of(a).source, of(a).target) <
           std::pair(of(b).source, of(b).target);
  });
  std::vector<int64_t> tokens;
  tokens.reserve(order.size());
  for (const int64_t i : order) {
    tokens.push_back(of(i).longest());
  }
  std::vector<std::vector<int64_t>> batches;
  auto begin = order.begin();
  for (const int64_t size : CutByTokens(tokens, options)) {
    batches.emplace_back(begin, begin + size);
    begin += size;
  }
  return batches;
}

absl::StatusOr<std::vector<PairLengths>> LengthsOf(
    const ExampleSource& source) {
  std::vector<PairLengths> lengths;
  for (int64_t i = 0; i < source.size(); ++i) {
    ETC_ASSIGN_OR_RETURN(const Examples made,
                         source.Make(RequestForEvaluation(i)));
    const auto& pair = dynamic_cast<const TranslationExample&>(*made.front());
    lengths.push_back({.source = static_cast<int64_t>(pair.source.size()),
                       .target = static_cast<int64_t>(pair.target.size())});
  }
  return lengths;
}

TokenBatchLoader::TokenBatchLoader(const ExampleSource* source,
                                   const TokenBatchOptions& batches,
                                   const TrainingLoaderOptions& options,
                                   LoaderPosition start)
    : source_(source),
      batch_options_(batches),
      options_(options),
      next_(start) {}

absl::Status TokenBatchLoader::Prepare() {
  if (batches_.empty()) {
    ETC_ASSIGN_OR_RETURN(const std::vector<PairLengths> lengths,
                         LengthsOf(*source_));
    batches_ = MakeTokenBatches(lengths, batch_options_, options_.seed);
  }
  const auto count = static_cast<int64_t>(batches_.size());
  const int64_t updates =
      (count + options_.batch_size - 1) / options_.batch_size;
  if (next_.batch < 0 || next_.batch >= updates) {
    return absl::FailedPreconditionError(
        absl::StrCat("training should go on at update ", next_.batch,
                     " of an epoch, but the data have ", count, " batches"));
  }
  if (order_.empty()) {
    order_ = RandomOrder(
        count, CombineSeeds({options_.seed, static_cast<uint64_t>(next_.epoch),
                             kOrder}));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingBatch> TokenBatchLoader::Next() {
  if (options_.stop != nullptr && options_.stop->load()) {
    return absl::CancelledError("the reading of the data was stopped");
  }
  ETC_RETURN_IF_ERROR(Prepare());
  const auto begin = static_cast<size_t>(next_.batch * options_.batch_size);
  const size_t end = std::min(batches_.size(),
                              begin + static_cast<size_t>(options_.batch_size));
  TrainingBatch batch;
  batch.epoch = next_.epoch;
  for (size_t i = begin; i < end; ++i) {
    Examples& examples = batch.micro_batches.emplace_back();
    if (static_cast<int64_t>(i - begin) % options_.group.size !=
        options_.group.rank) {
      continue;
    }
    for (const int64_t record : batches_[static_cast<size_t>(order_[i])]) {
      ETC_ASSIGN_OR_RETURN(Examples made,
                           source_->Make(RequestForEvaluation(record)));
      examples.push_back(std::move(made.front()));
    }
  }
  if (end < batches_.size()) {
    ++next_.batch;
  } else {
    next_ = {.epoch = next_.epoch + 1};
    order_.clear();
  }
  batch.next = next_;
  return batch;
}

}  // namespace etc
