#include "tasks/train/open_data.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/data/example_source.h"
#include "tasks/data/record_check.h"
#include "tasks/data/record_gate.h"
#include "tasks/data/record_source.h"
#include "tasks/train/progress.h"
#include "tasks/train/run_plan.h"

namespace etc {
namespace {

// OpeningListener of a check, which reads records.
FilesListener CheckingListener(const RunContext& context) {
  return [context](uint64_t records, uint64_t num_records) -> absl::Status {
    if (context.is_stopped()) {
      return absl::CancelledError("the check of the data was stopped");
    }
    if (context.reporter != nullptr) {
      context.reporter->Checking(
          {.records = static_cast<int64_t>(records),
           .num_records = static_cast<int64_t>(num_records)});
    }
    return absl::OkStatus();
  };
}

RecordCheckOptions CheckOptions(const DataConfig& config,
                                const RunContext& context) {
  return {.on_bad_record = OnBadRecordOf(config),
          .listener = CheckingListener(context),
          .group = DataGroupOf(context.group)};
}

// Checks training records that are in memory: a run would reach a mistake in
// them some time. Others may be too many to read all of them.
absl::Status CheckTrainingRecords(const DataConfig& config,
                                  const ExampleSource& records,
                                  const RunContext& context) {
  const auto* in_memory = dynamic_cast<const FileRecordSource*>(&records);
  return in_memory != nullptr && OnBadRecordOf(config) == OnBadRecord::kError
             ? CheckRecords(*in_memory, CheckOptions(config, context))
             : absl::OkStatus();
}

// Describes files without a record that is used.
std::string NoRecordsText(const std::vector<std::string>& files,
                          const ExampleSource& records) {
  const std::string left_out = records.LeftOut();
  return absl::StrCat(
      "there are no records in ", absl::StrJoin(files, ", "),
      left_out.empty() ? "" : absl::StrCat(" (", left_out, ")"));
}

// Checks that there is something to train on, and CheckEvaluations.
absl::Status CheckData(const RunConfig& config, const RunData& data) {
  if (data.train->size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.train: ", NoRecordsText(config.data.train, *data.train_records)));
  }
  return CheckEvaluations(config, data);
}

// Warns of evaluations without scores, which the run does not need.
void WarnOfEvaluations(const DataConfig& config, const RunData& data,
                       const RunContext& context) {
  const RecordCounts& dev = data.dev_counts;
  const char kNoBest[] =
      ": training goes on without scores, and no checkpoint becomes `best`";
  if (config.dev.empty() && data.dev->size() == 0) {
    context.Warn(absl::StrCat("data.dev is empty", kNoBest));
  } else if (data.dev->size() == 0) {
    context.Warn(absl::StrCat(
        "data.dev: ", NoRecordsText(config.dev, *data.dev_records), kNoBest));
  } else if (dev.have_no_answers()) {
    context.Warn(absl::StrCat("data.dev: the records of ",
                              absl::StrJoin(config.dev, ", "),
                              " have no answers", kNoBest));
  } else if (dev.unanswered > 0) {
    context.Warn(absl::StrCat("data.dev: ", UnansweredText(dev.unanswered)));
  }
}

// OpenRecords of the files that `field` names.
absl::StatusOr<std::unique_ptr<ExampleSource>> OpenField(
    absl::string_view field, const Task& task, DataRequest request,
    const RunContext& context) {
  auto records = OpenRecords(task, std::move(request), context);
  return absl::IsNotFound(records.status())
             ? absl::NotFoundError(
                   absl::StrCat(field, ": ", records.status().message()))
             : std::move(records);
}

}  // namespace

FilesListener OpeningListener(const RunContext& context) {
  return [context](uint64_t bytes, uint64_t num_bytes) -> absl::Status {
    if (context.is_stopped()) {
      return absl::CancelledError("the reading of the data was stopped");
    }
    if (context.reporter != nullptr) {
      context.reporter->Opening({.bytes = bytes, .num_bytes = num_bytes});
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<std::unique_ptr<ExampleSource>> OpenRecords(
    const Task& task, DataRequest request, const RunContext& context) {
  request.listener = OpeningListener(context);
  request.group = DataGroupOf(context.group);
  auto records = task.Open(request);
  // Tables are read by each rank for itself: a stop or an error of one would
  // leave the others in their next collective operation.
  ETC_RETURN_IF_ERROR(context.Agree(records.status()));
  return records;
}

absl::StatusOr<RecordCounts> CheckEvaluationRecords(
    const DataConfig& config, const ExampleSource& records,
    const RunContext& context, RecordUse use) {
  const auto* official = dynamic_cast<const OfficialRecords*>(&records);
  if (official == nullptr) {
    return RecordCounts();
  }
  RecordCheckOptions options = CheckOptions(config, context);
  options.predicts = use == RecordUse::kPrediction;
  return CheckRecordsAndIds(*official, options);
}

absl::Status CheckEvaluations(const RunConfig& config, const RunData& data) {
  const char* const needs_scores =
      config.train.early_stopping > 0     ? "early_stopping"
      : !config.train.main_metric.empty() ? "main_metric"
                                          : nullptr;
  const char* const field = needs_scores != nullptr ? needs_scores
                            : config.train.evaluate_at_start
                                ? "evaluate_at_start"
                                : nullptr;
  if (field != nullptr && (data.dev == nullptr || data.dev->size() == 0)) {
    return InvalidArgument(
        config.source, ": train.", field,
        " needs evaluations, but data.dev has no records to evaluate on");
  }
  if (needs_scores != nullptr && data.dev_counts.have_no_answers()) {
    return InvalidArgument(config.source, ": train.", needs_scores,
                           " needs scores, but no record of data.dev has an "
                           "answer");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RunData>> OpenRunData(
    const RunConfig& run, const Task& task, const RunContext& context) {
  const DataConfig& config = run.data;
  if (config.train.empty()) {
    return absl::InvalidArgumentError(
        "data.train should name at least one file, but is empty");
  }
  auto data = std::make_unique<RunData>();
  const RecordLimits limits = RecordLimitsOf(config);
  ETC_ASSIGN_OR_RETURN(data->train_records,
                       OpenField("data.train", task,
                                 {.patterns = config.train,
                                  .use = RecordUse::kTraining,
                                  .limits = limits},
                                 context));
  ETC_ASSIGN_OR_RETURN(
      data->dev_records,
      OpenField("data.dev", task, {.patterns = config.dev, .limits = limits},
                context));
  ETC_RETURN_IF_ERROR(
      CheckTrainingRecords(config, *data->train_records, context));
  ETC_ASSIGN_OR_RETURN(
      data->dev_counts,
      CheckEvaluationRecords(config, *data->dev_records, context));
  const ExampleSource* train = data->train_records.get();
  if (run.train.max_examples > 0) {
    data->first_records =
        std::make_unique<FirstRecords>(train, run.train.max_examples);
    train = data->first_records.get();
  }
  const auto train_size = static_cast<double>(train->size());
  const auto dev_size = static_cast<double>(data->dev_records->size());
  const auto bytes = static_cast<double>(CacheBytesOf(config));
  const double bytes_per_record = bytes / std::max(1.0, train_size + dev_size);
  data->train = std::make_unique<CachedSource>(
      train, static_cast<int64_t>(bytes_per_record * train_size));
  data->dev = std::make_unique<CachedSource>(
      data->dev_records.get(),
      static_cast<int64_t>(bytes_per_record * dev_size));
  ETC_RETURN_IF_ERROR(context.Agree(CheckData(run, *data)));
  WarnOfEvaluations(config, *data, context);
  return data;
}

}  // namespace etc
