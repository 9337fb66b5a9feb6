#include "tasks/data/example_source.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

absl::StatusOr<bool> DataGroup::AgreeToGoOn(const absl::Status& mine,
                                            bool go_on) const {
  if (size == 1) {
    ETC_RETURN_IF_ERROR(mine);
    return go_on;
  }
  // "0" or "1", and for an error its code and message: "1 3 no such file".
  ETC_ASSIGN_OR_RETURN(
      const std::vector<std::string> all,
      gather(absl::StrCat(go_on ? "1" : "0",
                          mine.ok()
                              ? ""
                              : absl::StrCat(" ", static_cast<int>(mine.code()),
                                             " ", mine.message()))));
  bool all_go_on = true;
  for (size_t from = 0; from < all.size(); ++from) {
    const std::vector<std::string> parts =
        absl::StrSplit(all[from], absl::MaxSplits(' ', 2));
    all_go_on = all_go_on && parts.front() == "1";
    int code = 0;
    if (parts.size() < 3 || !absl::SimpleAtoi(parts[1], &code)) {
      continue;
    }
    if (static_cast<int64_t>(from) == rank) {
      return mine;
    }
    // An error that was agreed on before names its process already.
    const bool is_named =
        absl::StartsWith(parts[2], "process ") &&
        absl::StrContains(parts[2], absl::StrCat(" of ", size, ": "));
    return absl::Status(static_cast<absl::StatusCode>(code),
                        is_named ? parts[2]
                                 : absl::StrCat("process ", from, " of ", size,
                                                ": ", parts[2]));
  }
  return all_go_on;
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
