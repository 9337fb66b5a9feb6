#ifndef ETC_TASKS_DATA_FIRST_RECORDS_H_
#define ETC_TASKS_DATA_FIRST_RECORDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"

namespace etc {

// The first records of another source, which must outlive it; all of them if
// there are no more than `count`.
class FirstRecords : public ExampleSource {
 public:
  FirstRecords(const ExampleSource* source, int64_t count)
      : source_(source), size_(std::min(count, source->size())) {}

  int64_t size() const override { return size_; }
  // Their share of the examples of all, rounded up.
  int64_t expected_examples() const override {
    const int64_t all = source_->expected_examples();
    if (size_ == source_->size()) {
      return all;
    }
    const double share =
        static_cast<double>(size_) / static_cast<double>(source_->size());
    return static_cast<int64_t>(std::ceil(share * static_cast<double>(all)));
  }
  absl::StatusOr<Examples> Make(RecordRequest request) const override {
    return source_->Make(request);
  }
  std::string Where(int64_t record) const override {
    return source_->Where(record);
  }
  bool depends_on_key() const override { return source_->depends_on_key(); }

 private:
  const ExampleSource* const source_;
  const int64_t size_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_FIRST_RECORDS_H_
