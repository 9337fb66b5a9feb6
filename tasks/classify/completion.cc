// Completes options by the training data.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tasks/classify/records.h"
#include "tasks/classify/task.h"
#include "tasks/task/benchmark.h"

namespace etc {
namespace {

// Calls `take` with the answer of each record of data.train or data.dev that
// has one, and its place. With on_bad_record "skip", records with a mistake and
// errors of `take` are passed over.
absl::Status ForEachAnswer(
    const DataConfig& data, const Classify& classify, ClassifyFileUse use,
    const std::function<absl::Status(const ClassifyAnswer& answer,
                                     const std::string& where)>& take) {
  const bool skips = data.on_bad_record == "skip";
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      ReadAllFiles(
          use == ClassifyFileUse::kTraining ? data.train : data.dev,
          [&](const std::string& path, const RecordLimits& limits) {
            return ReadClassifyFile(path, classify.options(), use, limits);
          },
          /*listener=*/nullptr, RecordLimitsOf(data)));
  for (const FileRecord& file_record : records) {
    const std::string& where = file_record.where;
    const auto record = classify.ParseRecord(file_record.json, where);
    absl::Status status = record.status();
    if (status.ok() && record->answer.has_value()) {
      status = take(*record->answer, where);
    }
    if (!skips) {
      ETC_RETURN_IF_ERROR(status);
    }
  }
  return absl::OkStatus();
}

// Statistics of the answers of the training data.
struct Collected {
  int64_t documents = 0;
  std::map<std::string, int64_t> documents_of_label;
  std::vector<double> numbers;

  void Add(const ClassifyAnswer& answer) {
    ++documents;
    for (const std::string& label : answer.labels) {
      ++documents_of_label[label];
    }
    if (answer.type == ClassifyType::kNumber) {
      numbers.push_back(answer.number);
    }
  }
};

absl::StatusOr<std::vector<std::string>> LabelsOf(
    const Collected& train, const ClassifyOptions& options,
    const std::string& files) {
  const auto num_labels = static_cast<int64_t>(train.documents_of_label.size());
  const int64_t least = options.type == ClassifyType::kOne ? 2 : 1;
  if (num_labels < least) {
    return InvalidArgument(
        files, ": the field \"", options.label, "\" should have at least ",
        least == 2 ? "two different labels" : "one label", ", but ",
        num_labels == 0
            ? "has none"
            : absl::StrCat("has only ",
                           train.documents_of_label.begin()->first));
  }
  // Fewer may be a first try.
  constexpr int64_t kFew = 20;
  if (num_labels > kFew && 2 * num_labels > train.documents) {
    return InvalidArgument(
        files, ": the field \"", options.label, "\" has ", num_labels,
        " different labels in ", train.documents,
        " documents; classify.label should name the field of the labels, or, "
        "where this is it, classify.labels list them");
  }
  std::vector<std::string> labels;
  labels.reserve(train.documents_of_label.size());
  for (const auto& [label, documents] : train.documents_of_label) {
    labels.push_back(label);
  }
  return labels;
}

absl::StatusOr<nlohmann::json> BalancedWeights(
    const Collected& train, const std::vector<std::string>& labels,
    const std::string& files) {
  nlohmann::json weights = nlohmann::json::object();
  for (const std::string& label : labels) {
    const auto found = train.documents_of_label.find(label);
    if (found == train.documents_of_label.end()) {
      return InvalidArgument(
          files,
          ": \"balanced\" class_weights need a document of each label, "
          "but there is none of ",
          label);
    }
    weights[label] = static_cast<double>(train.documents) /
                     static_cast<double>(static_cast<int64_t>(labels.size()) *
                                         found->second);
  }
  return weights;
}

// Returns mean and standard deviation of numbers, at least one; a deviation of
// 1 if they are equal.
std::pair<double, double> Moments(const std::vector<double>& numbers) {
  const auto size = static_cast<double>(numbers.size());
  const double mean =
      std::accumulate(numbers.begin(), numbers.end(), 0.0) / size;
  double squares = 0;
  for (const double number : numbers) {
    squares += (number - mean) * (number - mean);
  }
  const double deviation = std::sqrt(squares / size);
  return {mean, deviation > 0 ? deviation : 1.0};
}

absl::Status AddNumbers(const Collected& train, const ClassifyOptions& options,
                        const std::string& files, nlohmann::json* json) {
  if (train.numbers.empty()) {
    return InvalidArgument(files, ": the field \"", options.label,
                           "\" should have a number, but no record has one");
  }
  const auto [mean, deviation] = Moments(train.numbers);
  (*json)["mean"] = options.mean.value_or(mean);
  (*json)["deviation"] = options.deviation.value_or(deviation);
  return absl::OkStatus();
}

}  // namespace

absl::Status Classify::CompleteOptions(const DataConfig& data,
                                       nlohmann::json* json) const {
  if (data.train.empty()) {
    return absl::OkStatus();  // training says so
  }
  const std::string files = absl::StrJoin(data.train, ", ");
  Options completed = options();
  const auto check = [&](const ClassifyAnswer& answer,
                         const std::string& where) {
    return IndicesOfLabels(answer, completed, where).status();
  };
  Collected train;
  ETC_RETURN_IF_ERROR(ForEachAnswer(
      data, *this, ClassifyFileUse::kTraining,
      [&](const ClassifyAnswer& answer, const std::string& where) {
        // Listed labels are all that there may be.
        absl::Status status =
            options().labels.empty() ? absl::OkStatus() : check(answer, where);
        if (status.ok()) {
          train.Add(answer);
        }
        return status;
      }));
  if (options().type == ClassifyType::kNumber) {
    ETC_RETURN_IF_ERROR(AddNumbers(train, options(), files, json));
  } else if (options().labels.empty()) {
    ETC_ASSIGN_OR_RETURN(completed.labels, LabelsOf(train, options(), files));
    (*json)["labels"] = completed.labels;
  }
  if (options().balances_classes) {
    ETC_ASSIGN_OR_RETURN((*json)["class_weights"],
                         BalancedWeights(train, completed.labels, files));
  }
  return ForEachAnswer(data, *this, ClassifyFileUse::kAny, check);
}

}  // namespace etc
