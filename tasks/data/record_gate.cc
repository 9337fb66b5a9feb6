#include "tasks/data/record_gate.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace etc {
namespace {

// What marks the status of KnownDefect.
constexpr char kKnownDefect[] = "etc.known_defect";

}  // namespace

absl::Status KnownDefect(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kKnownDefect, absl::Cord());
  return status;
}

RecordGate::RecordGate(RecordUse use, OnBadRecord on_bad_record,
                       int64_t num_records)
    : use_(use),
      on_bad_record_(on_bad_record),
      is_counted_(static_cast<size_t>(num_records)) {}

absl::StatusOr<Examples> RecordGate::Pass(ExampleStream::Made made) {
  const auto record = static_cast<size_t>(made.record);
  const bool is_new = !is_counted_[record];
  is_counted_[record] = true;
  const absl::Status status = made.examples.status();
  if (absl::IsInvalidArgument(status) &&
      (on_bad_record_ == OnBadRecord::kSkip ||
       status.GetPayload(kKnownDefect).has_value())) {
    if (skipped_.count == 0) {
      skipped_.first_message = std::string(status.message());
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
