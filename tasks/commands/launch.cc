// `realetc launch`: a command as several processes on this machine.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tasks/commands/commands.h"
#include "tasks/distributed/launcher.h"

namespace etc {
namespace {

// COMMAND is no positional of CLI11 (see below), but stands in the usage line.
class LaunchFormatter : public CLI::Formatter {
 public:
  explicit LaunchFormatter(const CLI::Formatter& other)
      : CLI::Formatter(other) {}
  std::string make_usage(const CLI::App*, std::string name) const override {
    return "Usage: " + name + " --processes N [OPTIONS] COMMAND...\n";
  }
};

// The words from COMMAND on.
std::vector<std::string> CommandWords(const CLI::App& command) {
  std::vector<std::string> words = command.remaining();
  if (words.empty()) {
    throw CLI::RequiredError("COMMAND");
  }
  // Not yet COMMAND: an option that launch has not.
  if (words.front().starts_with("-")) {
    throw CLI::ValidationError(words.front(), "launch has no such option");
  }
  if (!absl::c_linear_search(kLaunchedCommands, words.front())) {
    throw CLI::ValidationError(
        "COMMAND", absl::StrCat("should be one of ",
                                absl::StrJoin(kLaunchedCommands, ", "),
                                ", whose processes share the work, but is ",
                                words.front()));
  }
  return words;
}

}  // namespace

void AddLaunchCommand(CLI::App* program, Action* action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = program->add_subcommand(
      "launch", "Run a command as several processes on this machine");
  command->footer(
      "COMMAND is train, evaluate or predict, with all its options.\n"
      "Its processes share the work and read no input. `[rank]` stands before "
      "each line\n"
      "they print, but for the JSON of a command with --json, and what "
      "--output - writes.\n"
      "Signals (Ctrl-C) are passed on to all; when one fails, all are ended. "
      "Each has\n"
      "its share of the cores, unless OMP_NUM_THREADS says how many threads it "
      "has.\n"
      "The exit code is 75 where training was stopped by a signal, and saved: "
      "go on\n"
      "with --resume; also where the signal ended a process that was starting, "
      "or came\n"
      "twice.\n"
      "\n"
      "Example:\n"
      "  realetc launch --processes 2 \\\n"
      "    train tasks/wikihop/configs/demo.json \\\n"
      "    --set train.batch_size=8 --set train.micro_batch_size=4");
  if (const auto* formatter =
          dynamic_cast<const CLI::Formatter*>(program->get_formatter().get());
      formatter != nullptr) {
    command->formatter(std::make_shared<LaunchFormatter>(*formatter));
  }
  command->add_option("--processes", options->processes, "How many")
      ->required()
      ->check(CLI::Range(int64_t{1}, kMostLaunchedProcesses));
  command
      ->add_option("--grace-seconds", options->watch.grace_seconds,
                   "How long the others may take to save and to end after one "
                   "has failed, before they get SIGTERM, and then SIGKILL")
      ->capture_default_str();
  // All from the first word on that is no option, untouched. In a positional of
  // several words, CLI11 would make two of "[a,b]".
  command->prefix_command();
  command->callback([=] {
    options->command = CommandWords(*command);
    options->watch.plain_output =
        absl::c_any_of(options->command, [](absl::string_view word) {
          return word == "--json" || word == "-" || word == "--output=-";
        });
    *action = [options] { return Launch(*options); };
  });
}

}  // namespace etc
