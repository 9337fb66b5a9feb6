#ifndef ETC_TASKS_REGISTRY_H_
#define ETC_TASKS_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tasks/task.h"
#include "tasks/text/tokenizer.h"
#include "tasks/train/config.h"

namespace etc {

// Whether the official scoring is kept where it is of no use: Natural Questions
// with one annotator, empty key phrases of OpenKP (README.md of the tasks). For
// other tasks both are the same.
enum class ScoringRules { kDefault, kOfficial };

// One benchmark that this program knows.
struct TaskEntry {
  // As in the field "task" of a configuration.
  std::string name;
  // One line for people.
  std::string description;
  // Task::main_metric().
  std::string main_metric;
  // The task as the configuration has it.
  //   kInvalidArgument  a mistake in the object of the task's name
  std::function<absl::StatusOr<std::unique_ptr<Task>>(
      const FinetuneConfig& config, std::shared_ptr<const Tokenizer> tokenizer)>
      make;
  // Whether `data.sentences` decides anything.
  bool splits_sentences = false;
  // Its layers around the encoder alone. They need no tokenizer, and so what
  // they cost can be said before there is a vocabulary.
  //   kInvalidArgument  as `make`, but for mistakes in the vocabulary
  std::function<absl::StatusOr<std::shared_ptr<TaskHead>>(
      const FinetuneConfig& config)>
      make_head;
  // The official scores of a prediction file, both given by path.
  std::function<absl::StatusOr<Metrics>(const std::string& gold,
                                        const std::string& predictions,
                                        ScoringRules rules)>
      score;
};

// All of them, in the order in which they are shown.
const std::vector<TaskEntry>& Tasks();

// kNotFound, with the nearest name, if there is no such task. The result lives
// as long as the program.
absl::StatusOr<const TaskEntry*> FindTask(const std::string& name);

}  // namespace etc

#endif  // ETC_TASKS_REGISTRY_H_
