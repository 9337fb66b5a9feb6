#include "tasks/data/record_gate.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"

namespace etc {

RecordGate::RecordGate(RecordUse use, OnBadRecord on_bad_record,
                       int64_t num_records)
    : use_(use),
      on_bad_record_(on_bad_record),
      is_counted_(static_cast<size_t>(num_records)) {}

absl::StatusOr<Examples> RecordGate::Pass(ExampleStream::Made made) {
  const auto record = static_cast<size_t>(made.record);
  const bool is_new = !is_counted_[record];
  is_counted_[record] = true;
  if (absl::IsInvalidArgument(made.examples.status()) &&
      on_bad_record_ == OnBadRecord::kSkip) {
    if (skipped_.count == 0) {
      skipped_.first_message = std::string(made.examples.status().message());
    }
    skipped_.count += is_new ? 1 : 0;
    return Examples();
  }
  if (made.examples.ok() && use_ == RecordUse::kTraining) {
    std::erase_if(*made.examples, [&](const auto& example) {
      if (is_new && !example->left_out.empty()) {
        ++skipped_.left_out[example->left_out];
      }
      return !example->left_out.empty();
    });
  }
  return std::move(made.examples);
}

}  // namespace etc
