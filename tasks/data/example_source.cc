#include "tasks/data/example_source.h"

#include "base/random.h"
#include "base/status_macros.h"

namespace etc {
namespace {

template <typename T>
int64_t Bytes(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

}  // namespace

int64_t ExampleBytes(const Example& example) {
  const AttentionPattern& pattern = example.pattern;
  return static_cast<int64_t>(sizeof(Example)) + example.TaskBytes() +
         Bytes(example.long_token_ids) + Bytes(example.long_type_ids) +
         Bytes(example.global_token_ids) + Bytes(example.global_type_ids) +
         Bytes(pattern.long_segment) + Bytes(pattern.long_example) +
         Bytes(pattern.sentence) + Bytes(pattern.paragraph) +
         Bytes(pattern.linked) + Bytes(pattern.ignore_hard_l2g) +
         Bytes(pattern.global_example) + Bytes(pattern.global_segment) +
         Bytes(pattern.ignore_hard_g2l);
}

int64_t ExampleBytes(const Examples& examples) {
  int64_t bytes = 0;
  for (const auto& example : examples) {
    bytes += ExampleBytes(*example);
  }
  return bytes;
}

RecordRequest RequestInEpoch(uint64_t seed, int64_t epoch, int64_t record) {
  return {.record = record,
          .key = CombineSeeds({seed, static_cast<uint64_t>(epoch),
                               static_cast<uint64_t>(record)})};
}

RecordRequest RequestForEvaluation(int64_t record) {
  return RequestInEpoch(/*seed=*/0, /*epoch=*/0, record);
}

absl::StatusOr<Examples> CachedSource::Make(RecordRequest request) const {
  if (depends_on_key()) {
    return source_->Make(request);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = made_.find(request.record); found != made_.end()) {
      return found->second;
    }
  }
  ETC_ASSIGN_OR_RETURN(Examples examples, source_->Make(request));
  const int64_t bytes = ExampleBytes(examples);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes <= bytes_left_ && made_.emplace(request.record, examples).second) {
    bytes_left_ -= bytes;
  }
  return examples;
}

}  // namespace etc
