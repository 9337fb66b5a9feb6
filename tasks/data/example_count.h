#ifndef ETC_TASKS_DATA_EXAMPLE_COUNT_H_
#define ETC_TASKS_DATA_EXAMPLE_COUNT_H_

#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example_source.h"
#include "tasks/data/example_stream.h"
#include "tasks/data/record_gate.h"

namespace etc {

struct ExampleCount {
  int64_t examples = 0;
  SkippedRecords skipped;
};

struct ExampleCountOptions {
  OnBadRecord on_bad_record = OnBadRecord::kError;
  // Options of making the examples; `prefetch` is best left at its default.
  ExampleStreamOptions stream = {};
  // Records are made until there are this many examples.
  int64_t enough = std::numeric_limits<int64_t>::max();
  // Called after each record, with how many are done. May be empty.
  std::function<void(int64_t records)> listener = nullptr;
};

// Counts the examples that training has of `source`, in one pass that keeps
// none of them.
//   kInvalidArgument  a bad record, with OnBadRecord::kError
absl::StatusOr<ExampleCount> CountTrainingExamples(
    const ExampleSource& source, const ExampleCountOptions& options);

// Checks that one epoch of `source` fills a batch. At least `batch_size`
// records are taken to do so; if there are fewer, the examples are counted
// (`options.enough` is set here), since a record may have several.
//   kFailedPrecondition  TooFewExamples
absl::Status CheckFillsBatch(const ExampleSource& source, int64_t batch_size,
                             ExampleCountOptions options);

// "the training data have 3 examples, which is less than one batch of 4", and
// what of them is left out or skipped.
absl::Status TooFewExamples(int64_t examples, int64_t batch_size,
                            const SkippedRecords& skipped);

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_COUNT_H_
