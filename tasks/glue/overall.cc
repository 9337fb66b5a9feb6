// The runs of all tasks to their average.

#include <map>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/glue/benchmark.h"
#include "tasks/glue/task.h"

namespace etc {
namespace {

bool Counts(const GlueTask& task) {
  const std::string name = task.name;
  return name != "wnli" && name != "ax";
}

// The metrics whose mean is a number of the table, by its name.
std::map<std::string, std::vector<std::string>> NumbersOf(
    const GlueTask& task) {
  const std::string name = task.name;
  if (name == "mnli") {
    return {{"mnli_matched", {"accuracy_matched"}},
            {"mnli_mismatched", {"accuracy_mismatched"}}};
  }
  switch (task.metrics) {
    case GlueMetrics::kAccuracyAndF1:
      return {{name, {"accuracy", "f1"}}};
    case GlueMetrics::kCorrelations:
      return {{name, {"pearson", "spearman"}}};
    case GlueMetrics::kAccuracy:
    case GlueMetrics::kMatthews:
      break;
  }
  return {{name, {task.main_metric()}}};
}

absl::StatusOr<const GlueTask*> TaskOf(const RunSummary& run) {
  const std::string where = absl::StrCat(run.directory, "/summary.json");
  std::string name;
  JsonObjectReader reader(run.options, where + ": options");
  reader.Required("name", &name);
  ETC_RETURN_IF_ERROR(reader.status());
  ETC_ASSIGN_OR_RETURN(const GlueTask* task, FindGlueTask(name));
  if (!Counts(*task)) {
    return InvalidArgument(
        run.directory, ": the overall score of GLUE leaves out ", task->title);
  }
  return task;
}

absl::StatusOr<double> MeanOf(const RunSummary& run,
                              const std::vector<std::string>& metrics) {
  double sum = 0;
  for (const std::string& metric : metrics) {
    const auto score = absl::c_find_if(
        run.scores, [&](const ScoreSummary& of) { return of.name == metric; });
    if (score == run.scores.end()) {
      return InvalidArgument(run.directory,
                             ": the overall score of GLUE needs ", metric,
                             ", which summary.json does not have");
    }
    sum += score->median;
  }
  return sum / static_cast<double>(metrics.size());
}

}  // namespace

absl::StatusOr<Metrics> GlueOverall(const std::vector<RunSummary>& runs) {
  std::map<const GlueTask*, const RunSummary*> by_task;
  for (const RunSummary& run : runs) {
    ETC_ASSIGN_OR_RETURN(const GlueTask* task, TaskOf(run));
    const auto [earlier, is_new] = by_task.emplace(task, &run);
    if (!is_new) {
      return InvalidArgument("the overall score of GLUE takes one run of ",
                             task->title, ", but ", earlier->second->directory,
                             " and ", run.directory, " are of it");
    }
  }
  Metrics scores;
  std::vector<std::string> missing;
  double sum = 0;
  for (const GlueTask& task : GlueTasks()) {
    const auto run = by_task.find(&task);
    if (run == by_task.end()) {
      if (Counts(task)) {
        missing.emplace_back(task.title);
      }
      continue;
    }
    for (const auto& [name, metrics] : NumbersOf(task)) {
      ETC_ASSIGN_OR_RETURN(const double mean, MeanOf(*run->second, metrics));
      scores.emplace_back(name, mean);
      sum += mean;
    }
  }
  if (!missing.empty()) {
    return InvalidArgument(
        "the overall score of GLUE needs a run of each of its tasks but WNLI; "
        "there is none of ",
        absl::StrJoin(missing, ", "));
  }
  scores.emplace_back("overall", sum / static_cast<double>(scores.size()));
  return scores;
}

}  // namespace etc
