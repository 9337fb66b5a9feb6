// `realetc score`: the official scores of a prediction file, without a model.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/metrics.h"
#include "tasks/registry.h"
#include "tasks/run_task.h"
#include "tasks/task/task.h"

namespace etc {
namespace {

struct ScoreArguments {
  std::string task;
  std::string gold;
  std::string predictions;
  std::string config;
  // Directories; instead of gold and predictions.
  std::vector<std::string> runs;
  bool as_official = false;
  // Prints all digits, for programs.
  bool json = false;
};

absl::Status Score(const ScoreArguments& arguments) {
  if (!arguments.runs.empty()) {
    ETC_ASSIGN_OR_RETURN(const Metrics metrics,
                         ScoreRuns(arguments.task, arguments.runs));
    std::cout << (arguments.json
                      ? ScoresToJson(metrics) + "\n"
                      : FormatScoreTable(metrics, metrics.back().first));
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(
      const TaskScores scores,
      ScoreTask(arguments.task, arguments.gold, arguments.predictions,
                arguments.as_official ? ScoringRules::kOfficial
                                      : ScoringRules::kDefault,
                arguments.config));
  if (scores.unanswered.count > 0) {
    PrintWarnings({absl::StrCat(
        Counted(scores.unanswered.count, "record"), " without an answer ",
        scores.unanswered.count == 1 ? "is" : "are", " left out of the scores",
        scores.unanswered.count == 1 ? ": " : ", the first: ",
        scores.unanswered.first)});
  }
  std::cout << (arguments.json
                    ? ScoresToJson(scores.metrics) + "\n"
                    : FormatScoreTable(scores.metrics, scores.main_metric));
  return absl::OkStatus();
}

}  // namespace

void AddScoreCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<ScoreArguments>();
  CLI::App* command = program->add_subcommand(
      "score", "Score a prediction file against the gold file");
  std::string tasks = "Tasks:\n";
  for (const TaskEntry& task : Tasks()) {
    tasks += "  " + task.name + ": " + task.description + "\n";
  }
  command->footer(tasks +
                  "\nExample:\n"
                  "  realetc score wikihop dev.json predictions.json\n"
                  "  realetc score glue --overall runs/CoLA runs/MNLI ...");
  command->add_option("TASK", arguments->task, "Name of the task")->required();
  CLI::Option* gold =
      command->add_option("GOLD", arguments->gold,
                          "Official file with answers, or a pattern of the "
                          "names of several");
  CLI::Option* predictions = command->add_option(
      "PREDICTIONS", arguments->predictions,
      "Prediction file in the official format; of squad also the n-best file, "
      "from which the best threshold follows");
  CLI::Option* overall =
      command
          ->add_option("--overall", arguments->runs,
                       "DIRECTORY...: runs or grids on all tasks of GLUE; "
                       "prints their average as the papers have it, without "
                       "GOLD and PREDICTIONS")
          ->excludes(gold);
  command->add_option("--config", arguments->config,
                      "Configuration whose options of the task decide how it "
                      "is scored");
  command->add_flag("--as-official", arguments->as_official,
                    "Score as the official program also where that is of no "
                    "use: nq with one annotator a page, for whom no page has "
                    "an answer then, empty key phrases of openkp, and "
                    "questions of squad without a prediction");
  command->add_flag("--json", arguments->json,
                    "One JSON object with all digits");
  command->callback([=] {
    for (const CLI::Option* needed : {gold, predictions}) {
      if (overall->empty() && needed->empty()) {
        throw CLI::RequiredError(needed->get_name());
      }
    }
    *action = [arguments] { return Score(*arguments); };
  });
}

}  // namespace etc
