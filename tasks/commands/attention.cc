// `realetc attention`: entropy and divergence of attention over a data set.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "tasks/analysis/analysis_run.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/train/progress.h"

namespace etc {
namespace {

absl::Status Analyse(AttentionAnalysisOptions options) {
  std::vector<std::string> read = FilesAt(options.checkpoint);
  read.push_back(options.data.empty() ? options.text : options.data);
  ETC_RETURN_IF_ERROR(CheckOutputDirectory("--output", options.output, read));
  options.callbacks.stop = StopAtInterrupt();
  StreamReporter reporter = ConsoleReporter();
  options.progress = [&reporter](int64_t done, int64_t all) {
    reporter.Analysing({.records = done, .num_records = all});
  };
  ETC_ASSIGN_OR_RETURN(const AttentionAnalysis analysis,
                       AnalyseAttention(options));
  std::cout << options.output
            << "/attention.html: " << Counted(analysis.examples, "example");
  for (const PopulationStatistics& population : analysis.populations) {
    std::cout << ", " << FormatCount(population.rows) << " "
              << (population.name == "all" ? "" : population.name + " ")
              << (population.rows == 1 ? "row" : "rows");
  }
  std::cout << "\n";
  return absl::OkStatus();
}

void AddDataOptions(CLI::App* command, AttentionAnalysisOptions* options) {
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Directory of a checkpoint, or of a run or a grid, whose "
                   "best one is taken; with --text weights of any origin")
      ->required();
  command->add_option("--data", options->data,
                      "Official data file of the checkpoint's task");
  command->add_option("--text", options->text,
                      "File of plain text instead: each line is a text");
  command->add_flag("--paragraphs", options->paragraphs,
                    "Each text has all lines up to one without text");
  command
      ->add_option("--output", options->output,
                   "Directory of the files that are written")
      ->required();
  command->add_flag("--overwrite", options->overwrite,
                    "Replace the files if they are there");
  command->add_option("--max-examples", options->max_examples,
                      "Examples at most, drawn by the seed (default: all)");
  command->add_option("--max-rows", options->max_rows,
                      "Rows of each stream of an example at most, drawn by the "
                      "seed (default: all)");
  command->add_option("--seed", options->seed, "Seed of both (default 1)");
}

}  // namespace

void AddAttentionCommand(CLI::App* program, Action* action) {
  auto options = std::make_shared<AttentionAnalysisOptions>();
  auto scale = std::make_shared<std::string>("absolute");
  options->callbacks.warning = [](const std::string& text) {
    PrintWarnings({text});
  };
  CLI::App* command = program->add_subcommand(
      "attention",
      "Measure entropy and divergence of attention over a data set");
  command->footer(
      "Example:\n"
      "  realetc attention runs/demo/seed-1/checkpoints/best \\\n"
      "    --data tasks/wikihop/sample/dev.json --output attention");
  AddDataOptions(command, options.get());
  command->add_flag("--jsd-distance", options->jsd_distance,
                    "The square root of each divergence");
  command
      ->add_option("--colour-scale", *scale,
                   "absolute (1.5 and 4.5 nats) or normalised (the same shares "
                   "of the logarithm of the visible keys)")
      ->check(CLI::IsMember({"absolute", "normalised"}));
  AddDeviceOption(command, &options->device);
  AddResidualOption(command,
                    "Mode of residual attention (default: as the weights say)",
                    &options->residual_attention);
  command->callback([=] {
    options->normalised_colours = *scale == "normalised";
    *action = [options] { return Analyse(*options); };
  });
}

}  // namespace etc
