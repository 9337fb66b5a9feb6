#ifndef ETC_TASKS_TASK_TASK_ENTRY_H_
#define ETC_TASKS_TASK_TASK_ENTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"
#include "tasks/config/field_list.h"
#include "tasks/data/record_scanner.h"
#include "tasks/metrics.h"
#include "tasks/output/results.h"
#include "tasks/task/judged_records.h"
#include "tasks/task/task.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Reading of gold files, as the object "data" of a configuration says.
struct GoldReading {
  RecordLimits limits = {};
  // data.sentences, for tasks whose gold depends on them.
  std::string sentences = std::string(kIcuSentences);
  // For `judge`: the files of data.dev after the first, which is
  // ScoredFiles::gold, in their order.
  std::vector<std::string> more_files = {};
};

// One benchmark that this program knows, or pre-training. All but `make` can be
// used without a tokenizer.
struct TaskEntry {
  // As in the field "task" of a configuration.
  std::string name;
  // One line for people.
  std::string description;
  // The fields of the object of its name.
  std::vector<FieldDescription> fields = {};
  // Fields of the object "model" where it is not EtcConfig's.
  std::vector<FieldDescription> model_fields = {};
  // Names of the options that say how files are read: "classify.delimiter".
  std::vector<std::string> reading_options = {};
  // Names of those that say how answers are decoded: "classify.threshold".
  std::vector<std::string> decoding_options = {};
  // The task as the configuration has it.
  //   kInvalidArgument  a mistake in the object of the task's name
  std::function<absl::StatusOr<std::unique_ptr<Task>>(
      const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer)>
      make;
  // Adds to the object of the task's name what the task takes from the training
  // data where the configuration does not say it, such as the names of classes:
  // in `task_options`, and in `json`, which checkpoints keep. Null: nothing.
  //   kInvalidArgument  a mistake in that object or in the data
  std::function<absl::Status(RunConfig* config)> complete = nullptr;
  // True if `data.sentences` decides anything.
  bool splits_sentences = false;
  // True if data.dev_fraction can hold out records for evaluations.
  bool holds_out_records = false;
  // True if the task has a model and a vocabulary of its own (ModelTask):
  // `make` gets no tokenizer, and there is no make_head.
  bool has_own_model = false;
  // True if a model without long tokens (BERT) can read the task's examples.
  bool serves_bert = false;
  // Its layers around the encoder alone, so that what they cost can be said
  // before there is a vocabulary.
  //   kInvalidArgument  as `make`, but for mistakes in the vocabulary
  std::function<absl::StatusOr<std::shared_ptr<TaskHead>>(
      const RunConfig& config)>
      make_head;
  // The official scores of a prediction file; null if there are none. `options`
  // is the object of the task's name in a configuration, or null, and `source`,
  // that configuration, starts each message about it. The rules are official if
  // `rules` or the options say so (Benchmark::RulesOfFiles).
  std::function<absl::StatusOr<TaskScores>(
      const ScoredFiles& files, ScoringRules rules,
      const nlohmann::json& options, const std::string& source,
      const GoldReading& reading)>
      score;
  // The records of a gold file beside the predictions for them, for people;
  // null if `score` is. Arguments and errors as there.
  std::function<absl::StatusOr<JudgedRecords>(
      const ScoredFiles& files, const nlohmann::json& options,
      const std::string& source, const GoldReading& reading)>
      judge = nullptr;
  // The overall score of a benchmark that has several tasks, of runs on all of
  // them: last, after the numbers that it is made of. Null if it has none.
  std::function<absl::StatusOr<Metrics>(const std::vector<RunSummary>& runs)>
      overall = nullptr;
};

}  // namespace etc

#endif  // ETC_TASKS_TASK_TASK_ENTRY_H_
