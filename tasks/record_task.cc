#include "tasks/record_task.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/record_source.h"

namespace etc {

absl::StatusOr<std::unique_ptr<ExampleSource>> RecordTask::Open(
    const DataRequest& request) const {
  const auto make = [this, use = request.use](
                        const std::string& record,
                        const std::string& where) -> absl::StatusOr<Examples> {
    if (use == RecordUse::kPrediction) {
      return MakeExamplesToPredict(record, where);
    }
    ETC_ASSIGN_OR_RETURN(Examples examples, MakeExamples(record, where));
    for (const auto& example : examples) {
      if (use == RecordUse::kTraining && !example->training_error.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, example->training_error));
      }
      if (use == RecordUse::kTraining && !example->has_answer) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, " (", example->record_id,
                         ") has no answer, which training needs"));
      }
    }
    return examples;
  };
  if (const FileReader reader = Reader(); reader != nullptr) {
    ETC_ASSIGN_OR_RETURN(
        std::vector<FileRecord> records,
        ReadAllFiles(request.patterns, reader, request.listener));
    return std::make_unique<FileRecordSource>(std::move(records), make);
  }
  return RecordSource::Open(request.patterns, make, request.listener,
                            {.max_record_bytes = request.max_record_bytes,
                             .max_record_field = "data.max_record_megabytes"},
                            request.group);
}

}  // namespace etc
