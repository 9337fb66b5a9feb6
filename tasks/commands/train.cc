// `realetc train`: trains a model as a configuration says.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/process_run.h"
#include "tasks/metrics.h"
#include "tasks/output/earlier_run.h"
#include "tasks/output/grid_results.h"
#include "tasks/output/results.h"
#include "tasks/runs/grid_run.h"
#include "tasks/runs/task_setup.h"
#include "tasks/train/run_claims.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<std::string> output;
  EarlierRun earlier = EarlierRun::kRefuse;
  bool dry_run = false;
  std::vector<std::string> allow_changes;
  ProgramVersion version;
};

absl::StatusOr<RunConfig> ReadConfig(const TrainArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (arguments.output.has_value()) {
    if (arguments.output->empty()) {
      return absl::InvalidArgumentError(
          "--output should name a directory, but is empty");
    }
    if (!IsUtf8(*arguments.output)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--output ", QuotedName(*arguments.output),
                       " should be UTF-8, but is not"));
    }
    overrides.push_back("output=" +
                        JsonText(nlohmann::json(*arguments.output)));
  }
  return ReadTaskConfig(arguments.config, overrides);
}

// The table of a grid, and where its best setting is.
void PrintGrid(const GridResult& grid, const std::string& output) {
  std::cout << FormatGridTable(grid);
  const std::optional<size_t> best = BestSetting(grid);
  if (best.has_value()) {
    const SettingResult& setting = grid.settings[*best];
    const int64_t seeds = setting.result.num_scored;
    const size_t equal = BestSettings(grid).size();
    std::cout << (seeds > 1 ? absl::StrCat("median and standard deviation of ",
                                           seeds, " seeds; ")
                            : "")
              << (equal > 1
                      ? absl::StrCat(equal, " settings are equally good; ")
                      : "")
              << "best: " << output << "/" << setting.name << "\n";
  }
}

// A line for each seed, and the other scores of all together.
void PrintResult(const TrainResult& result, const std::string& main_metric) {
  for (const RunResult& run : result.runs) {
    std::cout << "seed " << run.seed << ": ";
    if (run.best.empty()) {
      std::cout << run.directory << "/checkpoints/last\n";
    } else {
      const bool made_all = run.finished && run.end_reason.empty();
      std::cout << FormatMainScore(run.best, main_metric) << " after "
                << run.best_step << (made_all ? " of " : " of the first ")
                << Counted(run.steps, "update") << ", " << run.directory
                << "/checkpoints/best\n";
    }
  }
  // One score of one seed has been said.
  if (result.scores.size() == 1 && result.runs.size() == 1) {
    return;
  }
  Metrics medians;
  Metrics deviations;
  for (const ScoreSummary& score : result.scores) {
    medians.emplace_back(score.name, score.median);
    if (score.standard_deviation.has_value()) {
      deviations.emplace_back(score.name, *score.standard_deviation);
    }
  }
  const std::string seeds = Counted(result.num_scored, "seed");
  if (result.runs.size() > 1 && !medians.empty()) {
    std::cout << "median of " << seeds << "\n";
  }
  std::cout << FormatScoreTable(medians, main_metric);
  if (!deviations.empty()) {
    std::cout << "standard deviation of " << seeds << "\n"
              << FormatScoreTable(deviations, main_metric);
  }
}

// True if `path` is a file that a run writes, or in the directory of a seed,
// which it creates anew: OUTPUT/seed-N, or OUTPUT/SETTING/seed-N of a grid.
bool IsOfRun(const std::string& path, const std::string& output) {
  std::error_code error;
  const fs::path below =
      fs::weakly_canonical(path, error)
          .lexically_relative(fs::weakly_canonical(output, error));
  if (below == "summary.json" || below == "grid.json" || below == "lock") {
    return true;
  }
  int depth = 0;
  for (const fs::path& part : below) {
    if (part == ".." || depth > 1) {
      return false;
    }
    if (SeedOf(part.string()).has_value()) {
      return true;
    }
    ++depth;
  }
  return false;
}

// Checks that no input of a new run is where the run writes its own files.
absl::Status CheckInputs(const RunConfig& config) {
  std::vector<std::pair<const char*, std::string>> inputs = {
      {"init", config.init},
      {"tokenizer.vocabulary", config.tokenizer.vocabulary}};
  for (const std::string& pattern : config.data.train) {
    inputs.emplace_back("data.train", pattern);
  }
  for (const std::string& pattern : config.data.dev) {
    inputs.emplace_back("data.dev", pattern);
  }
  for (const auto& [field, path] : inputs) {
    if (!path.empty() && IsOfRun(path, config.output)) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " names ", path, ", which is in ", config.output,
          ", where this run puts its own files: give it another output"));
    }
  }
  return absl::OkStatus();
}

absl::Status Train(const TrainArguments& arguments, const RunConfig& config,
                   const ProcessRun& process) {
  StreamReporter reporter = process.Reporter();
  const absl::StatusOr<GridResult> trained =
      TrainGrid(config, {.earlier = arguments.earlier,
                         .allow_changes = arguments.allow_changes,
                         .context = {.reporter = &reporter,
                                     .stop = StopAtInterrupt(),
                                     .group = process.group()},
                         .program = arguments.version});
  if (absl::IsCancelled(trained.status())) {
    // Before the first update of a run: what earlier ones made stays.
    return StoppedError(
        absl::StrCat("stopped: ", trained.status().message(),
                     " before its first update; what was trained before is "
                     "saved"));
  }
  ETC_RETURN_IF_ERROR(trained.status());
  const GridResult& grid = *trained;
  if (process.is_first()) {
    if (config.grid.empty()) {
      PrintResult(grid.settings.front().result, grid.main_metric);
    } else {
      PrintGrid(grid, config.output);
    }
  }
  if (!grid.finished) {
    return StoppedError(
        "stopped; everything is saved: the same command with --resume goes on");
  }
  return absl::OkStatus();
}

// The data of a run: "6 records", "6 records, about 14 examples", "9 batches".
std::string DescribeData(const DryRun& run) {
  if (run.has_batches) {
    return run.num_examples == 1 ? "1 batch"
                                 : absl::StrCat(run.num_examples, " batches");
  }
  return run.num_examples == run.num_records
             ? Counted(run.num_records, "record")
             : absl::StrCat(Counted(run.num_records, "record"), ", about ",
                            Counted(run.num_examples, "example"));
}

// The lines about a setting that was tried.
std::string DescribeTrial(const TriedSetting& tried) {
  const DryRun& run = tried.run;
  std::string text = absl::StrCat(
      tried.name.empty() ? run.output : tried.name, ": ",
      Counted(run.num_steps, "update"), " on ", DescribeData(run),
      run.num_seeds == 1
          ? ""
          : absl::StrCat(" for each of ", run.num_seeds, " seeds"),
      ", ", Counted(run.num_parameters, "trained parameter"), "\n");
  if (run.examples > 0) {
    absl::StrAppend(&text, "  micro-batch: ", Counted(run.examples, "example"),
                    ", ", Counted(run.tokens, "token"), ", ",
                    FormatSeconds(run.seconds), " forward and backward, loss ",
                    FormatScore(run.loss), "\n");
  }
  const bool differs =
      run.largest_examples != run.examples || run.largest_tokens != run.tokens;
  if (differs) {
    absl::StrAppend(&text, "  largest micro-batch read: ",
                    Counted(run.largest_examples, "example"), ", ",
                    Counted(run.largest_tokens, "token"), ", ",
                    FormatSeconds(run.largest_seconds), "\n");
  }
  if (run.evaluated_examples > 0) {
    absl::StrAppend(
        &text, "  evaluation: ", Counted(run.evaluated_examples, "example"),
        " of ", Counted(run.num_dev_records, "record"), ", ",
        FormatSeconds(run.evaluation_seconds), "; at most ",
        Counted(run.num_evaluations, "evaluation"), "\n");
  }
  absl::StrAppend(&text, "  time: about ", FormatSeconds(run.total_seconds),
                  ", if all batches are like ",
                  differs
                      ? absl::StrCat("the first, ",
                                     FormatSeconds(run.largest_total_seconds),
                                     " if like the largest")
                      : "these",
                  "\n  memory: about ", FormatBytes(run.step_bytes),
                  " for updates on the CPU",
                  run.evaluation_bytes > 0
                      ? absl::StrCat(", ", FormatBytes(run.evaluation_bytes),
                                     " for evaluations")
                      : "",
                  ", and at most ", FormatBytes(run.cache_bytes),
                  " for examples\n", "  disk: at most ",
                  FormatBytes(run.checkpoint_bytes), " for checkpoints\n");
  return text;
}

// Prints what a run would do.
absl::Status TryTraining(const TrainArguments& arguments,
                         const RunConfig& config, const ProcessRun& process) {
  StreamReporter reporter = process.Reporter();
  ETC_ASSIGN_OR_RETURN(
      const std::vector<TriedSetting> tried,
      TryGrid(config, {.earlier = arguments.earlier,
                       .context = {.reporter = &reporter,
                                   .stop = StopAtInterrupt(),
                                   .group = process.group()}}));
  if (process.is_first()) {
    for (const TriedSetting& setting : tried) {
      std::cout << DescribeTrial(setting);
    }
    std::cout << "nothing was written; without --dry-run it is trained\n";
  }
  return absl::OkStatus();
}

absl::Status RunTraining(const TrainArguments& arguments) {
  ETC_ASSIGN_OR_RETURN(const RunConfig config, ReadConfig(arguments));
  const bool goes_on = arguments.earlier == EarlierRun::kResume ||
                       (arguments.earlier == EarlierRun::kResumeOrBegin &&
                        IsBegun(config.output));
  if (!goes_on) {
    ETC_RETURN_IF_ERROR(CheckInputs(config));
  }
  ProcessRun process;
  ETC_RETURN_IF_ERROR(process.Join(config.train.timeout_s));
  return process.End(arguments.dry_run ? TryTraining(arguments, config, process)
                                       : Train(arguments, config, process));
}

// Adds the options that say what becomes of runs that are there already.
void AddOptionsOfEarlierRuns(TrainArguments* arguments, CLI::App* command) {
  const auto add_fate = [&](const char* flag, EarlierRun earlier,
                            const char* description) {
    return command->add_flag_callback(
        flag, [=] { arguments->earlier = earlier; }, description);
  };
  CLI::Option* resume =
      add_fate("--resume", EarlierRun::kResume,
               "Go on from the last checkpoints in the output "
               "directory, with the settings they were made with; an "
               "error where no run was begun");
  CLI::Option* resume_or_begin = add_fate(
      "--resume-or-begin", EarlierRun::kResumeOrBegin,
      "The same, and begin where no run was begun: one command for each start "
      "of a job that a scheduler or launcher restarts");
  command->add_option(
      "--allow-changes", arguments->allow_changes,
      "FIELD...: fields of the configuration that may differ from those that "
      "the run to resume began with, as in data.train or train");
  add_fate("--overwrite", EarlierRun::kOverwrite,
           "Replace the runs of these seeds in the output directory, "
           "which are removed once all is checked; other files there stay")
      ->excludes(resume, resume_or_begin);
  command
      ->add_flag("--dry-run", arguments->dry_run,
                 "Everything but the updates: read the data, make the model, "
                 "try the first and the largest of some micro-batches and an "
                 "evaluation batch, say what a run would take; writes nothing")
      ->excludes(resume, resume_or_begin);
}

}  // namespace

void AddTrainCommand(const ProgramVersion& version, CLI::App* program,
                     Action* action) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->version = version;
  CLI::App* command = program->add_subcommand(
      "train",
      "Train a model as a configuration says: pre-training, fine-tuning, "
      "translation");
  command->footer(
      "Each seed of the configuration is a run of its own in OUTPUT/seed-N,\n"
      "with metrics.jsonl and the checkpoints `last` and `best`; each setting "
      "of\n"
      "a grid has them in OUTPUT/SETTING. A checkpoint is an `init` for every\n"
      "task. Ctrl-C saves and stops, as do SIGTERM, SIGHUP, SIGUSR1 and "
      "SIGUSR2,\n"
      "with exit code 75.\n"
      "\n"
      "Examples:\n"
      "  realetc train tasks/wikihop/configs/demo.json\n"
      "  realetc train tasks/wikihop/configs/base.json \\\n"
      "    --set residual_attention=mean --set train.learning_rate=3e-5 \\\n"
      "    --output runs/mean\n"
      "  realetc train tasks/pretrain/configs/demo.json");
  command->add_option("CONFIG", arguments->config, "Configuration in JSON")
      ->required();
  command
      ->add_option("--set", arguments->overrides,
                   "FIELD=VALUE: change a field of the configuration, as in "
                   "train.epochs=2; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--output", arguments->output,
                      "Directory for everything that is written");
  AddOptionsOfEarlierRuns(arguments.get(), command);
  command->callback([=] {
    if (!arguments->allow_changes.empty() && !Resumes(arguments->earlier)) {
      throw CLI::RequiresError("--allow-changes",
                               "--resume or --resume-or-begin");
    }
    *action = [=] { return RunTraining(*arguments); };
  });
}

}  // namespace etc
