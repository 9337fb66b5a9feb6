#ifndef ETC_TASKS_TASK_SCORE_FILES_H_
#define ETC_TASKS_TASK_SCORE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tasks/data/id_places.h"
#include "tasks/data/record_source.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"

namespace etc {

// The gold of the records that have an answer, in their order, and the ids of
// the others.
template <typename B>
struct GoldRecords {
  ById<typename B::Gold> gold = {};
  std::set<std::string> unanswered = {};
  // The place of the first of those.
  std::string first_unanswered;
};

// Takes one record after the other.
template <typename B>
class GoldCollector {
 public:
  // `benchmark` must outlive it.
  GoldCollector(const B& benchmark, ScoringRules rules)
      : benchmark_(benchmark), rules_(rules) {}

  //   kInvalidArgument  an id that comes again, and what ParseGold says
  absl::Status Add(const std::string& text, const std::string& where) {
    ETC_ASSIGN_OR_RETURN(auto record,
                         benchmark_.ParseGold(text, where, rules_));
    auto& [id, gold] = record;
    absl::Status is_new = ids_.Add(id, where);
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

  GoldRecords<B> Take() { return std::move(records_); }

 private:
  bool MayRepeat(const std::string& id,
                 const std::optional<typename B::Gold>& gold) const {
    const auto earlier = places_.find(id);
    return gold.has_value() && earlier != places_.end() &&
           benchmark_.MayRepeat(records_.gold[earlier->second].second, *gold);
  }

  const B& benchmark_;
  const ScoringRules rules_;
  IdPlaces ids_;
  std::map<std::string, size_t> places_;  // of records with gold, by id
  GoldRecords<B> records_;
};

// Calls `read` with each record of the gold files that `pattern` names, as
// ForEachRecord does; broken records are left out.
template <typename B>
absl::Status ForEachGoldRecord(
    const B& benchmark, const std::string& pattern, const RecordLimits& limits,
    absl::FunctionRef<absl::Status(const FileRecord& record)> read) {
  if (!benchmark.info().has_own_files) {
    return ForEachRecord(
        pattern,
        [&read](const std::string& text, const std::string& where) {
          return read({.json = text, .where = where});
        },
        limits);
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> records,
                       benchmark.ReadFiles({pattern}, limits));
  for (const FileRecord& record : records) {
    if (record.broken.empty()) {
      ETC_RETURN_IF_ERROR(read(record));
    }
  }
  return absl::OkStatus();
}

// All records of the files that `pattern` names.
//   kInvalidArgument  what GoldCollector says
template <typename B>
absl::StatusOr<GoldRecords<B>> ReadGold(const B& benchmark,
                                        const std::string& pattern,
                                        ScoringRules rules,
                                        const RecordLimits& limits = {}) {
  GoldCollector<B> collector(benchmark, rules);
  ETC_RETURN_IF_ERROR(ForEachGoldRecord(
      benchmark, pattern, limits, [&collector](const FileRecord& record) {
        return collector.Add(record.json, record.where);
      }));
  return collector.Take();
}

// Returns the error that no record of the gold has an answer; the first one is
// at `where`.
absl::Status NothingToScore(const ScoredFiles& files, absl::string_view where);

// Returns the error that the prediction of `id` has nothing by which `option`
// decides.
absl::Status CannotDecode(absl::string_view option, absl::string_view id,
                          const ScoredFiles& files);

// Checks that the ids in `predicted` are those in `records`. The ids in
// `unanswered`, of records without an answer, may lack a prediction. `what`
// names the unit of the prediction file, "line" or "prediction".
//   kInvalidArgument  a record without prediction, or the other way round; the
//                     first of them by id
absl::Status CheckSameIds(const std::set<std::string>& records,
                          const std::set<std::string>& unanswered,
                          const std::set<std::string>& predicted,
                          const ScoredFiles& files, absl::string_view what);

// Checks that each prediction is of a record; a record may have none.
//   kInvalidArgument  a prediction is of no record
absl::Status CheckKnownIds(const std::set<std::string>& records,
                           const std::set<std::string>& predicted,
                           const ScoredFiles& files);

// Checks the ids of the predictions against those of the gold records, as
// strictly as the benchmark requires.
template <typename B>
absl::Status CheckIds(const B& benchmark, const typename B::Answers& answers,
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
  const BenchmarkInfo info = benchmark.info();
  if (!info.prediction_unit.empty()) {
    return info.may_miss_officially && answers.rules == ScoringRules::kOfficial
               ? absl::OkStatus()
               : CheckSameIds(records, unanswered, predicted, files,
                              info.prediction_unit);
  }
  return info.refuses_other_ids && answers.rules != ScoringRules::kOfficial
             ? CheckKnownIds(records, predicted, files)
             : absl::OkStatus();
}

// Checks that the options files.decoding decide by what each prediction has.
//   kInvalidArgument  one does not
template <typename B>
absl::Status CheckDecoding(const B& benchmark,
                           const ById<typename B::Prediction>& predictions,
                           const ScoredFiles& files) {
  for (const std::string& option : files.decoding) {
    for (const auto& [id, prediction] : predictions) {
      if (!benchmark.DecodesAgain(prediction, option)) {
        return CannotDecode(absl::StrCat(benchmark.info().name, ".", option),
                            id, files);
      }
    }
  }
  return absl::OkStatus();
}

// All scores of a prediction file by the metric of a benchmark, by
// RulesOfFiles(rules). Records without an answer are left out, with their
// predictions. Sets `unanswered` and `remark` (Benchmark::Remark) unless null.
//   kInvalidArgument  either is not as its format has it; no record has an
//                     answer; files that do not belong together; what
//                     CheckDecoding says
template <typename B>
absl::StatusOr<Metrics> ScoreFiles(const B& benchmark, const ScoredFiles& files,
                                   ScoringRules rules = {},
                                   const RecordLimits& limits = {},
                                   UnansweredRecords* unanswered = nullptr,
                                   std::string* remark = nullptr) {
  // The small file first: its mistakes should not take long to be seen.
  typename B::Answers answers = {.rules = benchmark.RulesOfFiles(rules)};
  ETC_ASSIGN_OR_RETURN(answers.predictions,
                       benchmark.ReadPredictions(files.predictions));
  ETC_RETURN_IF_ERROR(CheckDecoding(benchmark, answers.predictions, files));
  ETC_ASSIGN_OR_RETURN(GoldRecords<B> read,
                       ReadGold(benchmark, files.gold, answers.rules, limits));
  answers.gold = std::move(read.gold);
  if (answers.gold.empty() && !read.unanswered.empty()) {
    return NothingToScore(files, read.first_unanswered);
  }
  ETC_RETURN_IF_ERROR(CheckIds(benchmark, answers, read.unanswered, files));
  ETC_RETURN_IF_ERROR(benchmark.CheckFiles(answers, files));
  std::erase_if(answers.predictions, [&](const auto& prediction) {
    return read.unanswered.contains(prediction.first);
  });
  if (unanswered != nullptr) {
    *unanswered = {.count = static_cast<int64_t>(read.unanswered.size()),
                   .first = read.first_unanswered};
  }
  if (remark != nullptr) {
    *remark = benchmark.Remark(answers);
  }
  Scores scores = benchmark.Score(answers);
  if (scores.metrics.empty() && !answers.gold.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no record of ", files.gold,
                                                   " has a prediction in ",
                                                   files.predictions));
  }
  scores.metrics.insert(scores.metrics.end(), scores.diagnostics.begin(),
                        scores.diagnostics.end());
  return std::move(scores.metrics);
}

}  // namespace etc

#endif  // ETC_TASKS_TASK_SCORE_FILES_H_
