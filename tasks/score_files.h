#ifndef ETC_TASKS_SCORE_FILES_H_
#define ETC_TASKS_SCORE_FILES_H_

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/file_records.h"
#include "tasks/record_json.h"
#include "tasks/scoring.h"
#include "tasks/task_definition.h"

namespace etc {

// The id and the gold of one record, given its JSON text.
//   kInvalidArgument  the record is not as the format has it, or has no answer
template <TaskDefinition D>
absl::StatusOr<std::pair<std::string, typename D::Gold>> ParseGold(
    const std::string& text, const std::string& where, ScoringRules rules,
    const typename D::Options& options = {}) {
  if constexpr (requires { D::ParseGold(text, where, rules); }) {
    return D::ParseGold(text, where, rules);
  } else {
    ETC_ASSIGN_OR_RETURN(typename D::Record record,
                         ParseRecord<D>(text, where, options));
    std::optional<typename D::Gold> gold = D::GoldOf(record);
    if (!gold.has_value()) {
      return AnswerIsMissing(where, D::kAnswerField);
    }
    return std::pair(std::move(record.id), *std::move(gold));
  }
}

// The gold of all records of the files that `pattern` names. Where D has a
// kUniqueIdField, an id that comes again is a mistake.
//   kInvalidArgument  that, and what ParseGold says
template <TaskDefinition D>
absl::StatusOr<ById<typename D::Gold>> ReadGold(
    const std::string& pattern, ScoringRules rules,
    const typename D::Options& options = {}, const RecordLimits& limits = {}) {
  std::set<std::string> seen;
  const auto read = [&](const std::string& text, const std::string& where)
      -> absl::StatusOr<std::pair<std::string, typename D::Gold>> {
    ETC_ASSIGN_OR_RETURN(auto record,
                         ParseGold<D>(text, where, rules, options));
    if constexpr (requires { D::kUniqueIdField; }) {
      if (!seen.insert(record.first).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, ".", D::kUniqueIdField, " should occur once, but \"",
            record.first, "\" is that of an earlier record too"));
      }
    }
    return record;
  };
  if constexpr (requires { D::ReadFile(pattern, options, limits); }) {
    ETC_ASSIGN_OR_RETURN(
        const std::vector<FileRecord> records,
        ReadAllFiles(
            {pattern},
            [&](const std::string& path, const RecordLimits& of_records) {
              return D::ReadFile(path, options, of_records);
            },
            /*listener=*/nullptr, limits));
    ById<typename D::Gold> gold;
    gold.reserve(records.size());
    for (const FileRecord& record : records) {
      if (!record.broken.empty()) {
        continue;
      }
      ETC_ASSIGN_OR_RETURN(gold.emplace_back(),
                           read(record.json, record.where));
    }
    return gold;
  } else {
    return ReadById<typename D::Gold>(pattern, read, limits);
  }
}

// All scores of a prediction file by the metric of task D. Where D has a
// function CheckFiles, it says whether the two files belong together.
//   kInvalidArgument  either is not as its format has it; a gold record without
//                     answer; files that do not belong together
template <TaskDefinition D>
absl::StatusOr<Metrics> ScoreFiles(const ScoredFiles& files,
                                   ScoringRules rules = {},
                                   const typename D::Options& options = {},
                                   const RecordLimits& limits = {}) {
  // The small file first: its mistakes should not take long to be seen.
  typename D::Answers answers = {.rules = rules};
  ETC_ASSIGN_OR_RETURN(answers.predictions,
                       D::ReadPredictions(files.predictions));
  ETC_ASSIGN_OR_RETURN(answers.gold,
                       ReadGold<D>(files.gold, rules, options, limits));
  if constexpr (requires { D::kPredictionUnit; }) {
    ETC_RETURN_IF_ERROR(CheckSameRecords(answers, files, D::kPredictionUnit));
  }
  if constexpr (requires { D::CheckFiles(answers, files); }) {
    ETC_RETURN_IF_ERROR(D::CheckFiles(answers, files));
  }
  Scores scores = ScoreOf<D>(answers, options);
  scores.metrics.insert(scores.metrics.end(), scores.diagnostics.begin(),
                        scores.diagnostics.end());
  return std::move(scores.metrics);
}

}  // namespace etc

#endif  // ETC_TASKS_SCORE_FILES_H_
