#include "tasks/data/example_count.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/data/example_outline.h"

namespace etc {

absl::StatusOr<ExampleCount> CountTrainingExamples(
    const ExampleSource& source, const ExampleCountOptions& options) {
  RecordGate gate(RecordUse::kTraining, options.on_bad_record, source.size());
  int64_t next = 0;
  ExampleStream stream(
      &source,
      [&]() -> std::optional<RecordRequest> {
        return next < source.size()
                   ? std::optional(RequestForEvaluation(next++))
                   : std::nullopt;
      },
      options.stream);
  ExampleCount count;
  for (int64_t done = 1; count.examples < options.enough; ++done) {
    const std::optional<ExampleStream::Made> made = stream.Next();
    if (!made.has_value()) {
      break;
    }
    const RecordRequest request = RequestForEvaluation(made->record);
    ETC_ASSIGN_OR_RETURN(
        const ExampleOutlines examples,
        gate.Pass(made->record, OutlinesOf(request, made->examples)));
    count.examples += static_cast<int64_t>(examples.size());
    if (options.listener) {
      options.listener(done);
    }
  }
  count.skipped = gate.skipped();
  return count;
}

absl::Status CheckFillsBatch(const ExampleSource& source, int64_t batch_size,
                             ExampleCountOptions options) {
  if (source.size() >= batch_size) {
    return absl::OkStatus();
  }
  options.enough = batch_size;
  ETC_ASSIGN_OR_RETURN(const ExampleCount count,
                       CountTrainingExamples(source, options));
  return count.examples >= batch_size
             ? absl::OkStatus()
             : TooFewExamples(count.examples, batch_size, count.skipped);
}

absl::Status TooFewExamples(int64_t examples, int64_t batch_size,
                            const SkippedRecords& skipped) {
  std::string message = absl::StrCat(
      "the training data have ", Counted(examples, "example"),
      ", which is less than one batch of ", batch_size, " (train.batch_size)");
  for (const auto& [reason, count] : skipped.left_out) {
    absl::StrAppend(&message, "; ", count, count == 1 ? " is" : " are",
                    " left out: ", reason);
  }
  if (skipped.count > 0) {
    absl::StrAppend(&message, "; ", SkippedText(skipped));
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace etc
