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

// The outlines of a sequence of records without end, the same in all processes
// of a group, of which each makes those of its records (MakerOf) and has their
// examples. The processes tell each other of so many records at a time.
class OutlineStream {
 public:
  using Sequence = std::function<RecordRequest()>;

  // `source` must outlive the stream. `sequence` is the same in all processes;
  // `block` is how many records are told of at a time, where there are several.
  OutlineStream(const ExampleSource* source, Sequence sequence,
                const ExampleStreamOptions& options, DataGroup group,
                int64_t block);

  struct Outlined {
    int64_t record = 0;
    // What ExampleStream::Next gave in the process that makes the record.
    absl::StatusOr<ExampleOutlines> examples;
  };
  // The next record, until the call after this one. Called in all processes, as
  // often.
  //   what the group's `gather` returns: another process has ended
  absl::StatusOr<Outlined*> Next();

  // Seconds that Next() spent waiting for examples or making them.
  double seconds_waited() const { return stream_.seconds_waited(); }

 private:
  void TakeRequest();
  std::optional<RecordRequest> NextOwn();
  absl::StatusOr<ExampleOutlines> MakeOwn(RecordRequest request);
  // Replaces `told_` by another block.
  absl::Status Exchange();
  bool IsOwn(RecordRequest request) const;

  const Sequence sequence_;
  const DataGroup group_;
  const int64_t block_;
  const int64_t num_records_;
  // Of the sequence: not told of yet, and those of this process which the
  // stream does not have yet.
  std::deque<RecordRequest> requests_;
  std::deque<RecordRequest> own_;
  std::vector<Outlined> told_;
  size_t next_told_ = 0;
  ExampleStream stream_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_OUTLINE_STREAM_H_
