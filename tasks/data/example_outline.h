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

// The part of an example that all ranks know, whichever has made it: batches
// are cut by it.
struct ExampleOutline {
  RecordRequest request;
  // Index among the examples of the record: 0, 1, ...
  int64_t number = 0;
  int64_t long_length = 0;
  int64_t global_length = 0;
  int64_t bytes = 0;  // ExampleBytes
  ExampleNotes notes = {};
  // Example::record_id, of one that is_truncated.
  std::string record_id = {};
  // Null where it was not made yet.
  std::shared_ptr<const Example> example;
};
using ExampleOutlines = std::vector<ExampleOutline>;

// Returns the outlines of all examples of a record, or their error.
absl::StatusOr<ExampleOutlines> OutlinesOf(
    RecordRequest request, const absl::StatusOr<Examples>& examples);

// Sets the example of an outline from the examples that this rank made of its
// record.
//   kFailedPrecondition  it is another example: the data are others here
absl::Status SetExample(const Examples& made, ExampleOutline* outline);

// The examples of outlines that are complete.
Examples ExamplesOf(const ExampleOutlines& outlines);

// Serialises outlines, or their errors, to exchange them between ranks; without
// examples.
//   kInternal  they are not what OutlinesToBytes gave
std::string OutlinesToBytes(
    const std::vector<absl::StatusOr<ExampleOutlines>>& outlines);
absl::StatusOr<std::vector<absl::StatusOr<ExampleOutlines>>> OutlinesFromBytes(
    const std::string& bytes);

}  // namespace etc

#endif  // ETC_TASKS_DATA_EXAMPLE_OUTLINE_H_
