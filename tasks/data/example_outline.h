#ifndef ETC_TASKS_DATA_EXAMPLE_OUTLINE_H_
#define ETC_TASKS_DATA_EXAMPLE_OUTLINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/data/example.h"
#include "tasks/data/example_source.h"

namespace etc {

// What is known of an example in all processes of a run, whichever has made it:
// all that batches are cut by.
struct ExampleOutline {
  RecordRequest request;
  // Which of the examples of the record it is: 0, 1, ...
  int64_t number = 0;
  int64_t long_length = 0;
  int64_t global_length = 0;
  int64_t bytes = 0;     // ExampleBytes
  std::string left_out;  // Example::left_out
  // Null where it was not made yet.
  std::shared_ptr<const Example> example;
};
using ExampleOutlines = std::vector<ExampleOutline>;

// Of all examples of a record, or the error that they came to.
absl::StatusOr<ExampleOutlines> OutlinesOf(
    RecordRequest request, const absl::StatusOr<Examples>& examples);

// Completes an outline by what its record was made into in this process.
//   kFailedPrecondition  it is another example: the data are others here
absl::Status Complete(const Examples& made, ExampleOutline* outline);

// The examples of outlines that are complete.
Examples ExamplesOf(const ExampleOutlines& outlines);

// Outlines, or why there are none, from process to process; without examples.
//   kInternal  they are not what OutlinesToBytes gave
std::string OutlinesToBytes(
    const std::vector<absl::StatusOr<ExampleOutlines>>& outlines);
absl::StatusOr<std::vector<absl::StatusOr<ExampleOutlines>>> OutlinesFromBytes(
    const std::string& bytes);

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_OUTLINE_H_
