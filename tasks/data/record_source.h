#ifndef ETC_TASKS_DATA_RECORD_SOURCE_H_
#define ETC_TASKS_DATA_RECORD_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/data_group.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_file.h"

namespace etc {

// Makes the examples of one record from its JSON text; `where` starts each
// message. This is Task::MakeExamples, without the rest of a task.
using ExampleMaker = std::function<absl::StatusOr<Examples>(
    const std::string& record, const std::string& where)>;

// The records of official files, one file after the other.
class RecordSource : public ExampleSource {
 public:
  // Called with how many of all the bytes of the files have been read so far;
  // its error ends the opening and is returned. By one thread at a time.
  using Listener =
      std::function<absl::Status(uint64_t bytes, uint64_t num_bytes)>;

  // The files that `patterns` name (tasks/data/data_files.h). Several are
  // opened at once, on as many threads as there are cores. Of several mistakes
  // that of the first file is returned.
  // Without an index in `limits`, all files share
  // RecordIndexBudget::ShareOfProcess().
  //
  // Of several processes, which all open the same files at the same time, each
  // scans every so manieth one, and they tell each other what they found. A
  // mistake is one of all.
  //   kFailedPrecondition  they have other files
  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(
      const std::vector<std::string>& patterns, ExampleMaker maker,
      const Listener& listener = nullptr, RecordLimits limits = {},
      const DataGroup& group = {});

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  std::string Where(int64_t record) const override;

 private:
  // A record of one of the files, by its number there.
  struct Place {
    const RecordFile& file;
    int64_t record;
  };
  Place PlaceOf(int64_t record) const;

  RecordSource(std::vector<RecordFile> files, ExampleMaker maker);

  std::vector<RecordFile> files_;
  ExampleMaker maker_;
  int64_t size_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_RECORD_SOURCE_H_
