// `realetc average`: the mean of the last checkpoints of a run.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/counted.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/runs/average_checkpoints.h"

namespace etc {
namespace {

struct AverageArguments {
  AverageOptions options;
  std::optional<std::string> output;
  bool overwrite = false;
};

absl::Status Average(const AverageArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const CheckpointsToAverage checkpoints,
                       FindCheckpointsToAverage(arguments.options));
  const std::string output = arguments.output.value_or(absl::StrCat(
      checkpoints.seed_directory, "/averaged-", std::ssize(checkpoints.steps)));
  ETC_RETURN_IF_ERROR(CheckOutputDirectory("--output", output, {}));
  ETC_RETURN_IF_ERROR(
      AverageCheckpoints(checkpoints, output, arguments.overwrite));
  std::cout << "averaged: "
            << Counted(std::ssize(checkpoints.steps), "checkpoint")
            << ", after updates " << absl::StrJoin(checkpoints.steps, ", ")
            << "\nwritten: " << output << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddAverageCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<AverageArguments>();
  CLI::App* command = program->add_subcommand(
      "average", "Average the weights of a run's last checkpoints");
  command->footer(
      "The arithmetic mean of every tensor, as the papers on translation\n"
      "decode with. A run keeps as many checkpoints as its train.keep_last\n"
      "says; an older one that it keeps for its score does not count. The\n"
      "average is a checkpoint for evaluate, predict and the others.\n"
      "\n"
      "Example:\n"
      "  realetc average runs/translation/seed-1 --last 10");
  command
      ->add_option("DIR", arguments->options.directory,
                   "Directory of checkpoints, of a seed, or of a run with one "
                   "seed")
      ->required();
  command
      ->add_option("--last", arguments->options.last,
                   "Checkpoints to average, those with the most updates (10, "
                   "or the 2 or more that there are)")
      ->check(AtLeastOne());
  command->add_option("--up-to", arguments->options.up_to_step,
                      "Leave out checkpoints after more updates than this");
  command->add_option("--output", arguments->output,
                      "Directory to be written; averaged-N, of N checkpoints, "
                      "beside `checkpoints` otherwise");
  command->add_flag("--overwrite", arguments->overwrite,
                    "Replace an earlier average, once the new one is whole");
  command->callback(
      [=] { *action = [arguments] { return Average(*arguments); }; });
}

}  // namespace etc
