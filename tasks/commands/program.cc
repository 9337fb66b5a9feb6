#include "tasks/commands/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/interrupt.h"
#include "base/json_reader.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "base/standard_streams.h"
#include "tasks/commands/commands.h"
#include "tasks/commands/console.h"
#include "tasks/distributed/process_group.h"

namespace etc {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;
// A shell's code of a program that SIGPIPE ends.
constexpr int kReaderLeft = 128 + SIGPIPE;

constexpr char kDescription[] =
    "Pre-trains, fine-tunes and evaluates ETC (extended transformer "
    "construction)\n"
    "and BERT with RealFormer's residual attention scores.";

constexpr char kFooter[] =
    "A run from the first step to the official score, in a checkout of "
    "RealETC:\n"
    "  realetc estimate tasks/wikihop/configs/demo.json\n"
    "  realetc train tasks/wikihop/configs/demo.json\n"
    "  realetc predict runs/demo/seed-1/checkpoints/best \\\n"
    "    --data tasks/wikihop/sample/dev.json --output predictions.json\n"
    "  realetc score wikihop tasks/wikihop/sample/dev.json predictions.json\n"
    "\n"
    "Installed configurations and samples are in PREFIX/share/realetc; of the\n"
    "Debian packages:\n"
    "  cd /usr/share/realetc\n"
    "  realetc train tasks/wikihop/configs/demo.json --output ~/runs/demo\n"
    "\n"
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 75 training was stopped "
    "by a\n"
    "signal and has saved: the same command with --resume goes on. "
    "141: the\n"
    "reader of the output has left (| head).\n"
    "\n"
    "`realetc COMMAND --help` explains a command.";

// Returns `code`, after the message, if there is one.
int Fail(int code, const std::string& message) {
  if (!message.empty()) {
    std::cerr << "realetc: " << message << std::endl;
  }
  return code;
}

// The message for a first argument that is neither an option nor a command, or
// empty if it is one.
std::string UnknownCommand(const CLI::App& program, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  std::vector<std::string> names;
  for (const CLI::App* command :
       program.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  if (word.empty() || word.starts_with("-") ||
      std::find(names.begin(), names.end(), word) != names.end()) {
    return "";
  }
  const std::string nearest = NearestName(word, names);
  return absl::StrCat("there is no command \"", word, "\"; ",
                      nearest.empty()
                          ? "see realetc --help"
                          : absl::StrCat("did you mean \"", nearest, "\"?"));
}

// The mistake in the text of a whole number of type T; empty: there is none.
template <typename T>
std::string MistakeInNumber(const std::string& text) {
  T value = 0;
  if (absl::SimpleAtoi(text, &value) && absl::StrCat(value) == text) {
    return "";
  }
  const bool is_number =
      text.find_first_not_of("-0123456789") == std::string::npos;
  return absl::StrCat(
      "should be a whole number",
      is_number ? absl::StrCat(" from ", std::numeric_limits<T>::min(), " to ",
                               std::numeric_limits<T>::max())
                : "",
      ", but is ", text);
}

// Makes all options of `command` and its subcommands refuse whole numbers that
// they have no room for: CLI11 takes others in their place.
void CheckWholeNumbers(CLI::App* command) {
  for (CLI::Option* option : command->get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("INT")) {
      option->check(MistakeInNumber<int64_t>);
    } else if (type.starts_with("UINT")) {
      option->check(MistakeInNumber<uint64_t>);
    }
  }
  for (CLI::App* subcommand :
       command->get_subcommands([](const CLI::App*) { return true; })) {
    CheckWholeNumbers(subcommand);
  }
}

// Shows "..." at those options alone that take several values at once, which
// --set does not.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return option->get_allow_extra_args()
               ? text
               : absl::StrReplaceAll(text, {{" ...", ""}});
  }
};

// The names of the commands that are run: "realetc score translation".
std::string CommandOf(const CLI::App& program) {
  std::string names = "realetc";
  for (std::vector<CLI::App*> commands = program.get_subcommands();
       !commands.empty(); commands = commands.front()->get_subcommands()) {
    absl::StrAppend(&names, " ", commands.front()->get_name());
  }
  return names;
}

// The message about arguments that the command has no place for.
std::string ExtraArgumentsText(const CLI::App& program) {
  const std::vector<std::string> extra = program.remaining(/*recurse=*/true);
  bool needs_set = false;
  for (const CLI::App* command : program.get_subcommands()) {
    const CLI::Option* set = command->get_option_no_throw("--set");
    needs_set = needs_set || (set != nullptr && set->count() > 0 &&
                              absl::StrContains(extra.front(), "="));
  }
  return absl::StrCat(extra.size() > 1
                          ? "The following arguments were not expected: "
                          : "The following argument was not expected: ",
                      absl::StrJoin(extra, " "),
                      needs_set ? " (each FIELD=VALUE needs a --set)" : "");
}

// Ends the program in the place of an abort, after an exception where none may
// be thrown, such as in a destructor that finds no memory. Allocates nothing.
[[noreturn]] void EndAtTerminate() {
  constexpr char kMessage[] =
      "realetc: internal error: an exception that cannot be handled; the "
      "memory may have been too little\n";
  static_cast<void>(!write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1));
  _exit(kFailure);
}

// `command` is the program's first argument.
int Run(const Action& action, const std::string& command) {
  try {
    const absl::Status status = NamingOutOfMemory(
        [&command] { return absl::StrCat("running realetc ", command); },
        action);
    if (status.ok()) {
      return 0;
    }
    return Fail(IsStopped(status) ? kStoppedExitCode : kFailure,
                std::string(status.message()));
  } catch (const std::exception& error) {
    // A broken promise between two parts of the program.
    return Fail(kFailure, absl::StrCat("internal error: ", error.what()));
  }
}

// Returns `code`, or a failure if output could not be written: without a word
// if its reader did not want more.
int End(int code) {
  const absl::Status written = FlushStandardOutput();
  if (written.ok() || code != 0) {
    return code;
  }
  return OutputReaderLeft() ? kReaderLeft
                            : Fail(kFailure, std::string(written.message()));
}

void AddCommands(const ProgramVersion& version, CLI::App* program,
                 Action* action) {
  AddTokenizeCommand(program, action);
  AddTrainCommand(version, program, action);
  AddTranslateCommand(program, action);
  AddEvaluateCommand(program, action);
  AddPredictCommand(program, action);
  AddEmbedCommand(program, action);
  AddScoreCommand(program, action);
  AddReportCommand(program, action);
  AddInspectCommand(program, action);
  AddDocumentCommand(program, action);
  AddAttentionCommand(program, action);
  AddEstimateCommand(program, action);
  AddImportCommand(program, action);
  AddExportCommand(program, action);
  AddAverageCommand(program, action);
  AddVocabularyCommand(program, action);
  AddLaunchCommand(program, action);
  AddMetricsCommand(program, action);
  AddFieldsCommand(program, action);
  AddCompletionCommand(program, action);
}

}  // namespace

int RunProgram(int argc, char** argv, const std::string& commit) {
  OpenStandardDescriptors();
  GuardStandardStreams();
  // A run goes on without those who have read what it prints.
  IgnoreBrokenPipes();
  std::set_terminate(EndAtTerminate);
  EscapeStandardStreams();
  KeepFreedMemory();
  // A file that would grow beyond `ulimit -f` is then a failed write, which has
  // a message, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App program(kDescription, "realetc");
  program.footer(kFooter);
  program.require_subcommand(0, 1);
  program.set_version_flag(
      "--version", [&] { return VersionText(commit); },
      "Versions, SIMD instructions, BLAS library and threads");
  program.formatter(std::make_shared<HelpFormatter>());
  program.get_formatter()->column_width(32);
  const ProgramVersion version = VersionOfProgram(commit);
  Action action;
  AddCommands(version, &program, &action);
  CheckWholeNumbers(&program);

  if (const std::string message = UnknownCommand(program, argc, argv);
      !message.empty()) {
    return Fail(kUsage, message);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return End(program.exit(help));
  } catch (const CLI::ParseError& error) {
    const bool is_extra =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    return Fail(kUsage, absl::StrCat(is_extra ? ExtraArgumentsText(program)
                                              : error.what(),
                                     "; see ", CommandOf(program), " --help"));
  }
  if (!action) {
    std::cout << program.help();
    return End(0);
  }
  return End(Run(action, argv[1]));
}

}  // namespace etc
