// `realetc report`: a page about runs, from the files in their directories.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tasks/commands/commands.h"
#include "tasks/commands/output_file.h"
#include "tasks/config/config.h"
#include "tasks/data/data_files.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/registry.h"
#include "tasks/report/comparison.h"
#include "tasks/report/logged_run.h"
#include "tasks/report/report_page.h"
#include "tasks/task/judged_records.h"
#include "tasks/task/task_entry.h"

namespace etc {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string output;
  // Official file with answers, or a pattern; empty: those of the
  // configuration.
  std::string data;
  std::string metric;
  bool overwrite = false;
};

// The task of all groups; empty while nothing says it.
absl::StatusOr<std::string> TaskOfRuns(const std::vector<RunGroup>& groups) {
  const RunGroup* first = nullptr;
  for (const RunGroup& group : groups) {
    if (group.task.empty()) {
      continue;
    }
    if (first != nullptr && first->task != group.task) {
      return absl::InvalidArgumentError(
          absl::StrCat("a report should have runs of one task, but ",
                       first->directory, " is of ", first->task, " and ",
                       group.directory, " of ", group.task));
    }
    first = &group;
  }
  return first == nullptr ? "" : first->task;
}

std::string PredictionsOf(const LoggedRun& run) {
  return run.checkpoint + "/predictions.json";
}

// Returns true if a file of a run's settings has the size that it had then.
bool HasItsSize(const nlohmann::json& file) {
  if (!file.is_object() || !file.contains("path") ||
      !file["path"].is_string() || !file.contains("bytes") ||
      !file["bytes"].is_number_unsigned()) {
    return false;
  }
  const absl::StatusOr<RandomAccessFile> opened =
      RandomAccessFile::Open(file["path"].get<std::string>());
  return opened.ok() && opened->size() == file["bytes"].get<uint64_t>();
}

// The evaluation files of a run's settings, in their order; empty: none, or one
// that is another than then.
std::vector<std::string> EvaluationFiles(const nlohmann::json& settings) {
  if (!settings.is_object() || !settings.contains("data") ||
      !settings["data"].is_object() || !settings["data"].contains("dev")) {
    return {};
  }
  std::vector<std::string> paths;
  for (const nlohmann::json& file : settings["data"]["dev"]) {
    if (!HasItsSize(file)) {
      return {};
    }
    paths.push_back(file["path"].get<std::string>());
  }
  return paths;
}

// Checks that the page replaces nothing that it is made of, and with
// --overwrite alone a file that is there.
absl::Status CheckReportFile(const ReportArguments& arguments,
                             const std::vector<RunGroup>& groups) {
  std::vector<std::string> read;
  if (!arguments.data.empty()) {
    ETC_ASSIGN_OR_RETURN(read, FindDataFiles({arguments.data}));
  }
  for (const RunGroup& group : groups) {
    const std::vector<std::string> data = EvaluationFiles(group.settings);
    read.insert(read.end(), data.begin(), data.end());
    for (const LoggedRun& run : group.runs) {
      // Also those of other checkpoints of the run, and of its logs.
      const std::vector<std::string> files =
          FilesOfCheckpoint(run.directory + "/checkpoints/best");
      read.insert(read.end(), files.begin(), files.end());
    }
  }
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", arguments.output, read));
  return CheckMayReplace(arguments.output, arguments.overwrite);
}

// The predictions of the best checkpoint of `run` beside the gold in `data`,
// one file at least.
absl::StatusOr<JudgedRecords> JudgeRun(const LoggedRun& run,
                                       const TaskEntry& task,
                                       const std::vector<std::string>& data) {
  const std::string path = run.checkpoint + "/run_config.json";
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
  ETC_ASSIGN_OR_RETURN(const ScoringConfig scoring,
                       ReadScoringConfig(json, path, task.name));
  GoldReading reading = {.limits = RecordLimitsOf(scoring.data)};
  reading.more_files.assign(data.begin() + 1, data.end());
  // A checkpoint has its own copy of the tables of data.sentences.
  const std::string tables = run.checkpoint + "/punkt";
  ETC_ASSIGN_OR_RETURN(const bool has_tables, PathExists(tables));
  if (has_tables) {
    reading.sentences = tables;
  }
  return task.judge({.gold = data.front(), .predictions = PredictionsOf(run)},
                    scoring.task_options, run.directory, reading);
}

// Adds the predictions of the middle seed of each group, or a note that says
// why there are none.
//   the error of `judge`  --data is given and serves no group
absl::Status AddPredictions(const ReportArguments& arguments,
                            const TaskEntry& task, Report* report) {
  absl::Status refused;
  for (size_t g = 0; g < report->groups.size(); ++g) {
    const RunGroup& group = report->groups[g];
    const std::optional<size_t> middle = MiddleRun(group, report->metric);
    const auto note = [&](const std::string& reason) {
      report->notes.push_back(
          absl::StrCat("No predictions of ", group.name, ": ", reason));
    };
    if (!middle.has_value() || group.runs[*middle].checkpoint.empty()) {
      note("it has no evaluated checkpoint");
      continue;
    }
    const LoggedRun& run = group.runs[*middle];
    ETC_ASSIGN_OR_RETURN(const bool has_predictions,
                         PathExists(PredictionsOf(run)));
    if (!has_predictions) {
      note(absl::StrCat(PredictionsOf(run), " is not there"));
      continue;
    }
    const std::vector<std::string> data =
        arguments.data.empty() ? EvaluationFiles(group.settings)
                               : std::vector<std::string>{arguments.data};
    if (data.empty()) {
      note(
          "its evaluation data are not in files that are still as they were; "
          "name them by --data");
      continue;
    }
    absl::StatusOr<JudgedRecords> judged = JudgeRun(run, task, data);
    if (!judged.ok()) {
      refused.Update(judged.status());
      note(std::string(judged.status().message()));
      continue;
    }
    if (!report->predictions.empty()) {
      // Whole documents take memory; the page shows those of the first entry.
      for (JudgedRecord& record : judged->records) {
        std::string().swap(record.text);
      }
    }
    report->predictions.push_back(
        {.group = g, .seed = run.seed, .judged = *std::move(judged)});
  }
  return arguments.data.empty() || !report->predictions.empty()
             ? absl::OkStatus()
             : refused;
}

absl::Status WriteReport(const ReportArguments& arguments) {
  Report report;
  ETC_ASSIGN_OR_RETURN(report.groups, ReadRunGroups(arguments.runs));
  ETC_RETURN_IF_ERROR(CheckReportFile(arguments, report.groups));
  ETC_ASSIGN_OR_RETURN(const std::string task_name, TaskOfRuns(report.groups));
  ETC_ASSIGN_OR_RETURN(report.metric,
                       ComparedMetric(report.groups, arguments.metric));
  if (!task_name.empty()) {
    ETC_ASSIGN_OR_RETURN(const TaskEntry* task, FindTask(task_name));
    if (task->judge != nullptr) {
      ETC_RETURN_IF_ERROR(AddPredictions(arguments, *task, &report));
    } else if (!arguments.data.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--data names data of predictions, but ", task_name, " has none"));
    }
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(FileBehindLinks(arguments.output),
                                          ReportPage(report)));
  int64_t runs = 0;
  for (const RunGroup& group : report.groups) {
    runs += static_cast<int64_t>(group.runs.size());
  }
  for (const Verdict& verdict : CompareModes(report.groups, report.metric)) {
    std::cerr << verdict.headline << "\n  " << verdict.detail << "\n";
  }
  std::cerr << "report on " << Counted(runs, "run") << " in "
            << arguments.output << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddReportCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = program->add_subcommand(
      "report", "Write a page about runs: curves, scores, predictions");
  command->footer(
      "Examples:\n"
      "  realetc report runs/off runs/sum --output report.html\n"
      "  realetc report runs/grid --output report.html --overwrite\n"
      "The page needs nothing from elsewhere. Runs may still go on: "
      "doc/reports.md.");
  command
      ->add_option("RUN", arguments->runs,
                   "Output directories of runs or grids of one task, or of "
                   "seeds in them")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "HTML file, in a directory that is there")
      ->required();
  command->add_flag("--overwrite", arguments->overwrite,
                    "Replace the file if it exists");
  command->add_option("--data", arguments->data,
                      "Official file with answers for the predictions, or a "
                      "pattern of the names of several (default: the dev "
                      "files of the configuration)");
  command->add_option("--metric", arguments->metric,
                      "Metric by which runs are compared (default: the task's "
                      "main metric)");
  command->callback(
      [=] { *action = [arguments] { return WriteReport(*arguments); }; });
}

}  // namespace etc
