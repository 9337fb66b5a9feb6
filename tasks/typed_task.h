#ifndef ETC_TASKS_TYPED_TASK_H_
#define ETC_TASKS_TYPED_TASK_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/record_json.h"
#include "tasks/record_task.h"
#include "tasks/task_definition.h"
#include "tasks/task_options.h"
#include "tasks/typed_head.h"
#include "tasks/typed_predictions.h"

namespace etc {

// The Task that D defines (tasks/task_definition.h).
template <TaskDefinition D>
class TypedTask : public RecordTask {
 public:
  TypedTask(typename D::Options options, EtcConfig model,
            std::shared_ptr<const Tokenizer> tokenizer)
      : options_(std::move(options)),
        model_(std::move(model)),
        tokenizer_(std::move(tokenizer)) {}

  absl::StatusOr<Examples> MakeExamples(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(typename D::Record parsed,
                         ParseRecord<D>(record, where, options_));
    return AsExamples(D::MakeExamples(std::move(parsed), Context(where)));
  }

  absl::StatusOr<Examples> MakeExamplesToPredict(
      const std::string& record, const std::string& where) const override {
    ETC_ASSIGN_OR_RETURN(typename D::Record parsed,
                         ParseRecordWithoutAnswers<D>(record, where, options_));
    return AsExamples(D::MakeExamples(std::move(parsed), Context(where)));
  }

  absl::Status CheckRecord(const std::string& record, const std::string& where,
                           RecordUse use) const override {
    if constexpr (requires(const typename D::Record& parsed) {
                    D::CheckRecord(parsed, options_, where);
                  }) {
      ETC_ASSIGN_OR_RETURN(const typename D::Record parsed,
                           ParseRecord<D>(record, where, options_));
      ETC_RETURN_IF_ERROR(D::CheckRecord(parsed, options_, where));
      return use == RecordUse::kTraining ? CheckTrainingRecord(parsed, where)
                                         : absl::OkStatus();
    } else {
      return absl::OkStatus();
    }
  }

  std::shared_ptr<TaskHead> MakeHead() const override {
    return D::MakeHead(model_, options_);
  }

  std::unique_ptr<TaskPredictions> MakePredictions() const override {
    return std::make_unique<TypedPredictions<D>>(options_, tokenizer_);
  }

  std::string main_metric() const override { return MainMetricOf<D>(options_); }

  std::string Describe(const Example& example) const override {
    return D::Describe(ExampleAs<typename D::Example>(example), Context());
  }

 protected:
  FileReader Reader() const override {
    if constexpr (requires(const RecordLimits& limits) {
                    D::ReadFile(std::string(), options_, limits);
                  }) {
      return [this](const std::string& path, const RecordLimits& limits) {
        return D::ReadFile(path, options_, limits);
      };
    } else {
      return nullptr;
    }
  }

  std::vector<std::string> DescribeRecords(
      const std::vector<FileRecord>& train,
      const std::vector<FileRecord>& dev) const override {
    if constexpr (requires { D::DescribeRecords(train, dev, options_); }) {
      return D::DescribeRecords(train, dev, options_);
    } else {
      return {};
    }
  }

  std::string StratumOf(const std::string& record,
                        const std::string& where) const override {
    return StratumOfRecord<D>(record, where, options_);
  }

 private:
  absl::Status CheckTrainingRecord(const typename D::Record& record,
                                   const std::string& where) const {
    if constexpr (requires { D::TrainingError(record, options_); }) {
      const std::string error = D::TrainingError(record, options_);
      if (!error.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(where, error));
      }
    }
    return D::GoldOf(record).has_value() ? absl::OkStatus()
                                         : NoAnswer(where, record.id);
  }

  typename D::Context Context(const std::string& where = "") const {
    return {.options = options_, .tokenizer = *tokenizer_, .where = where};
  }

  const typename D::Options options_;
  const EtcConfig model_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
};

// Task D with the options in `json`, the object of its name.
//   kInvalidArgument  what ReadCheckedTaskOptions says
template <TaskDefinition D>
absl::StatusOr<std::unique_ptr<RecordTask>> MakeTask(
    const nlohmann::json& json, const std::string& source,
    const TaskSettings& settings, std::shared_ptr<const Tokenizer> tokenizer) {
  ETC_ASSIGN_OR_RETURN(
      typename D::Options options,
      ReadCheckedTaskOptions<D>(json, source, settings, tokenizer.get()));
  return std::make_unique<TypedTask<D>>(std::move(options), settings.model,
                                        std::move(tokenizer));
}

}  // namespace etc

#endif  // ETC_TASKS_TYPED_TASK_H_
