#ifndef ETC_TASKS_DATA_EXAMPLE_SOURCE_H_
#define ETC_TASKS_DATA_EXAMPLE_SOURCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/data/example.h"

namespace etc {

using Examples = std::vector<std::shared_ptr<const Example>>;

// Approximate memory, in bytes.
int64_t ExampleBytes(const Example& example);
int64_t ExampleBytes(const Examples& examples);

// A record and the version of it that is wanted.
struct RecordRequest {
  int64_t record = 0;
  // Random numbers in the record's examples follow from this alone:
  // CombineSeeds({key, 0}), CombineSeeds({key, 1}), ... (base/random.h).
  uint64_t key = 0;

  bool operator==(const RecordRequest&) const = default;
};

// The request for `record` in the epoch of that number. Records and epochs have
// unrelated keys.
RecordRequest RequestInEpoch(uint64_t seed, int64_t epoch, int64_t record);

// The request for `record` outside training: the same at every call.
RecordRequest RequestForEvaluation(int64_t record);

// A data set: records 0, ..., size() - 1, each made into examples when asked
// for. All methods may be called from several threads.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  virtual int64_t size() const = 0;

  // About how many examples all records have together; one each, unless the
  // source knows better.
  virtual int64_t expected_examples() const { return size(); }

  // Returns the examples of one record, the same at every call with the same
  // request; most records give one. The key may decide the contents of the
  // examples (which tokens are masked), and their number.
  //   kInvalidArgument  the record is not as the official format has it
  virtual absl::StatusOr<Examples> Make(RecordRequest request) const = 0;

  // Name of a record of a file in messages: "dev.tsv:17". Empty: it has no
  // place of its own, and no id from the file.
  virtual std::string Where(int64_t /*record*/) const { return ""; }

  // Returns true if requests for one record with different keys may give
  // different examples.
  virtual bool depends_on_key() const { return false; }

  // A message about what the files have and no record is made of; empty:
  // nothing. Sources around the one that a task opened do not pass it on.
  virtual std::string LeftOut() const { return ""; }

  // Warnings about records that are used, which an evaluation gives; likewise.
  virtual std::vector<std::string> Warnings() const { return {}; }
};

// Caches the examples of another source until `max_bytes` are full. The first
// ones stay: the records come in another random order each epoch, so no other
// eviction is better. Examples of a source that depends on the key are not
// cached, since training never repeats a request. `source` must outlive it.
class CachedSource : public ExampleSource {
 public:
  CachedSource(const ExampleSource* source, int64_t max_bytes)
      : source_(source), bytes_left_(max_bytes) {}

  int64_t size() const override { return source_->size(); }
  int64_t expected_examples() const override {
    return source_->expected_examples();
  }
  absl::StatusOr<Examples> Make(RecordRequest request) const override;
  std::string Where(int64_t record) const override {
    return source_->Where(record);
  }
  bool depends_on_key() const override { return source_->depends_on_key(); }

 private:
  const ExampleSource* const source_;
  mutable std::mutex mutex_;
  mutable int64_t bytes_left_;
  mutable std::unordered_map<int64_t, Examples> made_;  // by record
};

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

// The processes that share a data set: the part of
// tasks/distributed/process_group.h that a data set needs.
struct DataGroup {
  int64_t rank = 0;
  int64_t size = 1;
  // All-gathers bytes, by rank: all ranks call it in the same order. Not called
  // in a run of one process.
  std::function<absl::StatusOr<std::vector<std::string>>(
      const std::string& bytes)>
      gather = nullptr;

  // Returns OK if `mine` is on all ranks; else the error of the lowest rank
  // that has one, which names it unless it is this one. Collective.
  absl::Status Agree(const absl::Status& mine) const {
    return AgreeToGoOn(mine, /*go_on=*/true).status();
  }
  // Agree, and returns the logical AND of `go_on` over the ranks.
  absl::StatusOr<bool> AgreeToGoOn(const absl::Status& mine, bool go_on) const;
};

// Returns the rank that makes the examples of a record and shares their
// outlines: the same in each epoch, so that the examples it has cached
// (CachedSource) are of use again.
inline int64_t MakerOf(int64_t record, int64_t processes) {
  return record % processes;
}

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_SOURCE_H_
