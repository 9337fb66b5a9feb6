#ifndef ETC_TASKS_COMMANDS_COMMANDS_H_
#define ETC_TASKS_COMMANDS_COMMANDS_H_

#include <array>
#include <functional>

#include "absl/status/status.h"
#include "tasks/output/program_version.h"

namespace CLI {
class App;
}  // namespace CLI

namespace etc {

// The action of the subcommand that the user chose, once all arguments are
// read. Results go to standard output, all else to standard error; a failure is
// returned.
using Action = std::function<absl::Status()>;

// The commands that `launch` runs: their processes share the work; of any other
// each would do all of it.
inline constexpr std::array kLaunchedCommands = {"train", "evaluate",
                                                 "predict"};

// Each adds one subcommand with its options and help to `program`. Parsing it
// sets `*action`; both must outlive the parsing.
void AddTokenizeCommand(CLI::App* program, Action* action);
// Runs note `version`.
void AddTrainCommand(const ProgramVersion& version, CLI::App* program,
                     Action* action);
void AddTranslateCommand(CLI::App* program, Action* action);
void AddEvaluateCommand(CLI::App* program, Action* action);
void AddPredictCommand(CLI::App* program, Action* action);
void AddEmbedCommand(CLI::App* program, Action* action);
void AddScoreCommand(CLI::App* program, Action* action);
void AddReportCommand(CLI::App* program, Action* action);
void AddInspectCommand(CLI::App* program, Action* action);
void AddDocumentCommand(CLI::App* program, Action* action);
void AddAttentionCommand(CLI::App* program, Action* action);
void AddEstimateCommand(CLI::App* program, Action* action);
void AddImportCommand(CLI::App* program, Action* action);
void AddLaunchCommand(CLI::App* program, Action* action);
void AddExportCommand(CLI::App* program, Action* action);
void AddFieldsCommand(CLI::App* program, Action* action);
void AddMetricsCommand(CLI::App* program, Action* action);
void AddAverageCommand(CLI::App* program, Action* action);
void AddVocabularyCommand(CLI::App* program, Action* action);
void AddCompletionCommand(CLI::App* program, Action* action);

}  // namespace etc

#endif  // ETC_TASKS_COMMANDS_COMMANDS_H_
