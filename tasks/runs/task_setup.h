#ifndef ETC_TASKS_RUNS_TASK_SETUP_H_
#define ETC_TASKS_RUNS_TASK_SETUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/config/config.h"
#include "tasks/registry.h"
#include "tasks/task/task.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Turns the records of a configuration into examples.
struct TaskSetup {
  const TaskEntry* entry = nullptr;
  // Null for tasks with a vocabulary of their own.
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Task> task;
  // Messages that the user should hear although nothing is wrong.
  std::vector<std::string> warnings;
};

// ReadRunConfig, for the tasks of the registry: an unknown task is
// reported before any other mistake, and last that the model of a setting
// cannot read every example that the task may make, whatever the data are.
//   kInvalidArgument  data.max_long_length or max_global_length is more than
//                     model.max_absolute_position_embeddings, where that is not
//                     0; a task that needs long tokens, and a model without;
//                     data.dev_fraction of a task that holds no records out
absl::StatusOr<RunConfig> ReadTaskConfig(
    const std::string& path, const std::vector<std::string>& overrides);

// Loads the tokenizer that `config.vocabulary` is of, with the options that the
// files beside it say (DescribeTokenizer), and what only those beside the
// weights `init` say (TakeUnstatedBeside).
//   kInvalidArgument  it is empty, lower_case is not what those files say, and
//                     what the loading itself says
//   kUnimplemented    errors of DescribeTokenizer
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(
    const TokenizerConfig& config, const std::string& init = "");

// Loads the tokenizer that the configuration names and makes its task.
//   kInvalidArgument  errors of CheckVocabularySize and the loading itself
absl::StatusOr<TaskSetup> SetUpTask(const RunConfig& config);

// The same for a training, before which the task completes its options from the
// training data (TaskEntry::complete). Errors of OpenWeights and PlanWeights
// come before the data are read. Warns where the vocabulary has other pieces
// than the one beside `config->init`.
absl::StatusOr<TaskSetup> SetUpTraining(RunConfig* config);

}  // namespace etc

#endif  // ETC_TASKS_RUNS_TASK_SETUP_H_
