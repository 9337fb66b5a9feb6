#include "tasks/data/outline_stream.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"

namespace etc {

OutlineStream::OutlineStream(const ExampleSource* source, Sequence sequence,
                             const ExampleStreamOptions& options,
                             DataGroup group, int64_t block)
    : sequence_(std::move(sequence)),
      group_(std::move(group)),
      block_(group_.size == 1 ? 1 : block),
      num_records_(source->size()),
      stream_(
          source, [this] { return NextOwn(); }, options) {}

bool OutlineStream::IsOwn(RecordRequest request) const {
  return MakerOf(request.record, group_.size) == group_.rank;
}

void OutlineStream::TakeRequest() {
  const RecordRequest request = sequence_();
  requests_.push_back(request);
  if (IsOwn(request)) {
    own_.push_back(request);
  }
}

std::optional<RecordRequest> OutlineStream::NextOwn() {
  if (group_.rank >= num_records_) {
    return std::nullopt;  // it makes none of the records
  }
  while (own_.empty()) {
    TakeRequest();
  }
  const RecordRequest request = own_.front();
  own_.pop_front();
  return request;
}

absl::StatusOr<ExampleOutlines> OutlineStream::MakeOwn(RecordRequest request) {
  return OutlinesOf(request, stream_.Next()->examples);
}

absl::Status OutlineStream::Exchange() {
  std::vector<RecordRequest> block;
  std::vector<absl::StatusOr<ExampleOutlines>> own;
  while (static_cast<int64_t>(block.size()) < block_) {
    if (requests_.empty()) {
      TakeRequest();
    }
    block.push_back(requests_.front());
    requests_.pop_front();
    if (IsOwn(block.back())) {
      // Shares an error as well: the other ranks wait for this one.
      own.push_back(NamingOutOfMemory([] { return "making examples"; },
                                      [&] { return MakeOwn(block.back()); }));
    }
  }
  std::vector<std::vector<absl::StatusOr<ExampleOutlines>>> all(1);
  if (group_.size > 1) {
    ETC_ASSIGN_OR_RETURN(const std::vector<std::string> bytes,
                         group_.gather(OutlinesToBytes(own)));
    all.clear();
    for (const std::string& of_one : bytes) {
      ETC_ASSIGN_OR_RETURN(all.emplace_back(), OutlinesFromBytes(of_one));
    }
  }
  all[static_cast<size_t>(group_.rank)] = std::move(own);
  std::vector<size_t> next(all.size());
  told_.clear();
  next_told_ = 0;
  for (const RecordRequest request : block) {
    const auto maker =
        static_cast<size_t>(MakerOf(request.record, group_.size));
    if (next[maker] >= all[maker].size()) {
      return absl::InternalError(absl::StrCat(
          "process ", maker, " says nothing of record ", request.record));
    }
    told_.push_back({request.record, std::move(all[maker][next[maker]++])});
  }
  return absl::OkStatus();
}

absl::StatusOr<OutlineStream::Outlined*> OutlineStream::Next() {
  if (next_told_ == told_.size()) {
    ETC_RETURN_IF_ERROR(Exchange());
  }
  return &told_[next_told_++];
}

}  // namespace etc
