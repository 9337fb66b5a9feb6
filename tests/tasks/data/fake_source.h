#ifndef ETC_TESTS_TASKS_DATA_FAKE_SOURCE_H_
#define ETC_TESTS_TASKS_DATA_FAKE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tasks/data/example_source.h"

namespace etc {

// Record i has `counts[i % counts.size()]` examples, called "i/0", "i/1"; their
// lengths are in [0, 10).
class FakeSource : public ExampleSource {
 public:
  FakeSource(int64_t size, std::vector<int> counts)
      : size_(size), counts_(std::move(counts)) {}

  int64_t size() const override { return size_; }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    const int64_t record = request.record;
    ++made;
    if (bad_records.count(record) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("bad record ", record));
    }
    if (record == unreadable_record) {
      return absl::DataLossError("disk on fire");
    }
    Examples examples;
    for (int i = 0; i < counts_[static_cast<size_t>(record) % counts_.size()];
         ++i) {
      auto example = std::make_shared<Example>();
      example->record_id = absl::StrCat(record, "/", i);
      example->long_token_ids.resize(
          static_cast<size_t>((record * 7 + i * 3) % 10 + longer_by));
      if (left_out.contains(example->record_id)) {
        example->left_out = left_out.at(example->record_id);
      }
      if (truncated.contains(example->record_id)) {
        example->is_truncated = true;
        example->lost_text = {.count = 100 * record + i, .unit = "pieces"};
      }
      examples.push_back(std::move(example));
    }
    return examples;
  }

  mutable std::atomic<int64_t> made = 0;  // calls of Make
  // Beyond the length that the record's number gives.
  int64_t longer_by = 0;
  std::set<int64_t> bad_records;
  int64_t unreadable_record = -1;
  // Reasons by example.
  std::map<std::string, std::string> left_out;
  std::set<std::string> truncated;  // examples

 private:
  int64_t size_;
  std::vector<int> counts_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_DATA_FAKE_SOURCE_H_
