#ifndef ETC_TASKS_DATA_EXAMPLE_SOURCE_H_
#define ETC_TASKS_DATA_EXAMPLE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example.h"

namespace etc {

using Examples = std::vector<std::shared_ptr<const Example>>;

// About the memory that they take.
int64_t ExampleBytes(const Example& example);
int64_t ExampleBytes(const Examples& examples);

// A data set: records 0, ..., size() - 1, each made into examples when asked
// for. All methods may be called from several threads.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  virtual int64_t size() const = 0;

  // The examples of one record, the same at every call; most records give one.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<Examples> Make(int64_t record) const = 0;
};

// Another source, of which it keeps what was made until `max_bytes` are full.
// What came first stays: the records come in another random order each epoch,
// so that no choice of what to throw out is better. `source` must outlive it.
class CachedSource : public ExampleSource {
 public:
  CachedSource(const ExampleSource* source, int64_t max_bytes)
      : source_(source), bytes_left_(max_bytes) {}

  int64_t size() const override { return source_->size(); }
  absl::StatusOr<Examples> Make(int64_t record) const override;

 private:
  const ExampleSource* const source_;
  mutable std::mutex mutex_;
  mutable int64_t bytes_left_;
  mutable std::unordered_map<int64_t, Examples> made_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_SOURCE_H_
