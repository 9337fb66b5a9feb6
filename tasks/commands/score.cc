// `realetc score`: the official scores of a prediction file, without a model.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/data/record_check.h"
#include "tasks/metrics.h"
#include "tasks/registry.h"
#include "tasks/run_task.h"
#include "tasks/task/task.h"
#include "tasks/translation/bleu.h"

namespace etc {
namespace {

struct ScoreArguments {
  std::string task;
  std::string gold;
  std::string predictions;
  std::string config;
  std::vector<std::string> overrides;
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
                arguments.config, arguments.overrides));
  if (scores.unanswered.count > 0) {
    PrintWarnings(
        {absl::StrCat(UnansweredText(scores.unanswered.count),
                      scores.unanswered.count == 1 ? ": " : ", the first: ",
                      scores.unanswered.first)});
  }
  PrintWarnings({scores.remark});
  std::cout << (arguments.json
                    ? ScoresToJson(scores.metrics) + "\n"
                    : FormatScoreTable(scores.metrics, scores.main_metric));
  return absl::OkStatus();
}

struct TranslationArguments {
  std::string hypotheses;
  std::string references;
  // Tokens at white space, without smoothing.
  bool tokenized = false;
  BleuOptions options;
  bool json = false;
};

absl::Status ScoreTranslations(const TranslationArguments& arguments) {
  BleuOptions options = arguments.tokenized
                            ? TokenizedBleu(arguments.options.split_compounds)
                            : arguments.options;
  options.lower_case = arguments.options.lower_case;
  ETC_ASSIGN_OR_RETURN(const BleuScore score,
                       ScoreTranslationFiles(arguments.hypotheses,
                                             arguments.references, options));
  const Metrics metrics = BleuMetrics(score);
  const std::string signature = BleuSignature(options);
  std::cout << (arguments.json
                    ? ScoresToJson(metrics, signature) + "\n"
                    : FormatScoreTable(metrics, metrics.front().first,
                                       signature));
  return absl::OkStatus();
}

// `realetc score translation`, which compares two texts.
void AddTranslation(CLI::App* score, Action* action) {
  auto arguments = std::make_shared<TranslationArguments>();
  CLI::App* command = score->add_subcommand(
      "translation", "BLEU of translations, as sacrebleu computes it");
  command->footer(
      "Files have a sentence in each line, as text: sacrebleu's tokenizer 13a\n"
      "and smoothing \"exp\". The signature says so, as sacrebleu's does.\n"
      "\n"
      "Example:\n"
      "  realetc score translation translations.de test_2016_flickr.de");
  command
      ->add_option("HYPOTHESES", arguments->hypotheses, "File of translations")
      ->required();
  command
      ->add_option("REFERENCES", arguments->references,
                   "File with the reference of each line")
      ->required();
  CLI::Option* tokenized =
      command->add_flag("--tokenized", arguments->tokenized,
                        "Text is tokenised already: words at white space, no "
                        "smoothing, as multi-bleu.perl has it");
  command
      ->add_flag("--split-compounds", arguments->options.split_compounds,
                 "With --tokenized: split words at hyphens, as papers on "
                 "English-German do; not for text whose tokenizer did")
      ->needs(tokenized);
  command->add_flag("--lower-case", arguments->options.lower_case,
                    "Do not tell upper from lower case");
  command->add_flag("--json", arguments->json,
                    "One JSON object with all digits");
  command->callback(
      [=] { *action = [arguments] { return ScoreTranslations(*arguments); }; });
}

// Adds the options that decide how the files of a task are scored; `overall`
// reads no such files.
void AddTaskOptions(CLI::App* command, CLI::Option* overall,
                    ScoreArguments* arguments) {
  command
      ->add_option("--config", arguments->config,
                   "Configuration whose options of the task, and "
                   "data.sentences, decide how it is scored")
      ->excludes(overall);
  command
      ->add_option("--set", arguments->overrides,
                   "FIELD=VALUE: an option of the task, with or without a "
                   "configuration: tokens.tags=strict_iob2; may be repeated")
      ->allow_extra_args(false)
      ->excludes(overall);
  command
      ->add_flag("--as-official", arguments->as_official,
                 "Score as the official program also where that is of no "
                 "use: nq with one annotator a page, for whom no page has "
                 "an answer then, empty key phrases of openkp, "
                 "questions of squad without a prediction, and predictions of "
                 "hotpotqa and wikihop for other questions")
      ->excludes(overall);
}

// Refuses options of tasks before `realetc score translation`, which has its
// own.
void CheckBeforeSubcommand(const CLI::App& score) {
  const CLI::App& subcommand = *score.get_subcommands().front();
  for (const CLI::Option* option : score.get_options()) {
    if (!option->empty()) {
      throw CLI::ExcludesError(option->get_name(), subcommand.get_name());
    }
  }
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
                  "  realetc score glue --overall runs/CoLA runs/MNLI ...\n"
                  "  realetc score translation translations.de test.de");
  CLI::Option* task =
      command->add_option("TASK", arguments->task, "Name of the task");
  CLI::Option* gold =
      command->add_option("GOLD", arguments->gold,
                          "Official file with answers, or a pattern of the "
                          "names of several");
  CLI::Option* predictions = command->add_option(
      "PREDICTIONS", arguments->predictions,
      "Prediction file in the official format, plain or packed by gzip, or, "
      "but for glue, lines of `realetc predict --output -`; of squad also the "
      "n-best file, from which, as from lines, the best threshold follows");
  CLI::Option* overall =
      command
          ->add_option("--overall", arguments->runs,
                       "DIRECTORY...: runs or grids on all tasks of GLUE; "
                       "prints their average as the papers have it, without "
                       "GOLD and PREDICTIONS")
          ->excludes(gold);
  AddTaskOptions(command, overall, arguments.get());
  command->add_flag("--json", arguments->json,
                    "One JSON object with all digits");
  AddTranslation(command, action);
  command->callback([=] {
    if (!command->get_subcommands().empty()) {
      CheckBeforeSubcommand(*command);
      return;
    }
    if (task->empty()) {
      throw CLI::RequiredError(task->get_name());
    }
    for (const CLI::Option* needed : {gold, predictions}) {
      if (overall->empty() && needed->empty()) {
        throw CLI::RequiredError(needed->get_name());
      }
    }
    *action = [arguments] { return Score(*arguments); };
  });
}

}  // namespace etc
