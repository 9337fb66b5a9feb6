// `realetc metrics`: the metrics of runs as CSV.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/report/logged_run.h"
#include "tasks/report/metrics_csv.h"

namespace etc {
namespace {

absl::Status PrintMetrics(const std::vector<std::string>& runs) {
  ETC_ASSIGN_OR_RETURN(const std::vector<RunGroup> groups, ReadRunGroups(runs));
  std::cout << MetricsAsCsv(groups);
  return absl::OkStatus();
}

}  // namespace

void AddMetricsCommand(CLI::App* program, Action* action) {
  auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program->add_subcommand(
      "metrics", "Print the metrics of runs as CSV, a row for each update");
  command->footer(
      "Example:\n"
      "  realetc metrics runs/off runs/sum > metrics.csv\n"
      "Columns: run, seed, step, the numbers of updates, those of\n"
      "train.watch_scores as scores.l2l.largest.0 (of the first layer), and\n"
      "the scores of evaluations as evaluation.NAME. Runs may still go on.");
  command
      ->add_option("RUN", *runs,
                   "Output directories of runs or grids, or of seeds in them")
      ->required();
  command->callback([=] { *action = [runs] { return PrintMetrics(*runs); }; });
}

}  // namespace etc
