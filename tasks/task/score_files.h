#ifndef ETC_TASKS_TASK_SCORE_FILES_H_
#define ETC_TASKS_TASK_SCORE_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_source.h"
#include "tasks/task/benchmark.h"
#include "tasks/task/official_json.h"
#include "tasks/task/scoring.h"

namespace etc {

// The id and the gold of one record, given its JSON text; no gold if it has no
// answer.
//   kInvalidArgument  the record is not as the format has it
template <TaskDefinition D>
absl::StatusOr<std::pair<std::string, std::optional<typename D::Gold>>>
ParseGold(const std::string& text, const std::string& where, ScoringRules rules,
          const typename D::Options& options = {}) {
  if constexpr (requires { D::ParseGold(text, where, rules); }) {
    return D::ParseGold(text, where, rules);
  } else {
    ETC_ASSIGN_OR_RETURN(typename D::Record record,
                         ParseRecord<D>(text, where, options));
    std::optional<typename D::Gold> gold = D::GoldOf(record);
    return std::pair(std::move(record.id), std::move(gold));
  }
}

// The gold of the records that have an answer, in their order, and the ids of
// the others.
template <TaskDefinition D>
struct GoldRecords {
  ById<typename D::Gold> gold = {};
  std::set<std::string> unanswered = {};
  // The place of the first of those.
  std::string first_unanswered;
};

// Takes one record after the other.
template <TaskDefinition D>
class GoldCollector {
 public:
  GoldCollector(ScoringRules rules, const typename D::Options& options)
      : rules_(rules), options_(options) {}

  //   kInvalidArgument  an id that comes again, and what ParseGold says
  absl::Status Add(const std::string& text, const std::string& where) {
    ETC_ASSIGN_OR_RETURN(auto record,
                         ParseGold<D>(text, where, rules_, options_));
    auto& [id, gold] = record;
    const absl::Status is_new = ids_.Add(id, where);
    if (!is_new.ok() && !MayRepeat(id, gold)) {
      return is_new;
    }
    if (gold.has_value()) {
      places_[id] = records_.gold.size();
      records_.gold.emplace_back(std::move(id), *std::move(gold));
    } else {
      if (records_.unanswered.empty()) {
        records_.first_unanswered = where;
      }
      records_.unanswered.insert(std::move(id));
    }
    return absl::OkStatus();
  }

  GoldRecords<D> Take() { return std::move(records_); }

 private:
  bool MayRepeat(const std::string& id,
                 const std::optional<typename D::Gold>& gold) const {
    if constexpr (requires { D::MayRepeat(*gold, *gold); }) {
      const auto earlier = places_.find(id);
      return gold.has_value() && earlier != places_.end() &&
             D::MayRepeat(records_.gold[earlier->second].second, *gold);
    } else {
      return false;
    }
  }

  const ScoringRules rules_;
  const typename D::Options& options_;
  IdPlaces ids_;
  std::map<std::string, size_t> places_;  // of records with gold, by id
  GoldRecords<D> records_;
};

// All records of the files that `pattern` names.
//   kInvalidArgument  what GoldCollector says
template <TaskDefinition D>
absl::StatusOr<GoldRecords<D>> ReadGold(const std::string& pattern,
                                        ScoringRules rules,
                                        const typename D::Options& options = {},
                                        const RecordLimits& limits = {}) {
  GoldCollector<D> collector(rules, options);
  if constexpr (requires { D::ReadFile(pattern, options, limits); }) {
    ETC_ASSIGN_OR_RETURN(
        const std::vector<FileRecord> records,
        ReadAllFiles(
            {pattern},
            [&](const std::string& path, const RecordLimits& of_records) {
              return D::ReadFile(path, options, of_records);
            },
            /*listener=*/nullptr, limits));
    for (const FileRecord& record : records) {
      if (record.broken.empty()) {
        ETC_RETURN_IF_ERROR(collector.Add(record.json, record.where));
      }
    }
  } else {
    ETC_RETURN_IF_ERROR(ForEachRecord(
        pattern,
        [&](const std::string& text, const std::string& where) {
          return collector.Add(text, where);
        },
        limits));
  }
  return collector.Take();
}

// Checks the ids of the predictions against those of the gold records, as
// strictly as D requires.
template <TaskDefinition D>
absl::Status CheckIds(const typename D::Answers& answers,
                      const std::set<std::string>& unanswered,
                      const ScoredFiles& files) {
  std::set<std::string> records = unanswered;
  for (const auto& [id, gold] : answers.gold) {
    records.insert(id);
  }
  std::set<std::string> predicted;
  for (const auto& [id, prediction] : answers.predictions) {
    predicted.insert(id);
  }
  if constexpr (requires { D::kPredictionUnit; }) {
    bool may_miss = false;
    if constexpr (requires { D::kMayMissOfficially; }) {
      may_miss = answers.rules == ScoringRules::kOfficial;
    }
    return may_miss ? absl::OkStatus()
                    : CheckSameIds(records, unanswered, predicted, files,
                                   D::kPredictionUnit);
  } else if constexpr (requires { D::kRefusesOtherIds; }) {
    return CheckKnownIds(records, predicted, files);
  } else {
    return absl::OkStatus();
  }
}

// All scores of a prediction file by the metric of task D. Records without an
// answer are left out, with their predictions. Where D has a function
// CheckFiles, it says whether the two files belong together.
//   kInvalidArgument  either is not as its format has it; no record has an
//                     answer; files that do not belong together
template <TaskDefinition D>
absl::StatusOr<Metrics> ScoreFiles(const ScoredFiles& files,
                                   ScoringRules rules = {},
                                   const typename D::Options& options = {},
                                   const RecordLimits& limits = {},
                                   UnansweredRecords* unanswered = nullptr) {
  // The small file first: its mistakes should not take long to be seen.
  typename D::Answers answers = {.rules = rules};
  ETC_ASSIGN_OR_RETURN(answers.predictions,
                       D::ReadPredictions(files.predictions));
  ETC_ASSIGN_OR_RETURN(GoldRecords<D> read,
                       ReadGold<D>(files.gold, rules, options, limits));
  answers.gold = std::move(read.gold);
  if (answers.gold.empty() && !read.unanswered.empty()) {
    return NothingToScore(files, read.first_unanswered);
  }
  ETC_RETURN_IF_ERROR(CheckIds<D>(answers, read.unanswered, files));
  if constexpr (requires { D::CheckFiles(answers, files); }) {
    ETC_RETURN_IF_ERROR(D::CheckFiles(answers, files));
  }
  std::erase_if(answers.predictions, [&](const auto& prediction) {
    return read.unanswered.contains(prediction.first);
  });
  if (unanswered != nullptr) {
    *unanswered = {.count = static_cast<int64_t>(read.unanswered.size()),
                   .first = read.first_unanswered};
  }
  Scores scores = ScoreOf<D>(answers, options);
  scores.metrics.insert(scores.metrics.end(), scores.diagnostics.begin(),
                        scores.diagnostics.end());
  return std::move(scores.metrics);
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_SCORE_FILES_H_
