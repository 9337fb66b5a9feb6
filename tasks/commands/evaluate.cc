// `realetc evaluate` and `realetc predict`: run a checkpoint over a data set.

#include "tasks/train/evaluate.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/standard_streams.h"
#include "base/status_macros.h"
#include "etc/residual_choice.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/commands/model_options.h"
#include "tasks/commands/output_file.h"
#include "tasks/commands/predict_lines.h"
#include "tasks/commands/process_run.h"
#include "tasks/data/record_gate.h"
#include "tasks/inference/predictor.h"
#include "tasks/metrics.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/task/task.h"
#include "tasks/train/run_plan.h"
#include "tasks/translation/bleu.h"
#include "tasks/translation/translator.h"

namespace etc {
namespace {

struct EvaluateArguments {
  CheckpointRunOptions run;
  // For evaluate: all digits, for programs.
  bool json = false;
  // For evaluate: BLEU too.
  bool bleu = false;
  // For predict: file for predictions.
  std::string output;
};

// Seconds that a rank waits for the others: no configuration says it here.
constexpr double kTimeoutSeconds = 600;

// Runs with progress and warnings on standard error.
absl::StatusOr<CheckpointRun> Run(CheckpointRunOptions options,
                                  const ProcessRun& process) {
  StreamReporter reporter = process.Reporter();
  options.context = {.reporter = &reporter,
                     .stop = StopAtInterrupt(),
                     .group = process.group()};
  return RunCheckpoint(options);
}

// Joins the other processes and runs the checkpoint; the first one hands the
// result on to `use`.
absl::Status RunWithOthers(
    const CheckpointRunOptions& options,
    const std::function<absl::Status(CheckpointRun&)>& use) {
  ProcessRun process;
  ETC_RETURN_IF_ERROR(process.Join(kTimeoutSeconds));
  absl::StatusOr<CheckpointRun> run = Run(options, process);
  ETC_RETURN_IF_ERROR(process.End(run.status()));
  return process.is_first() ? use(*run) : absl::OkStatus();
}

// Says how many records the model did not read to the end, and how many have an
// answer that it cannot find, if there are any.
void PrintLosses(const CheckpointRun& run) {
  const SkippedRecords& skipped = run.evaluation.skipped;
  for (const std::string& text : LossTexts(skipped)) {
    std::cerr << text << std::endl;
  }
}

// `signature` is BLEU's; empty where BLEU is not among the scores.
void PrintScores(const CheckpointRun& run, bool json,
                 const std::string& signature) {
  std::cerr << absl::StreamFormat(
      "%s in %.1f s, residual attention %s\n",
      Counted(run.evaluation.num_examples, "example"), run.evaluation.seconds,
      run.checkpoint.config.encoder_decoder.has_value()
          ? ResidualText(*run.checkpoint.config.encoder_decoder)
          : ResidualText(run.checkpoint.config.model));
  const Metrics& metrics = run.evaluation.metrics;
  std::cout << (json
                    ? ScoresToJson(metrics, signature) + "\n"
                    : FormatScoreTable(
                          metrics,
                          MainMetricOf(run.checkpoint.config.train,
                                       run.checkpoint.setup.task->main_metric())
                              .name,
                          signature));
  PrintWarnings({run.evaluation.predictions->Remark()});
  PrintLosses(run);
}

// Adds BLEU of translations of the data to the scores, and returns its
// signature.
absl::StatusOr<std::string> AddBleu(const EvaluateArguments& arguments,
                                    CheckpointRun* run) {
  StreamReporter reporter = ConsoleReporter();
  const RunContext context = {.reporter = &reporter, .stop = StopAtInterrupt()};
  // Opened without the reporter: the evaluation has said and warned the same.
  ETC_ASSIGN_OR_RETURN(
      Translator translator,
      Translator::Open(run->checkpoint.directory,
                       {.batch_size = arguments.run.batch_size.value_or(
                            TranslatorOptions().batch_size),
                        .residual_attention = arguments.run.residual_attention,
                        .device = arguments.run.device,
                        .threads = arguments.run.threads},
                       {.stop = context.stop}));
  const DataRequest data = {
      .patterns = run->checkpoint.config.data.dev,
      .use = RecordUse::kEvaluation,
      .limits = RecordLimitsOf(run->checkpoint.config.data)};
  ETC_ASSIGN_OR_RETURN(const CheckpointBleu bleu,
                       TranslateAndScore(*run->checkpoint.setup.task, data,
                                         context, &translator));
  run->evaluation.metrics.emplace_back("bleu", bleu.score.score);
  return BleuSignature(bleu.options);
}

absl::Status RunEvaluate(const EvaluateArguments& arguments) {
  CheckpointRunOptions options = arguments.run;
  options.needs_scores = true;
  if (arguments.bleu) {
    options.task = kTranslationTask;
    options.task_option = "--bleu";
  }
  return RunWithOthers(options, [&](CheckpointRun& run) {
    absl::StatusOr<std::string> signature = "";
    if (arguments.bleu) {
      signature = AddBleu(arguments, &run);
    }
    // The other scores are known where BLEU has an error.
    PrintScores(run, arguments.json, signature.value_or(""));
    return signature.status();
  });
}

// Writes the prediction file, and the files beside it, which standard output
// has no place for.
absl::Status WritePredictions(const CheckpointRun& run,
                              const std::string& output) {
  const TaskPredictions& predictions = *run.evaluation.predictions;
  std::string written = output;
  if (output == kStandardStream) {
    std::cout << predictions.FileContents();
    if (const absl::Status flushed = FlushStandardOutput(); !flushed.ok()) {
      // The end of the program has an exit code for a reader that has left.
      return OutputReaderLeft() ? absl::OkStatus() : flushed;
    }
    written = "standard output";
  } else {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(FileBehindLinks(output),
                                            predictions.FileContents()));
    for (const PredictionFile& file : predictions.MoreFiles()) {
      const std::string path = file.PathBeside(output);
      ETC_RETURN_IF_ERROR(
          WriteFileAtomically(FileBehindLinks(path), file.contents));
      absl::StrAppend(&written, ", ", path);
    }
  }
  std::cerr << absl::StreamFormat(
      "%s in %.1f s, predictions in %s\n",
      Counted(run.evaluation.num_examples, "example"), run.evaluation.seconds,
      written);
  PrintLosses(run);
  return absl::OkStatus();
}

// Checks that the prediction file, and the files beside it, can be written and
// replace no file that is read.
absl::Status CheckOutput(const std::string& output,
                         const CheckpointRunFiles& files) {
  if (output == kStandardStream) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(CheckOutputFile("--output", output, files.read));
  for (const std::string& prefix : files.prefixes) {
    ETC_RETURN_IF_ERROR(CheckOutputFile(
        "--output", PredictionFile{.prefix = prefix}.PathBeside(output),
        files.read));
  }
  return absl::OkStatus();
}

absl::StatusOr<Predictor> OpenPredictor(const CheckpointRunOptions& options) {
  return Predictor::Open(
      options.checkpoint,
      {.overrides = options.overrides,
       .residual_attention = options.residual_attention,
       .device = options.device,
       .batch_size = options.batch_size,
       .threads = options.threads,
       .callbacks = {
           .message =
               [](const std::string& line) { std::cerr << line << std::endl; },
           .warning = [](const std::string& line) { PrintWarnings({line}); }}});
}

// Answers the records on standard input by lines on standard output.
absl::Status RunPredictLines(const EvaluateArguments& arguments) {
  ProcessRun process;
  ETC_RETURN_IF_ERROR(process.Join(kTimeoutSeconds));
  if (process.group() != nullptr) {
    return process.End(absl::InvalidArgumentError(
        "--data - should be read by one process, but there are several"));
  }
  const std::atomic<bool>* const stop = StopAtInterrupt();
  ETC_ASSIGN_OR_RETURN(const Predictor predictor, OpenPredictor(arguments.run));
  return PredictLines(predictor, stop);
}

absl::Status RunPredict(const EvaluateArguments& arguments) {
  const bool reads_stream =
      std::count(arguments.run.data.begin(), arguments.run.data.end(),
                 kStandardStream) > 0;
  if (reads_stream && arguments.run.data.size() == 1 &&
      arguments.output == kStandardStream) {
    return RunPredictLines(arguments);
  }
  if (reads_stream) {
    return absl::InvalidArgumentError(
        "--data - should be given alone and with --output -: records are read "
        "from standard input, a JSON object a line, and predictions go to "
        "standard output");
  }
  if (arguments.output.empty()) {
    return absl::InvalidArgumentError(
        "--output should name a file, but is empty");
  }
  CheckpointRunOptions options = arguments.run;
  options.predicts = true;
  options.check = [&](const CheckpointRunFiles& files) {
    return CheckOutput(arguments.output, files);
  };
  const absl::Status status =
      RunWithOthers(options, [&](const CheckpointRun& run) {
        return WritePredictions(run, arguments.output);
      });
  return absl::IsCancelled(status)
             ? absl::CancelledError(
                   "the prediction was stopped, and nothing is written; with "
                   "--data - --output - each line is answered at once")
             : status;
}

// The options that both have.
void AddRunOptions(CLI::App* command, CheckpointRunOptions* options) {
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Checkpoint directory that training wrote, or the "
                   "output directory of a run or a grid, or that of a seed in "
                   "it: their best checkpoint is taken")
      ->required();
  command
      ->add_option("--set", options->overrides,
                   "FIELD=VALUE: change an option of the task that says how "
                   "files are read (classify.delimiter=;) or answers decoded "
                   "(classify.threshold=0.3), data.max_long_length, "
                   "data.max_global_length, data.max_record_megabytes or "
                   "data.on_bad_record; may be repeated")
      ->allow_extra_args(false);
  AddResidualOption(command,
                    "Residual attention scores (default: as in training)",
                    &options->residual_attention);
  AddDeviceOption(command, &options->device);
  command
      ->add_option("--threads", options->threads,
                   "CPU threads (default: as in training)")
      ->check(AtLeastOne());
  command
      ->add_option("--batch-size", options->batch_size,
                   "Examples per batch (default: as in training)")
      ->check(AtLeastOne());
}

}  // namespace

void AddEvaluateCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command = program->add_subcommand(
      "evaluate", "Print a checkpoint's scores on a data set");
  command->footer(
      "Examples:\n"
      "  realetc evaluate runs/demo\n"
      "  realetc evaluate runs/demo/seed-1/checkpoints/best \\\n"
      "    --data dev.json --residual off");
  AddRunOptions(command, &arguments->run);
  command->add_option("--data", arguments->run.data,
                      "Official files with answers, or patterns of their names "
                      "(default: the dev files of its configuration); of the "
                      "training data of a run that held records out of them, "
                      "only these are evaluated");
  command->add_flag("--json", arguments->json,
                    "One JSON object with all digits");
  command->add_flag("--bleu", arguments->bleu,
                    "Translation: translate the data, too, and print BLEU as "
                    "sacrebleu computes it; of a dictionary, whose text is "
                    "tokenised, as multi-bleu.perl does");
  command->callback(
      [=] { *action = [arguments] { return RunEvaluate(*arguments); }; });
}

void AddPredictCommand(CLI::App* program, Action* action) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command = program->add_subcommand(
      "predict", "Write a checkpoint's predictions in the official format");
  command->footer(
      "Example:\n"
      "  realetc predict runs/demo/seed-1/checkpoints/best \\\n"
      "    --data dev.json --output predictions.json\n"
      "With --data - --output - it answers each line of standard input, a "
      "record as JSON,\n"
      "by a line on standard output, until the input ends: doc/predicting.md.");
  AddRunOptions(command, &arguments->run);
  command
      ->add_option("--data", arguments->run.data,
                   "Official files, or patterns of their names; answers in "
                   "them are not looked at, and ids occur once in all of them; "
                   "- for standard input")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "File for predictions, none of those that are read, in a "
                   "directory that is there; - for standard output, without "
                   "the files that squad writes beside it")
      ->required();
  command->callback(
      [=] { *action = [arguments] { return RunPredict(*arguments); }; });
}

}  // namespace etc
