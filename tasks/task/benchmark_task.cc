#include "tasks/task/benchmark_task.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/data/data_files.h"
#include "tasks/data/record_source.h"

namespace etc {

absl::Status NoAnswer(absl::string_view where, absl::string_view id) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, " (", id, ") has no answer, which training needs"));
}

absl::StatusOr<SentenceSplitter> LoadSentencesOfConfig(
    const std::string& sentences, const std::string& source) {
  absl::StatusOr<SentenceSplitter> split = LoadSentenceSplitter(sentences);
  if (!split.ok()) {
    return absl::Status(
        split.status().code(),
        absl::StrCat(source, ": data.sentences: ", split.status().message()));
  }
  return split;
}

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
        return NoAnswer(where, example->record_id);
      }
    }
    return examples;
  };
  const auto check = [this, use = request.use](const std::string& record,
                                               const std::string& where) {
    return CheckRecord(record, where, use);
  };
  if (const FileReader reader = Reader(); reader != nullptr) {
    const bool held_out = holds_out() && request.patterns.empty() &&
                          request.use == RecordUse::kEvaluation;
    ETC_ASSIGN_OR_RETURN(
        std::vector<FileRecord> records,
        ReadAllFiles(held_out ? held_out_.patterns : request.patterns, reader,
                     request.listener, request.limits));
    if (held_out || (holds_out() && request.use == RecordUse::kTraining &&
                     request.patterns == held_out_.patterns)) {
      ETC_ASSIGN_OR_RETURN(records, Divide(std::move(records), held_out));
    }
    return std::make_unique<FileRecordSource>(std::move(records), make, check);
  }
  return RecordSource::Open(request, make, check);
}

absl::StatusOr<std::vector<FileRecord>> RecordTask::Divide(
    std::vector<FileRecord> records, bool held_out) const {
  ETC_ASSIGN_OR_RETURN(
      const std::vector<bool> is_held_out,
      FindHeldOut(
          records,
          [this](const std::string& record, const std::string& where) {
            return StratumOf(record, where);
          },
          held_out_));
  std::vector<FileRecord> part;
  for (size_t i = 0; i < records.size(); ++i) {
    if (is_held_out[i] == held_out) {
      part.push_back(std::move(records[i]));
    }
  }
  return part;
}

std::vector<std::string> RecordTask::WarningsOfLeftOut(
    const OfficialRecords& train) const {
  const int64_t size = train.size();
  std::vector<std::string> reasons(static_cast<size_t>(size));
  // The function below returns no error: records with one are reported
  // elsewhere.
  ReadInParallel(reasons.size(), /*num_bytes=*/0, /*listener=*/nullptr,
                 [&](size_t i, const BytesListener& /*report*/) {
                   const auto text = train.Text(static_cast<int64_t>(i));
                   if (text.ok()) {
                     reasons[i] = WhyLeftOut(*text);
                   }
                   return absl::OkStatus();
                 })
      .IgnoreError();
  struct LeftOut {
    int64_t count = 0;
    int64_t first = 0;
  };
  std::map<std::string, LeftOut> by_reason;
  for (int64_t i = 0; i < size; ++i) {
    const std::string& reason = reasons[static_cast<size_t>(i)];
    if (!reason.empty()) {
      LeftOut& left_out =
          by_reason.try_emplace(reason, LeftOut{.first = i}).first->second;
      ++left_out.count;
    }
  }
  std::vector<std::string> warnings;
  for (const auto& [reason, left_out] : by_reason) {
    const bool is_one = left_out.count == 1;
    warnings.push_back(absl::StrCat(
        left_out.count, " of ", Counted(size, "training record"),
        is_one ? " is" : " are", " left out, ", is_one ? "" : "the first ",
        train.Where(left_out.first), ": ", reason));
  }
  return warnings;
}

absl::StatusOr<Notices> RecordTask::DescribeData(
    const ExampleSource& train, const ExampleSource& dev) const {
  Notices notices;
  const auto* train_records = dynamic_cast<const FileRecordSource*>(&train);
  const auto* dev_records = dynamic_cast<const FileRecordSource*>(&dev);
  if (train_records != nullptr && dev_records != nullptr) {
    notices = DescribeRecords(train_records->records(), dev_records->records());
  }
  if (holds_out()) {
    notices.messages.insert(
        notices.messages.begin(),
        absl::StrCat("held out for evaluation (data.dev_fraction ",
                     held_out_.fraction, ", data.dev_seed ", held_out_.seed,
                     "): ", held_out_.expected));
  }
  const auto* official = dynamic_cast<const OfficialRecords*>(&train);
  if (official != nullptr && TellsLeftOut()) {
    absl::c_move(WarningsOfLeftOut(*official),
                 std::back_inserter(notices.warnings));
  }
  return notices;
}

}  // namespace etc
