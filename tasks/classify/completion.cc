// Completes options by the training data.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tasks/classify/records.h"
#include "tasks/classify/task.h"
#include "tasks/data/hold_out.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/label_metrics.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

// The records of data.train in their order.
struct RecordAnswers {
  // Nothing for a record without an answer or, with on_bad_record "skip", with
  // a mistake.
  std::vector<std::optional<ClassifyAnswer>> answers;
  // The strata by which data.dev_fraction divides them.
  std::vector<std::string> strata;
  // classify.text_b by the records; nothing: only some are pairs, or the
  // options say it.
  std::optional<std::string> text_b;
};

// Finds out which records are pairs, where the options do not say it.
class PairFinder {
 public:
  explicit PairFinder(const Classify& classify)
      : default_field_(classify.options().text_b.has_value()
                           ? std::nullopt
                           : classify.options().text_b_or_default()),
        named_(WithField(classify.options(), default_field_)) {}

  // Takes a record and its JSON text.
  void Add(const ClassifyRecord& record, const FileRecord& file_record) {
    const bool is_pair = !IsBlank(record.text_b.value_or(""));
    has_pair_ = has_pair_ || is_pair;
    // An empty field says of a pair that its second text is missing.
    have_all_field_ =
        have_all_field_ &&
        (is_pair ||
         named_.ParseRecord(file_record.json, file_record.where).ok());
  }

  // classify.text_b: the default field if all records have it, empty if none is
  // a pair.
  std::optional<std::string> text_b() const {
    return !default_field_.has_value() ? std::nullopt
           : !has_pair_                ? std::optional<std::string>("")
           : have_all_field_           ? default_field_
                                       : std::nullopt;
  }

 private:
  static ClassifyOptions WithField(ClassifyOptions options,
                                   const std::optional<std::string>& field) {
    options.text_b = field;
    return options;
  }

  const std::optional<std::string> default_field_;
  // The task that asks each record for the field.
  const Classify named_;
  bool has_pair_ = false;
  bool have_all_field_ = true;
};

absl::StatusOr<RecordAnswers> ReadAnswers(const DataConfig& data,
                                          const Classify& classify) {
  const bool skips = data.on_bad_record == "skip";
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      ReadAllFiles(
          data.train,
          [&](const std::string& path, const RecordLimits& limits) {
            return ReadClassifyFile(path, classify.options(),
                                    ClassifyFileUse::kTraining, limits);
          },
          /*listener=*/nullptr, RecordLimitsOf(data)));
  RecordAnswers read;
  PairFinder pairs(classify);
  for (const FileRecord& file_record : records) {
    const std::string& where = file_record.where;
    const auto record = classify.ParseRecord(file_record.json, where);
    read.strata.push_back(record.ok() ? classify.Stratum(*record) : "");
    const absl::Status status =
        record.ok() ? classify.CheckRecord(*record, where) : record.status();
    if (!skips) {
      ETC_RETURN_IF_ERROR(WithPlaceInFile(status, where, file_record.line));
    }
    read.answers.push_back(status.ok() ? record->answer : std::nullopt);
    if (record.ok()) {
      pairs.Add(*record, file_record);
    }
  }
  read.text_b = pairs.text_b();
  return read;
}

// Statistics of answers.
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
    const Collected& all, const ClassifyOptions& options,
    const std::string& files) {
  const auto num_labels = static_cast<int64_t>(all.documents_of_label.size());
  const int64_t least = options.type == ClassifyType::kOne ? 2 : 1;
  if (num_labels < least) {
    return InvalidArgument(
        files, ": the field \"", options.label, "\" should have at least ",
        least == 2 ? "two different labels" : "one label", ", but ",
        num_labels == 0
            ? "has none"
            : absl::StrCat("has only ", all.documents_of_label.begin()->first));
  }
  // Fewer may be a first try.
  constexpr int64_t kFew = 20;
  if (num_labels > kFew && 2 * num_labels > all.documents) {
    return InvalidArgument(
        files, ": the field \"", options.label, "\" has ", num_labels,
        " different labels in ", all.documents,
        " documents; classify.label should name the field of the labels, or, "
        "where this is it, classify.labels list them");
  }
  std::vector<std::string> labels;
  labels.reserve(all.documents_of_label.size());
  for (const auto& [label, documents] : all.documents_of_label) {
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
  // The mean of equal numbers may differ from them in the last bit.
  if (std::adjacent_find(numbers.begin(), numbers.end(),
                         std::not_equal_to<>()) == numbers.end()) {
    return {numbers.front(), 1.0};
  }
  const ScaledNumbers scaled = Scaled(numbers);
  const auto size = static_cast<double>(numbers.size());
  const double mean =
      std::accumulate(scaled.values.begin(), scaled.values.end(), 0.0) / size;
  double squares = 0;
  for (const double number : scaled.values) {
    squares += (number - mean) * (number - mean);
  }
  const double deviation =
      std::ldexp(std::sqrt(squares / size), scaled.exponent);
  return {std::ldexp(mean, scaled.exponent), deviation > 0 ? deviation : 1.0};
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
  ETC_ASSIGN_OR_RETURN(const RecordAnswers read, ReadAnswers(data, *this));
  const std::vector<bool> is_held_out =
      ChooseHeldOut(read.strata, HoldOutOptionsOf(data));
  Collected all;
  Collected train;  // what is not held out, which has each label, too
  for (size_t i = 0; i < read.answers.size(); ++i) {
    if (const std::optional<ClassifyAnswer>& answer = read.answers[i]) {
      all.Add(*answer);
      if (!is_held_out[i]) {
        train.Add(*answer);
      }
    }
  }
  if (read.text_b.has_value()) {
    (*json)["text_b"] = *read.text_b;
  }
  std::vector<std::string> labels = options().labels;
  if (options().type == ClassifyType::kNumber) {
    ETC_RETURN_IF_ERROR(AddNumbers(train, options(), files, json));
  } else if (labels.empty()) {
    ETC_ASSIGN_OR_RETURN(labels, LabelsOf(all, options(), files));
    (*json)["labels"] = labels;
  }
  if (options().balances_classes) {
    ETC_ASSIGN_OR_RETURN((*json)["class_weights"],
                         BalancedWeights(train, labels, files));
  }
  return absl::OkStatus();
}

}  // namespace etc
