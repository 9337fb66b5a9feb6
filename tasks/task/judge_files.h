#ifndef ETC_TASKS_TASK_JUDGE_FILES_H_
#define ETC_TASKS_TASK_JUDGE_FILES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/judged_records.h"
#include "tasks/task/scoring.h"

namespace etc {

// The records of a gold file with the predictions of a prediction file beside
// them. Records without an answer or a prediction are left out.
//   kInvalidArgument  either is not as its format has it; no record has both
template <typename B>
absl::StatusOr<JudgedRecords> JudgeFiles(std::shared_ptr<const B> benchmark,
                                         const ScoredFiles& files,
                                         const RecordLimits& limits) {
  ETC_ASSIGN_OR_RETURN(const auto predictions,
                       benchmark->ReadPredictions(files.predictions));
  const auto by_id = LastOfEachId(predictions);
  auto answers = std::make_shared<typename B::Answers>();
  JudgedRecords judged = {.main_metric = benchmark->main_metric()};
  const auto add = [&](const std::string& text,
                       const std::string& where) -> absl::Status {
    ETC_ASSIGN_OR_RETURN(
        auto record, benchmark->ParseGold(text, where, ScoringRules::kDefault));
    const auto* prediction = FindById(by_id, record.first);
    if (!record.second.has_value() || prediction == nullptr) {
      return absl::OkStatus();
    }
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
    judged.records.push_back(
        JudgeRecord(record.first, json, benchmark->AnswerFields(),
                    benchmark->AnswerTextFields(),
                    benchmark->PredictionJson(record.first, *prediction)));
    answers->predictions.emplace_back(record.first, *prediction);
    answers->gold.emplace_back(std::move(record.first),
                               *std::move(record.second));
    return absl::OkStatus();
  };
  if (benchmark->info().has_own_files) {
    ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> records,
                         benchmark->ReadFiles({files.gold}, limits));
    for (const FileRecord& record : records) {
      if (record.broken.empty()) {
        ETC_RETURN_IF_ERROR(add(record.json, record.where));
      }
    }
  } else {
    ETC_RETURN_IF_ERROR(ForEachRecord(files.gold, add, limits));
  }
  if (judged.records.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.gold, " has no record with an answer that ",
                     files.predictions, " has a prediction for"));
  }
  judged.score = [benchmark, answers](const std::vector<size_t>& records) {
    typename B::Answers some;
    for (const size_t record : records) {
      some.gold.push_back(answers->gold[record]);
      some.predictions.push_back(answers->predictions[record]);
    }
    return benchmark->Score(some).metrics;
  };
  return judged;
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_JUDGE_FILES_H_
