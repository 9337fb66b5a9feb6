// `realetc attention`: entropy and divergence of attention over a data set.

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "tasks/analysis/analysis_run.h"
#include "tasks/analysis/comparison.h"
#include "tasks/analysis/comparison_run.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/data/data_files.h"
#include "tasks/train/progress.h"

namespace etc {
namespace {

struct AttentionArguments {
  std::vector<std::string> inputs;
  bool compare = false;
  AttentionAnalysisOptions analysis;
};

absl::Status CompareAll(const AttentionArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const std::vector<AttentionAnalysis> analyses,
                       CompareAttention({.inputs = arguments.inputs,
                                         .each = arguments.analysis}));
  PrintWarnings(ComparisonWarnings(analyses));
  std::cout << arguments.analysis.output << "/comparison.html: "
            << Counted(static_cast<int64_t>(analyses.size()), "model")
            << " side by side\n";
  return absl::OkStatus();
}

absl::Status AnalyseOne(const AttentionArguments& arguments) {
  if (arguments.inputs.size() != 1) {
    return InvalidArgument("one checkpoint should be given, but there are ",
                           arguments.inputs.size(),
                           "; --compare puts several side by side");
  }
  AttentionAnalysisOptions options = arguments.analysis;
  options.checkpoint = arguments.inputs.front();
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

absl::Status Analyse(AttentionArguments arguments) {
  AttentionAnalysisOptions& options = arguments.analysis;
  std::vector<std::string> read = {options.text};
  if (!options.data.empty()) {
    ETC_ASSIGN_OR_RETURN(read, FindDataFiles({options.data}));
  }
  for (const std::string& input : arguments.inputs) {
    const std::vector<std::string> files = FilesOfWeights(input);
    read.insert(read.end(), files.begin(), files.end());
  }
  ETC_RETURN_IF_ERROR(CheckOutputDirectory("--output", options.output, read));
  ETC_RETURN_IF_ERROR(SetThreads(/*threads=*/0, "threads").status());
  StreamReporter reporter = ConsoleReporter();
  options.callbacks = CallbacksOf(&reporter);
  options.progress = [&reporter](int64_t done, int64_t all) {
    reporter.Analysing({.records = done, .num_records = all});
  };
  return arguments.compare ? CompareAll(arguments) : AnalyseOne(arguments);
}

void AddDataOptions(CLI::App* command, AttentionArguments* arguments) {
  AttentionAnalysisOptions* options = &arguments->analysis;
  command
      ->add_option("CHECKPOINT", arguments->inputs,
                   "Directory of a checkpoint, or of a run or a grid, whose "
                   "best one is taken; with --text weights of any origin")
      ->required();
  command->add_flag("--compare", arguments->compare,
                    "Several CHECKPOINTs side by side; without --data and "
                    "--text outputs of earlier analyses");
  command->add_option("--data", options->data,
                      "Official data file of the checkpoint's task");
  CLI::Option* text =
      command->add_option("--text", options->text,
                          "File of plain text instead: each line is a text");
  command
      ->add_flag("--paragraphs", options->paragraphs,
                 "Each text has all lines up to one without text")
      ->needs(text);
  command
      ->add_option("--output", options->output,
                   "Directory of the files that are written")
      ->required();
  command->add_flag("--overwrite", options->overwrite,
                    "Replace the files if they are there");
  command->add_option("--max-examples", options->max_examples,
                      "Examples at most, drawn by the seed (default 0: all)");
  command->add_option("--max-rows", options->max_rows,
                      "Rows of each stream of an example at most, drawn by the "
                      "seed (default 0: all)");
  command->add_option("--seed", options->seed, "Seed of both (default 1)");
}

// Refuses options of an analysis where none is made: files of earlier ones are
// compared as they are.
void CheckComparedFiles(const CLI::App& command,
                        const AttentionArguments& arguments) {
  constexpr std::array kOptionsOfAnalyses = {
      "--max-examples", "--max-rows", "--seed",    "--jsd-distance",
      "--colour-scale", "--device",   "--residual"};
  if (!arguments.compare || !arguments.analysis.data.empty() ||
      !arguments.analysis.text.empty()) {
    return;
  }
  for (const char* option : kOptionsOfAnalyses) {
    if (command.count(option) > 0) {
      throw CLI::RequiresError(option, "--data or --text");
    }
  }
}

}  // namespace

void AddAttentionCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<AttentionArguments>();
  AttentionAnalysisOptions* options = &arguments->analysis;
  auto scale = std::make_shared<std::string>("absolute");
  CLI::App* command = program->add_subcommand(
      "attention",
      "Measure entropy and divergence of attention over a data set");
  command->footer(
      "Example:\n"
      "  realetc attention runs/demo/seed-1/checkpoints/best \\\n"
      "    --data tasks/wikihop/sample/dev.json --output attention\n"
      "  realetc attention --compare runs/off runs/sum \\\n"
      "    --data tasks/wikihop/sample/dev.json --output side_by_side");
  AddDataOptions(command, arguments.get());
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
    CheckComparedFiles(*command, *arguments);
    arguments->analysis.normalised_colours = *scale == "normalised";
    *action = [arguments] { return Analyse(*arguments); };
  });
}

}  // namespace etc
