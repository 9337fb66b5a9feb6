#ifndef ETC_TASKS_DATA_OUTLINE_STREAM_H_
#define ETC_TASKS_DATA_OUTLINE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_outline.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"

namespace etc {

// The outlines of an endless sequence of records, the same on all ranks of a
// group. Each rank makes those of its own records (MakerOf) and has their
// examples; outlines are all-gathered in blocks.
class OutlineStream {
 public:
  using Sequence = std::function<RecordRequest()>;

  // `source` must outlive the stream. `sequence` is the same on all ranks;
  // `block` is the number of records per all-gather, if there are several
  // ranks.
  OutlineStream(const ExampleSource* source, Sequence sequence,
                const ExampleStreamOptions& options, DataGroup group,
                int64_t block);

  struct Outlined {
    int64_t record = 0;
    // The result of ExampleStream::Next on the rank that makes the record.
    absl::StatusOr<ExampleOutlines> examples;
  };
  // Returns the next record, valid until the next call. A collective operation.
  //   what the group's `gather` returns: another process has ended
  absl::StatusOr<Outlined*> Next();

  // Seconds that Next() spent waiting for examples or making them.
  double seconds_waited() const { return stream_.seconds_waited(); }

 private:
  void TakeRequest();
  std::optional<RecordRequest> NextOwn();
  absl::StatusOr<ExampleOutlines> MakeOwn(RecordRequest request);
  // All-gathers another block into `told_`.
  absl::Status Exchange();
  bool IsOwn(RecordRequest request) const;

  const Sequence sequence_;
  const DataGroup group_;
  const int64_t block_;
  const int64_t num_records_;
  // Requests of the sequence that are not yet exchanged, and those of this rank
  // that the stream does not have yet.
  std::deque<RecordRequest> requests_;
  std::deque<RecordRequest> own_;
  std::vector<Outlined> told_;
  size_t next_told_ = 0;
  ExampleStream stream_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_OUTLINE_STREAM_H_
