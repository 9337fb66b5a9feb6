#ifndef ETC_TASKS_SCORE_FILES_H_
#define ETC_TASKS_SCORE_FILES_H_

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/scoring.h"
#include "tasks/task_definition.h"

namespace etc {

// The gold of all records of the files that `pattern` names. Where D has a
// kUniqueIdField, an id that comes again is a mistake.
//   kInvalidArgument  that, and what D::ParseGold says
template <TaskDefinition D>
absl::StatusOr<ById<typename D::Gold>> ReadGold(const std::string& pattern,
                                                ScoringRules rules) {
  ById<typename D::Gold> gold;
  std::set<std::string> seen;
  ETC_RETURN_IF_ERROR(ForEachRecord(
      pattern,
      [&](const std::string& text, const std::string& where) -> absl::Status {
        ETC_ASSIGN_OR_RETURN(auto record, D::ParseGold(text, where, rules));
        if constexpr (requires { D::kUniqueIdField; }) {
          if (!seen.insert(record.first).second) {
            return absl::InvalidArgumentError(absl::StrCat(
                where, ".", D::kUniqueIdField, " should occur once, but \"",
                record.first, "\" is that of an earlier record too"));
          }
        }
        gold.push_back(std::move(record));
        return absl::OkStatus();
      }));
  return gold;
}

// All scores of a prediction file by the metric of task D. Where D has a
// function CheckFiles, it says whether the two files belong together.
//   kInvalidArgument  either is not as its format has it; a gold record without
//                     answer; files that do not belong together
template <TaskDefinition D>
absl::StatusOr<Metrics> ScoreFiles(const ScoredFiles& files,
                                   ScoringRules rules = {}) {
  // The small file first: its mistakes should not take long to be seen.
  ETC_ASSIGN_OR_RETURN(const ById<typename D::Prediction> predictions,
                       D::ReadPredictions(files.predictions));
  ETC_ASSIGN_OR_RETURN(const ById<typename D::Gold> gold,
                       ReadGold<D>(files.gold, rules));
  if constexpr (requires { D::CheckFiles(gold, predictions, files); }) {
    ETC_RETURN_IF_ERROR(D::CheckFiles(gold, predictions, files));
  }
  Scores scores = D::Score(gold, predictions, rules);
  scores.metrics.insert(scores.metrics.end(), scores.diagnostics.begin(),
                        scores.diagnostics.end());
  return std::move(scores.metrics);
}

}  // namespace etc

#endif  // ETC_TASKS_SCORE_FILES_H_
