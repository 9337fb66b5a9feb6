#include "tasks/task/benchmark_task.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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

absl::StatusOr<std::vector<std::string>> RecordTask::DescribeData(
    const ExampleSource& train, const ExampleSource& dev) const {
  const auto* train_records = dynamic_cast<const FileRecordSource*>(&train);
  const auto* dev_records = dynamic_cast<const FileRecordSource*>(&dev);
  if (train_records == nullptr || dev_records == nullptr) {
    return std::vector<std::string>();
  }
  std::vector<std::string> lines =
      DescribeRecords(train_records->records(), dev_records->records());
  if (holds_out()) {
    lines.insert(lines.begin(),
                 absl::StrCat("held out for evaluation (data.dev_fraction ",
                              held_out_.fraction, ", data.dev_seed ",
                              held_out_.seed, "): ", held_out_.expected));
  }
  return lines;
}

}  // namespace etc
