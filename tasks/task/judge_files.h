#ifndef ETC_TASKS_TASK_JUDGE_FILES_H_
#define ETC_TASKS_TASK_JUDGE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/counted.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/judged_records.h"
#include "tasks/task/score_files.h"

namespace etc {

// The files of a prediction file's records, and that file, for messages.
struct JudgedFiles {
  std::vector<std::string> gold;
  std::string predictions;
};

// Takes the records of gold files, one after the other, with the predictions of
// a prediction file beside them. Predictions whose ids come again, as those of
// the rows of several files do, are those of all records in their order.
template <typename B>
class RecordJudge {
 public:
  using Prediction = typename B::Prediction;

  RecordJudge(std::shared_ptr<const B> benchmark, JudgedFiles files,
              ById<Prediction> predictions)
      : benchmark_(std::move(benchmark)),
        files_(std::move(files)),
        fields_({.answers = benchmark_->AnswerFields(),
                 .answer_texts = benchmark_->AnswerTextFields(),
                 .documents = benchmark_->DocumentFields(),
                 .show_answers =
                     [benchmark = benchmark_](const nlohmann::json& json,
                                              nlohmann::json* answers) {
                       benchmark->ShowAnswers(json, answers);
                     }}),
        predictions_(std::move(predictions)),
        by_id_(LastOfEachId(predictions_)) {
    answers_->rules = benchmark_->RulesOfFiles();
    judged_.main_metric = benchmark_->main_metric();
  }

  // Leaves out a record without an answer or a prediction.
  //   kInvalidArgument  what ParseGold says; an id that comes again in the gold
  //                     alone; predictions in another order
  absl::Status Add(const FileRecord& record) {
    const std::string& where = record.where;
    ETC_ASSIGN_OR_RETURN(auto parsed, benchmark_->ParseGold(record.json, where,
                                                            answers_->rules));
    auto& [id, gold] = parsed;
    ETC_ASSIGN_OR_RETURN(const Prediction* prediction,
                         PredictionFor(id, where));
    if (!gold.has_value() || prediction == nullptr) {
      return absl::OkStatus();
    }
    std::vector<size_t>& places = places_[id];
    if (!places.empty() && !is_in_order() &&
        !benchmark_->MayRepeat(answers_->gold[places.back()].second, *gold)) {
      return InvalidArgument(where, ": the id ", QuotedName(id),
                             " should occur once, as in ", files_.predictions);
    }
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ParseJson(record.Text(), where));
    judged_.records.push_back(JudgeRecord(
        id, json, fields_, benchmark_->PredictionJson(id, *prediction)));
    places.push_back(answers_->gold.size());
    if (places.size() > 1) {
      absl::StrAppend(&judged_.records.back().id, " (", places.size(), ")");
    }
    answers_->predictions.emplace_back(id, *prediction);
    answers_->gold.emplace_back(std::move(id), *std::move(gold));
    return absl::OkStatus();
  }

  // Gives the records, after the last one.
  //   kInvalidArgument  there are none; predictions are left over that have an
  //                     order
  absl::StatusOr<JudgedRecords> Take() {
    if (is_in_order() && num_records_ != predictions_.size()) {
      return WrongOrder(
          absl::StrCat("has ", predictions_.size(), " for ",
                       Counted(static_cast<int64_t>(num_records_), "record")));
    }
    if (judged_.records.empty()) {
      return InvalidArgument(GoldNames(), " has no record with an answer that ",
                             files_.predictions, " has a prediction for");
    }
    const auto answers_of = [all =
                                 answers_](const std::vector<size_t>& records) {
      typename B::Answers some = {.rules = all->rules};
      for (const size_t record : records) {
        some.gold.push_back(all->gold[record]);
        some.predictions.push_back(all->predictions[record]);
      }
      return some;
    };
    judged_.score = [benchmark = benchmark_,
                     answers_of](const std::vector<size_t>& records) {
      return benchmark->Score(answers_of(records)).metrics;
    };
    judged_.record_score = [benchmark = benchmark_, answers_of](size_t record) {
      return benchmark->RecordScore(answers_of({record}));
    };
    return std::move(judged_);
  }

 private:
  // True if an id of the predictions comes again.
  bool is_in_order() const { return by_id_.size() < predictions_.size(); }

  // The prediction for the next record; null: there is none.
  absl::StatusOr<const Prediction*> PredictionFor(const std::string& id,
                                                  const std::string& where) {
    const size_t record = num_records_++;
    if (!is_in_order()) {
      return FindById(by_id_, id);
    }
    if (record >= predictions_.size() || predictions_[record].first != id) {
      return WrongOrder(
          absl::StrCat("number ", record + 1, " is not that of ", where));
    }
    return &predictions_[record].second;
  }

  absl::Status WrongOrder(absl::string_view what) const {
    return InvalidArgument(files_.predictions,
                           " has ids that come again, so that it should have a "
                           "prediction for each record of ",
                           GoldNames(), ", in the same order, but ", what);
  }

  std::string GoldNames() const { return absl::StrJoin(files_.gold, ", "); }

  const std::shared_ptr<const B> benchmark_;
  const JudgedFiles files_;
  const JudgedFields fields_;
  const ById<Prediction> predictions_;
  const std::map<absl::string_view, const Prediction*> by_id_;
  size_t num_records_ = 0;
  // Places in `answers_` by id.
  std::map<std::string, std::vector<size_t>> places_;
  const std::shared_ptr<typename B::Answers> answers_ =
      std::make_shared<typename B::Answers>();
  JudgedRecords judged_;
};

// The records of gold files, in their order, with the predictions of a
// prediction file beside them. Records without an answer or a prediction are
// left out.
//   kInvalidArgument  either is not as its format has it; no record has both;
//                     what RecordJudge says
template <typename B>
absl::StatusOr<JudgedRecords> JudgeFiles(std::shared_ptr<const B> benchmark,
                                         const JudgedFiles& files,
                                         const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(auto predictions,
                       benchmark->ReadPredictions(files.predictions));
  RecordJudge<B> judge(benchmark, files, std::move(predictions));
  for (const std::string& pattern : files.gold) {
    ETC_RETURN_IF_ERROR(ForEachGoldRecord(
        *benchmark, pattern, limits,
        [&judge](const FileRecord& record) { return judge.Add(record); }));
  }
  return judge.Take();
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_JUDGE_FILES_H_
