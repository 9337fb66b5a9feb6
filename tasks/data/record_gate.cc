#include "tasks/data/record_gate.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/counted.h"
#include "base/utf8.h"

namespace etc {
namespace {

// Payload URL that marks the status of KnownDefect.
constexpr char kKnownDefect[] = "etc.known_defect";

}  // namespace

absl::Status KnownDefect(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kKnownDefect, absl::Cord());
  return status;
}

bool IsKnownDefect(const absl::Status& status) {
  return status.GetPayload(kKnownDefect).has_value();
}

bool IsSkipped(const absl::Status& status, OnBadRecord on_bad_record) {
  return absl::IsInvalidArgument(status) &&
         (on_bad_record == OnBadRecord::kSkip || IsKnownDefect(status));
}

std::string SkippedText(const SkippedRecords& skipped) {
  return absl::StrCat(
      "skipped ", Counted(skipped.count, "bad record"),
      skipped.count == 1 ? ": " : ", the first: ", skipped.first_message);
}

std::string TruncatedText(const SkippedRecords& skipped) {
  if (skipped.truncated == 0) {
    return "";
  }
  const bool is_one = skipped.truncated == 1;
  const LostText& most = skipped.most_lost;
  return absl::StrCat(
      Counted(skipped.truncated, "record"), is_one ? " was" : " were",
      " cut: see data.max_long_length, data.max_global_length and the options "
      "of the task",
      most.count == 0 ? ""
                      : absl::StrCat("; ", QuotedName(skipped.most_lost_id),
                                     is_one ? " lost " : " lost the most, ",
                                     Counted(most.count, absl::StripSuffix(
                                                             most.unit, "s"))));
}

std::vector<std::string> LossTexts(const SkippedRecords& skipped) {
  std::vector<std::string> texts;
  if (skipped.truncated > 0) {
    texts.push_back(TruncatedText(skipped));
  }
  for (const auto& [reason, count] : skipped.lost_answers) {
    texts.push_back(absl::StrCat(Counted(count, "record"),
                                 count == 1 ? " has" : " have",
                                 " an answer that no example holds: ", reason));
  }
  return texts;
}

std::vector<std::string> LeftOutTexts(const SkippedRecords& skipped) {
  std::vector<std::string> texts;
  for (const auto& [reason, count] : skipped.left_out) {
    texts.push_back(
        absl::StrCat("left out ", Counted(count, "example"), ": ", reason));
  }
  return texts;
}

std::vector<std::string> UnusedTexts(const SkippedRecords& skipped) {
  std::vector<std::string> texts;
  if (skipped.count > 0) {
    texts.push_back(SkippedText(skipped));
  }
  for (const auto& more : {LeftOutTexts(skipped), LossTexts(skipped)}) {
    texts.insert(texts.end(), more.begin(), more.end());
  }
  return texts;
}

RecordGate::RecordGate(RecordUse use, OnBadRecord on_bad_record,
                       int64_t num_records)
    : use_(use),
      on_bad_record_(on_bad_record),
      is_counted_(static_cast<size_t>(num_records)) {}

absl::StatusOr<ExampleOutlines> RecordGate::Pass(
    int64_t record, absl::StatusOr<ExampleOutlines> examples) {
  const auto index = static_cast<size_t>(record);
  const bool is_new = !is_counted_[index];
  is_counted_[index] = true;
  skipped_.records += is_new ? 1 : 0;
  const absl::Status status = examples.status();
  if (IsSkipped(status, on_bad_record_)) {
    if (skipped_.count == 0) {
      skipped_.first_message = std::string(status.message());
    }
    skipped_.count += is_new ? 1 : 0;
    return ExampleOutlines();
  }
  if (examples.ok() && is_new && !examples->empty() &&
      !examples->front().notes.lost_answer.empty()) {
    ++skipped_.lost_answers[examples->front().notes.lost_answer];
  }
  if (examples.ok() && use_ == RecordUse::kTraining) {
    std::erase_if(*examples, [&](const ExampleOutline& example) {
      if (is_new && !example.notes.left_out.empty()) {
        ++skipped_.left_out[example.notes.left_out];
      }
      return !example.notes.left_out.empty();
    });
  }
  if (examples.ok() && is_new) {
    CountTruncated(*examples);
  }
  return examples;
}

void RecordGate::CountTruncated(const ExampleOutlines& examples) {
  const ExampleOutline* most = nullptr;
  for (const ExampleOutline& example : examples) {
    if (example.notes.is_truncated &&
        (most == nullptr ||
         example.notes.lost_text.count > most->notes.lost_text.count)) {
      most = &example;
    }
  }
  if (most == nullptr) {
    return;
  }
  ++skipped_.truncated;
  if (most->notes.lost_text.count > skipped_.most_lost.count) {
    skipped_.most_lost = most->notes.lost_text;
    skipped_.most_lost_id = most->record_id;
  }
}

}  // namespace etc
